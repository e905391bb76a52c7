"""What is particular to object stores, against a real server process."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest

from drawstring.base.errors import InvalidError, UnavailableError
from drawstring.base.limits import Limits
from drawstring.storage import Storage, open_storage
from drawstring.storage.streams import RangeFile
from tests.support.races import rounds_won
from tests.support.store_server import StoreServer, s3_first

_numbers = itertools.count()


@pytest.fixture
def impatient(store: StoreServer) -> Storage:
    """A storage that repeats nothing."""
    return open_storage(
        store.address(f"impatient/{next(_numbers)}"), {**store.options, "retries": "0", "retry_seconds": "0"}
    )


@s3_first
def test_put_if_absent_has_one_winner_among_processes(bucket: Storage) -> None:
    won = rounds_won(bucket.spec, processes=3, rounds=10)
    assert sorted(itertools.chain(*won)) == list(range(10))


def test_a_busy_server_is_asked_again(bucket: Storage, store: StoreServer) -> None:
    store.fail("busy", "busy")
    bucket.put("f", b"data")
    store.fail("busy")
    assert bucket.read("f") == b"data"


@pytest.mark.parametrize("storage_name", ["bucket", "impatient"])
def test_a_put_whose_answer_got_lost_counts_as_done(
    storage_name: str, store: StoreServer, request: pytest.FixtureRequest
) -> None:
    storage: Storage = request.getfixturevalue(storage_name)
    store.fail("lost")
    assert storage.put_if_absent("t/1.commit", b"mine")
    assert not storage.put_if_absent("t/1.commit", b"mine")
    version = storage.read_versioned("t/1.commit")
    assert version is not None
    store.fail("lost")
    assert storage.put_if_match("t/1.commit", b"mine again", version[1])
    assert storage.read("t/1.commit") == b"mine again"


def test_a_server_that_stays_busy_is_unavailable(impatient: Storage, store: StoreServer) -> None:
    for action in (
        lambda: impatient.put("f", b""),
        lambda: impatient.put_if_absent("f", b""),
        lambda: impatient.read("f"),
        lambda: impatient.list_tree(""),
        lambda: impatient.delete(["f"]),
    ):
        store.fail("busy", "busy")
        with pytest.raises(UnavailableError, match="try again"):
            action()
    store.fail()


def test_refused_credentials_are_the_users_to_fix(impatient: Storage, store: StoreServer) -> None:
    store.fail("refuse")
    with pytest.raises(InvalidError, match=r"refuses access to .*lake.*Check ") as caught:
        impatient.read("f")
    assert caught.value.path == "f"


def test_a_server_that_is_not_there_is_unavailable(store: StoreServer) -> None:
    options = {**store.options, "endpoint": "http://127.0.0.1:9", "retries": "0"}
    with pytest.raises(UnavailableError, match="Check endpoint"):
        open_storage(store.address("x"), options).read("f")


def test_a_missing_bucket_is_the_users_to_fix(store: StoreServer) -> None:
    storage = open_storage(store.address("x", "no-such-bucket"), store.options)
    for action in (
        lambda: storage.put("f", b""),
        lambda: storage.put_if_absent("f", b""),
        lambda: storage.list_files(""),
        lambda: storage.list_tree(""),
        lambda: storage.read("f"),
    ):
        with pytest.raises(InvalidError, match=r"no (bucket|container) 'no-such-bucket'"):
            action()


def test_a_failed_upload_says_so(impatient: Storage, store: StoreServer) -> None:
    file = impatient.create("p/f")
    file.write(b"data")
    store.fail("busy", "busy")
    with pytest.raises(UnavailableError):
        file.close()
    store.fail()
    assert not impatient.exists("p/f")


def test_empty_objects_in_place_of_folders_are_not_listed(store: StoreServer) -> None:
    path = f"folders/{next(_numbers)}"
    storage = open_storage(store.address(path), store.options)
    storage.put("p/f", b"data")
    for folder in ("", "/p"):
        store.make_folder(f"lake/{path}{folder}")
    assert [status.path for status in storage.list_files("")] == []
    assert storage.list_folders("") == ["p"]
    assert [status.path for status in storage.list_files("p")] == ["p/f"]
    assert [status.path for status in storage.list_tree("")] == ["p/f"]


def test_a_table_can_be_a_whole_bucket(store: StoreServer) -> None:
    store.make_bucket("whole")
    storage = open_storage(store.address("", "whole"), store.options)
    storage.put("a/b", b"1")
    assert storage.list_folders("") == ["a"]
    storage.delete_tree("")
    assert storage.list_tree("") == []


def test_small_reads_next_to_each_other_are_one_request() -> None:
    bytes_min = Limits().remote_read_bytes_min
    data = bytes(range(256)) * (bytes_min // 64)
    requests: list[tuple[int, int]] = []

    def fetch(start: int, end: int) -> bytes:
        requests.append((start, end))
        return data[start:end]

    file = pa.PythonFile(RangeFile(fetch, len(data)), mode="r")
    assert b"".join(file.read(1000) for _ in range(50)) == data[:50_000]
    assert requests == [(0, bytes_min)]
    file.seek(10)
    assert file.read(2 * bytes_min) == data[10 : 10 + 2 * bytes_min]
    assert requests[1:] == [(10, 10 + 2 * bytes_min)]
