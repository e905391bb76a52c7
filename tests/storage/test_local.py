"""The file system of this machine."""

from __future__ import annotations

import errno
import itertools
import os
import pickle
import threading
from pathlib import Path

import pytest

from drawstring.base.errors import InvalidError, UnavailableError, UnsupportedError
from drawstring.storage import open_storage
from drawstring.storage.local import FileSystem, LocalStorage
from tests.support.races import content, rounds_won
from tests.support.storages import paths


def test_put_if_absent_has_one_winner_among_processes(tmp_path: Path) -> None:
    storage = open_storage(tmp_path)
    won = rounds_won(storage.spec, processes=4, rounds=50)
    assert sorted(itertools.chain(*won)) == list(range(50))
    for number, numbers in enumerate(won):
        assert all(storage.read(f"t/{round_number}") == content(number) for round_number in numbers)


def test_no_replacement_is_lost_while_threads_replace_a_file_again_and_again(tmp_path: Path) -> None:
    storage = open_storage(tmp_path)
    storage.put("count", b"0")

    def add_one() -> None:
        for _ in range(40):
            is_added = False
            while not is_added:
                data, version = storage.read_versioned("count") or (b"", "")
                is_added = storage.put_if_match("count", b"%d" % (int(data) + 1), version)

    threads = [threading.Thread(target=add_one) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert storage.read("count") == b"160"
    assert os.listdir(tmp_path) == ["count"]


def test_a_file_that_may_not_be_written_is_replaced(tmp_path: Path) -> None:
    class ReadOnly(FileSystem):
        def open_to_lock(self, path: str, flags: int) -> int:
            if flags & os.O_RDWR:
                raise PermissionError(errno.EACCES, "not yours")
            return super().open_to_lock(path, flags)

    storage = LocalStorage(tmp_path, files=ReadOnly())
    storage.put("of-another", b"1")
    version = (storage.read_versioned("of-another") or (b"", ""))[1]
    assert storage.put_if_match("of-another", b"2", version)
    assert storage.read("of-another") == b"2"


def test_a_change_drops_the_checksum_that_hadoop_left(tmp_path: Path) -> None:
    storage = open_storage(tmp_path)
    for change in (
        lambda: storage.put("f", b"new"),
        lambda: storage.put_if_match("f", b"newer", storage.read_versioned("f")[1]),  # type: ignore[index]
        lambda: storage.create("f").close(),
        lambda: storage.delete(["f"]),
    ):
        (tmp_path / ".f.crc").write_bytes(b"stale")
        change()
        assert not (tmp_path / ".f.crc").exists()


def test_nothing_is_left_beside_a_file_that_was_put(tmp_path: Path) -> None:
    storage = open_storage(tmp_path)
    storage.put("f", b"1")
    storage.put_if_absent("g", b"1")
    storage.put_if_absent("g", b"2")
    assert sorted(os.listdir(tmp_path)) == ["f", "g"]


def test_what_a_killed_writer_left_lies_where_its_marker_says(tmp_path: Path) -> None:
    storage = open_storage(tmp_path)
    file = storage.create("p/base.parquet")
    file.write(b"half")
    file.flush()
    assert paths(storage) == ["p/base.parquet"]
    file.close()


def test_addresses_of_local_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    root = str(tmp_path / "a b")
    for uri in (
        root,
        "a b",
        f"file://{tmp_path}/a%20b",
        f"file:{tmp_path}/a b",
        f"FILE://localhost{root}",
        root + "/",
    ):
        storage = open_storage(uri)
        assert storage.spec.uri == root
        assert storage.local_path("p/f") == f"{root}/p/f"
        assert storage.local_path("") == root
        assert storage.full_uri("p/f") == f"file://{root}/p/f"
    assert pickle.loads(pickle.dumps(storage.spec)) == storage.spec


@pytest.mark.parametrize(
    ("uri", "kind", "text"),
    [
        ("", InvalidError, "empty"),
        ("file://elsewhere/x", InvalidError, "elsewhere"),
        ("hdfs://host/x", UnsupportedError, "hdfs"),
        ("s3://", InvalidError, "bucket"),
    ],
)
def test_an_address_that_cannot_be_opened_says_why(uri: str, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        open_storage(uri)


def test_a_file_of_no_bytes_takes_the_place_of_another_but_never_of_one_that_must_be_absent(
    tmp_path: Path,
) -> None:
    storage = open_storage(tmp_path)
    storage.put("f", b"x")
    assert not storage.put_if_absent("f", b"")
    assert storage.read("f") == b"x"
    storage.put("f", b"")
    assert storage.read("f") == b""
    assert storage.put_if_absent("a/b/g", b"")
    assert not storage.put_if_absent("a/b/g", b"")
    assert paths(storage) == ["a/b/g", "f"]


class Refusing(FileSystem):
    """Fails to give a file its name."""

    def __init__(self, error: OSError) -> None:
        super().__init__()
        self.error = error

    def rename(self, source: str, target: str) -> None:
        raise self.error


def test_a_folder_without_permission_is_the_users_to_fix(tmp_path: Path) -> None:
    files = Refusing(PermissionError(errno.EACCES, "Permission denied"))
    with pytest.raises(InvalidError, match="refuses access") as caught:
        LocalStorage(tmp_path, files=files).put("f", b"x")
    assert caught.value.path == "f"
    assert os.listdir(tmp_path) == []


def test_a_file_system_that_fails_is_unavailable(tmp_path: Path) -> None:
    files = Refusing(OSError(errno.ENODEV, "No such device"))
    with pytest.raises(UnavailableError, match=r"No such device.*Check the disk") as caught:
        LocalStorage(tmp_path, files=files).put("x", b"x")
    assert caught.value.path == "x"


@pytest.mark.parametrize(("path", "says"), [("x" * 300 + "/f", "too long"), ("a\0b/f", "NUL character")])
def test_a_path_that_no_file_can_have_says_which_part_is_wrong(tmp_path: Path, path: str, says: str) -> None:
    with pytest.raises(InvalidError, match=f"{says}.*partition value"):
        open_storage(tmp_path).put(path, b"")


def test_a_table_below_a_file_is_not_found(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    storage = open_storage(tmp_path / "file")
    assert storage.list_tree("") == []
    with pytest.raises(FileNotFoundError):
        storage.read(".hoodie/hoodie.properties")
