"""What every storage promises, on each of them."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from drawstring.base.errors import InvalidError
from drawstring.storage import Storage, open_spec
from tests.support.storages import paths

AWKWARD_NAMES = [
    "a b",
    "ä😀",
    "50%",
    "%2F",
    "x=1",
    "a*b?",
    "12:30:00",
    "a~b#c",
    "a[1]{2}",
    "a&b<c>",
    "a+b",
    "~",
]


def write(storage: Storage, path: str, *parts: bytes) -> None:
    with storage.create(path) as file:
        for part in parts:
            file.write(part)


def all_at_once(count: int, action: Callable[[int], bool]) -> list[int]:
    """Run an action on several threads that start together; return the numbers that got True."""
    barrier, winners = threading.Barrier(count), []

    def run(number: int) -> None:
        barrier.wait()
        if action(number):
            winners.append(number)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return winners


def test_a_put_file_reads_back_whole(storage: Storage) -> None:
    storage.put("p=1/a", b"one")
    storage.put("p=1/a", b"two")
    assert storage.read("p=1/a") == b"two"
    assert storage.exists("p=1/a")


def test_an_empty_file_exists(storage: Storage) -> None:
    storage.put("empty", b"")
    write(storage, "created empty")
    assert storage.read("empty") == storage.read("created empty") == b""
    assert [(status.path, status.size_bytes) for status in storage.list_files("")] == [
        ("created empty", 0),
        ("empty", 0),
    ]


def test_a_missing_file_is_not_found(storage: Storage) -> None:
    for read in (storage.read, storage.open):
        with pytest.raises(FileNotFoundError):
            read("p=1/missing")
    assert not storage.exists("p=1/missing")
    assert storage.read_versioned("p=1/missing") is None


def test_a_deleted_file_is_not_replaced(storage: Storage) -> None:
    storage.put("p=1/a", b"data")
    found = storage.read_versioned("p=1/a")
    assert found is not None
    storage.delete(["p=1/a"])
    assert not storage.put_if_match("p=1/a", b"x", found[1])
    assert not storage.exists("p=1/a")


def test_a_folder_is_no_file(storage: Storage) -> None:
    storage.put("p=1/a", b"")
    assert not storage.exists("p=1")
    with pytest.raises(FileNotFoundError):
        storage.read("p=1")
    with pytest.raises(FileNotFoundError):
        storage.read("p=1/a/b")
    storage.delete(["p=1"])
    assert storage.exists("p=1/a")


def test_listings_show_one_level_or_all_below_in_order(storage: Storage) -> None:
    for path in ("b/2", "b/1", "b/c/3", "b.txt", "a", ".hoodie/timeline/1.commit", "bb/4"):
        storage.put(path, path.encode())
    assert [status.path for status in storage.list_files("")] == ["a", "b.txt"]
    assert storage.list_folders("") == [".hoodie", "b", "bb"]
    assert [status.path for status in storage.list_files("b")] == ["b/1", "b/2"]
    assert storage.list_folders("b") == ["b/c"]
    assert paths(storage, "b") == ["b/1", "b/2", "b/c/3"]
    assert paths(storage) == sorted(paths(storage)) and len(paths(storage)) == 7
    assert {status.path: status.size_bytes for status in storage.list_tree("b")}["b/c/3"] == 5
    assert all(status.modified_ms > 1_600_000_000_000 for status in storage.list_tree(""))


def test_a_missing_folder_lists_empty(storage: Storage) -> None:
    assert storage.list_files("x/y") == storage.list_folders("x/y") == storage.list_tree("x/y") == []
    assert storage.list_files("") == storage.list_folders("") == storage.list_tree("") == []


def test_a_long_folder_lists_complete(storage: Storage) -> None:
    names = [f"f/{number:04}" for number in range(1100 if storage.local_path("") else 120)]
    for name in names:
        storage.put(name, b"")
    assert [status.path for status in storage.list_files("f")] == names
    assert paths(storage) == names
    storage.delete(names)
    assert paths(storage) == []


@pytest.mark.parametrize("name", AWKWARD_NAMES)
def test_partition_values_with_special_characters_stay_what_they_are(storage: Storage, name: str) -> None:
    storage.put(f"{name}/{name}.parquet", b"data")
    assert storage.list_folders("") == [name]
    assert [status.path for status in storage.list_files(name)] == [f"{name}/{name}.parquet"]
    assert storage.read(f"{name}/{name}.parquet") == b"data"
    storage.delete([f"{name}/{name}.parquet"])
    assert paths(storage) == []


@pytest.mark.parametrize(
    "path", ["../x", "a/../../x", "/etc/passwd", "a//b", "a/./b", "a/", "..", ".", "a\0b"]
)
def test_a_path_that_leaves_the_table_is_refused(storage: Storage, path: str) -> None:
    for action in (
        lambda: storage.read(path),
        lambda: storage.open(path),
        lambda: storage.create(path),
        lambda: storage.put(path, b""),
        lambda: storage.put_if_absent(path, b""),
        lambda: storage.put_if_match(path, b"", "v"),
        lambda: storage.read_versioned(path),
        lambda: storage.exists(path),
        lambda: storage.delete([path]),
        lambda: storage.delete_tree(path),
        lambda: storage.list_files(path),
        lambda: storage.list_folders(path),
        lambda: storage.list_tree(path),
        lambda: storage.full_uri(path),
    ):
        with pytest.raises(InvalidError, match="not a path inside the table"):
            action()


def test_put_if_absent_leaves_what_is_there(storage: Storage) -> None:
    assert storage.put_if_absent("t/1.commit", b"first")
    assert not storage.put_if_absent("t/1.commit", b"second")
    assert not storage.put_if_absent("t/1.commit", b"first")
    assert storage.read("t/1.commit") == b"first"
    assert paths(storage) == ["t/1.commit"]


def test_put_if_absent_has_one_winner_among_threads(storage: Storage) -> None:
    for round_number in range(5):
        path = f"t/{round_number}"
        winners = all_at_once(8, lambda number, path=path: storage.put_if_absent(path, b"%d" % number))
        assert storage.read(path) == b"%d" % winners[0]
        assert len(winners) == 1


def test_put_if_absent_of_equal_empty_files_has_one_winner(storage: Storage) -> None:
    assert len(all_at_once(8, lambda number: storage.put_if_absent("t/1.inflight", b""))) == 1


def test_put_if_match_replaces_the_version_that_was_read(storage: Storage) -> None:
    storage.put("lock", b"one")
    found = storage.read_versioned("lock")
    assert found is not None and found[0] == b"one"
    assert storage.put_if_match("lock", b"two", found[1])
    assert not storage.put_if_match("lock", b"three", found[1])
    assert storage.read("lock") == b"two"
    assert paths(storage) == ["lock"]


def test_put_if_match_has_one_winner_among_threads(storage: Storage) -> None:
    storage.put("lock", b"start")
    found = storage.read_versioned("lock")
    assert found is not None
    winners = all_at_once(8, lambda number: storage.put_if_match("lock", b"%d" % number, found[1]))
    assert len(winners) == 1
    assert storage.read("lock") == b"%d" % winners[0]


def test_deleting_what_is_not_there_is_fine(storage: Storage) -> None:
    storage.put("p/a", b"")
    storage.delete(["p/missing", "p/a", "nowhere/b", "p/a/b"])
    storage.delete([])
    storage.delete_tree("nowhere")
    assert paths(storage) == []


def test_delete_tree_takes_the_folder_and_nothing_else(storage: Storage) -> None:
    for path in ("p/a", "p/q/b", "pp/c", "p.txt"):
        storage.put(path, b"")
    storage.delete_tree("p")
    assert paths(storage) == ["p.txt", "pp/c"]
    assert storage.list_folders("") == ["pp"]
    storage.delete_tree("")
    assert paths(storage) == []


def test_delete_folder_takes_no_folder_that_has_something_in_it(storage: Storage) -> None:
    for path in ("p/a", "q/r/b"):
        storage.put(path, b"")
    for folder in ("p", "q", "nowhere"):
        storage.delete_folder(folder)
    assert paths(storage) == ["p/a", "q/r/b"]
    storage.delete(["p/a"])
    assert storage.delete_folder("p")
    assert storage.list_folders("") == ["q"]


def test_a_created_file_is_whole_once_closed(storage: Storage) -> None:
    parts = [np.random.default_rng(number).bytes(3 << 20) for number in range(8)]
    reused = bytearray(3 << 20)
    with storage.create("big/file") as file:
        for part in parts:
            reused[:] = part
            file.write(reused)
        assert file.tell() == 24 << 20
    assert storage.read("big/file") == b"".join(parts)
    assert [status.size_bytes for status in storage.list_files("big")] == [24 << 20]


def test_creating_again_replaces_the_file(storage: Storage) -> None:
    write(storage, "p/f", b"longer than the next")
    write(storage, "p/f", b"short")
    assert storage.read("p/f") == b"short"


def test_an_opened_file_reads_at_random(storage: Storage) -> None:
    data = np.random.default_rng(7).bytes(3 << 20)
    storage.put("f", data)
    with storage.open("f") as file:
        assert file.size() == len(data)
        for start, length in ((len(data) - 8, 8), (0, 4), (100, 1 << 21), (1 << 20, 10), (len(data) - 3, 99)):
            file.seek(start)
            assert file.read(length) == data[start : start + length]
        file.seek(-5, io.SEEK_END)
        assert file.read() == data[-5:]
        assert file.read(1) == b""
        assert file.read_at(7, 1234) == data[1234:1241]


def test_arrow_writes_and_reads_through_a_storage(storage: Storage) -> None:
    table = pa.table({"x": np.arange(300_000)})
    with storage.create("t.arrow") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=1000)
    with storage.open("t.arrow") as file:
        assert pa.ipc.open_file(file).read_all().equals(table)


def test_files_at_work_are_not_listed(storage: Storage) -> None:
    storage.put("p/.f.123.tmp", b"")
    storage.put("p/.f.crc", b"")
    storage.put("p/.hoodie_partition_metadata", b"")
    assert paths(storage) == ["p/.hoodie_partition_metadata"]
    assert [status.path for status in storage.list_files("p")] == ["p/.hoodie_partition_metadata"]


def test_the_spec_opens_the_same_storage(storage: Storage) -> None:
    storage.put("p/a", b"data")
    assert open_spec(storage.spec).read("p/a") == b"data"
    assert open_spec(storage.spec).spec == storage.spec


def test_names_are_those_of_the_files_of_a_folder(storage: Storage) -> None:
    for path in ("p/b", "p/a", "p/deeper/c", "q"):
        storage.put(path, b"1")
    names = storage.list_names("p")
    assert names in (["a", "b"], ["a", "b", "deeper/"])
    assert [status.name for status in storage.list_files("p")] == ["a", "b"]
    assert storage.list_names("missing") == []


def test_what_was_staged_is_put_as_anything_else(storage: Storage) -> None:
    storage.put("a/known", b"0")
    drop = storage.stage([("a", data) for data in (b"1", b"2", b"3", b"4", b"5")])
    assert paths(storage) == ["a/known"], "nobody sees it"
    storage.put("a/one", b"1")
    assert storage.put_if_absent("a/two", b"2")
    assert not storage.put_if_absent("a/known", b"3")
    storage.put("b/four", b"4")
    drop()
    assert [storage.read(path) for path in paths(storage)] == [b"0", b"1", b"2", b"4"]
    assert paths(storage) == ["a/known", "a/one", "a/two", "b/four"]


def test_what_was_staged_and_put_is_kept_when_the_rest_is_dropped(storage: Storage) -> None:
    storage.put("a/known", b"0")
    drops = [storage.stage([("a", data)]) for data in (b"1", b"1", b"2")]
    storage.put("a/one", b"1")
    for drop in drops:
        drop()
    storage.put("a/two", b"2")
    assert [storage.read(path) for path in paths(storage)] == [b"0", b"1", b"2"]
