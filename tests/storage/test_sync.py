"""What local storage flushes, and when: see docs/adr/0036."""

from __future__ import annotations

import errno
import os
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pytest

import drawstring
from drawstring.base.clock import SystemClock, SystemIds
from drawstring.base.errors import InvalidError, UnavailableError
from drawstring.config.keys.read import SYNC
from drawstring.metadata.writer import MetadataWriter
from drawstring.model.instant import Action
from drawstring.storage import Storage, open_spec, open_storage
from drawstring.storage.local import FileSystem, LocalStorage
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.txn.locks.file_lock import FileLock
from drawstring.txn.locks.table_lock import FILE_LOCK_PATH
from tests.support.faulty_storage import FaultyStorage

T = TypeVar("T")

OFF = {SYNC: "false"}
KEPT = {"hoodie.clean.commits.retained": "2", "hoodie.archive.automatic": "false"}
SCHEMA = pa.schema([("id", pa.string()), ("value", pa.int64())])
ROWS = pa.table({"id": ["a", "b"], "value": [1, 2]})


class Flushes(FileSystem):
    """Notes the paths that are flushed, relative to a folder, and new names, in order."""

    def __init__(self, root: Path) -> None:
        super().__init__(full_flush=None)
        self.root = root
        self.noted: list[str] = []

    def fsync(self, descriptor: int) -> None:
        path = os.path.relpath(os.readlink(f"/proc/self/fd/{descriptor}"), self.root)
        self.noted.append(path if not path.endswith(".tmp") else "temporary")
        super().fsync(descriptor)


class Failing(FileSystem):
    """Fails to flush while it is told to."""

    fails = True

    def fsync(self, descriptor: int) -> None:
        if self.fails:
            raise OSError(errno.EIO, "Input/output error")
        super().fsync(descriptor)


@pytest.fixture
def flushes(tmp_path: Path) -> Flushes:
    (tmp_path / "t").mkdir()
    return Flushes(tmp_path / "t")


def with_files(table: Table, files: FileSystem) -> Table:
    """Return the same table, whose calls and tasks change files by a file system of the test."""
    local = LocalStorage(table.uri, files=files)
    return Table(replace(context_of(table), storage=FaultyStorage(local, fail_after=sys.maxsize)))


def test_bytes_are_flushed_before_a_file_gets_its_name(tmp_path: Path) -> None:
    class Named(Flushes):
        def rename(self, source: str, target: str) -> None:
            self.noted.append("rename")
            super().rename(source, target)

        def link(self, source: str, target: str) -> None:
            self.noted.append("link")
            super().link(source, target)

    files = Named(tmp_path)
    storage = LocalStorage(tmp_path, files=files)
    storage.put("one", b"1")
    storage.put_if_absent("two", b"2")
    assert files.noted == ["temporary", "rename", "temporary", "link"]


def test_a_created_file_is_flushed_when_it_is_closed(tmp_path: Path, flushes: Flushes) -> None:
    with LocalStorage(tmp_path / "t", files=flushes).create("one") as file:
        file.write(b"1")
        assert flushes.noted == []
    assert flushes.noted == ["one"]
    file.close()
    assert flushes.noted == ["one"]


def test_a_created_file_is_flushed_where_pyarrow_cannot_tell_its_descriptor(tmp_path: Path) -> None:
    """As with pyarrow 21, the lowest release that is supported."""

    class WithoutDescriptors(Flushes):
        def descriptor_of(self, file: pa.NativeFile) -> int:
            raise AttributeError("handle")

    files = WithoutDescriptors(tmp_path)
    with LocalStorage(tmp_path, files=files).create("one") as file:
        file.write(b"1")
    assert files.noted == ["one"]
    assert (tmp_path / "one").read_bytes() == b"1"


def test_staged_bytes_are_flushed_at_once_and_not_again(tmp_path: Path, flushes: Flushes) -> None:
    storage = LocalStorage(tmp_path / "t", files=flushes)
    drop = storage.stage([("", data) for data in (b"1", b"2", b"3", b"4", b"4")])
    storage.stage([("", b"4")])()
    assert flushes.noted == ["temporary"] * 4
    storage.put("one", b"1")
    assert storage.put_if_absent("two", b"2")
    assert not storage.put_if_absent("two", b"3")
    drop()
    assert flushes.noted == ["temporary"] * 4
    assert sorted(os.listdir(tmp_path / "t")) == ["one", "two"]


def test_what_cannot_be_staged_is_put_all_the_same(tmp_path: Path) -> None:
    class FailingOnce(Failing, Flushes):
        fails = False

    (tmp_path / "t").mkdir()
    flushes = FailingOnce(tmp_path / "t")
    storage = LocalStorage(tmp_path / "t", files=flushes)
    drops = [storage.stage([("not there", b"1")])]
    flushes.fails = True
    drops.append(storage.stage([("", b"2")]))
    flushes.fails = False
    drops.append(storage.stage([("", b"3")]))
    for left in (tmp_path / "t").iterdir():
        left.unlink()  # as another process does after a long time, where files cannot be locked
    storage.put("a/one", b"1")
    storage.put("two", b"2")
    assert storage.put_if_absent("three", b"3")
    for drop in drops:
        drop()
    assert flushes.noted == ["temporary"] * 4
    assert sorted(os.listdir(tmp_path / "t")) == ["a", "three", "two"]


def test_empty_files_and_deletions_wait_for_the_flush_of_their_folder(
    tmp_path: Path, flushes: Flushes
) -> None:
    storage = LocalStorage(tmp_path / "t", files=flushes)
    storage.put("a/empty", b"")
    storage.put_if_absent("a/other", b"")
    storage.delete(["a/empty"])
    assert flushes.noted == []
    storage.sync(["a", "not there", ""])
    assert sorted(flushes.noted) == [".", "a"]


def test_a_new_root_is_flushed_into_the_folders_above_it(tmp_path: Path, flushes: Flushes) -> None:
    LocalStorage(tmp_path / "t/new/table", files=flushes).put("file", b"")
    assert sorted(flushes.noted) == [".", "new"]


@pytest.mark.parametrize("uri", ["{}", "file://{}"])
def test_an_option_turns_flushes_off_in_tasks_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uri: str
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: pytest.fail("a flush"))
    storage = open_spec(open_storage(uri.format(tmp_path / "t"), OFF).spec)
    storage.put("a/one", b"1")
    storage.create("a/two").close()
    storage.sync(["a"])
    assert open_storage(tmp_path / "t").spec.options == {}


def test_a_value_that_is_neither_true_nor_false_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidError, match=r"drawstring.storage.sync is 'no'\. Give true or false"):
        open_storage(tmp_path, {SYNC: "no"})


def test_other_stores_take_the_option_and_have_nothing_to_flush(storage: Storage) -> None:
    storage.put("one", b"1")
    storage.sync(["", "a"])
    assert storage.read("one") == b"1"
    assert open_storage("s3://lake/t", {"region": "eu-west-1", **OFF}).spec.uri == "s3://lake/t"


def test_a_commit_flushes_files_then_folders_then_the_completed_file(
    tmp_path: Path, flushes: Flushes
) -> None:
    table = with_files(drawstring.create(tmp_path / "t", SCHEMA, record_key="id"), flushes)
    table.insert(ROWS, options={"hoodie.metadata.enable": "false"})
    places = [path for path in flushes.noted if path != ".hoodie_partition_metadata"]
    begun, data, *rest = [
        path if not path.endswith(".parquet") else "data" for path in places if path != "temporary"
    ]
    assert [begun, data] == [".hoodie/timeline", "data"]
    assert rest == [".", ".hoodie/timeline"]
    assert places.count("temporary") == 2, "the partition metadata and the completed file"


def test_a_commit_beside_others_flushes_names_alone_under_the_table_lock(tmp_path: Path) -> None:
    table = drawstring.create(tmp_path / "t", SCHEMA, record_key="id", table_type="MERGE_ON_READ")
    table.insert(ROWS)
    lock, under_the_lock = FileLock(str(tmp_path / "t" / FILE_LOCK_PATH)), []

    class Watching(Flushes):
        def fsync(self, descriptor: int) -> None:
            super().fsync(descriptor)
            if lock.is_held():
                under_the_lock.append(self.noted[-1])

    with_files(table, Watching(tmp_path / "t")).upsert(ROWS)
    assert under_the_lock == [".hoodie/metadata/.hoodie/timeline", ".hoodie/metadata/files"]


def test_cleans_and_the_metadata_table_flush_files_under_the_table_lock_at_the_same_time(
    tmp_path: Path,
) -> None:
    table = drawstring.create(tmp_path / "t", SCHEMA, record_key="id")
    table.insert(ROWS)
    lock, under_the_lock = FileLock(str(tmp_path / "t" / FILE_LOCK_PATH)), []

    class Watching(FileSystem):
        def fsync(self, descriptor: int) -> None:
            super().fsync(descriptor)
            path = os.readlink(f"/proc/self/fd/{descriptor}")
            if lock.is_held() and not os.path.isdir(path):
                under_the_lock.append(path)

    table = with_files(table, Watching())
    for _ in range(24):
        table.upsert(
            ROWS, options={"hoodie.clean.commits.retained": "2", "hoodie.archive.automatic": "false"}
        )
    own = MetadataWriter.of(context_of(table).storage, SystemClock(), SystemIds()).store.load()
    for timeline in (table.timeline, own):
        assert len(timeline.completed_of(Action.CLEAN)) >= 1
    assert len(own.completed_of(Action.COMMIT)) >= 3
    assert {os.path.basename(path).split(".")[1] for path in under_the_lock} == {"staged"}


def test_the_log_files_of_indexes_are_flushed_at_the_same_time(tmp_path: Path) -> None:
    options = {"hoodie.metadata.global.record.level.index.enable": "true"}
    table = drawstring.create(tmp_path / "t", SCHEMA, record_key="id")
    table.insert(ROWS, options=options)
    rows = pa.table({"id": list(map(str, range(100))), "value": range(100)}, schema=SCHEMA)
    staged: list[int] = []

    class Counting(FileSystem):
        def in_threads(self, task: Callable[[T], object], items: Sequence[T], threads: int) -> None:
            staged.append(sum("metadata/record_index" in str(item) for item in items))
            super().in_threads(task, items, threads)

    with_files(table, Counting()).upsert(rows)
    assert max(staged) == 10


def test_a_table_that_was_opened_without_flushes_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: pytest.fail("a flush"))
    drawstring.create(tmp_path / "t", SCHEMA, record_key="id", storage_options=OFF).insert(ROWS)
    drawstring.open(tmp_path / "t", storage_options=OFF).upsert(ROWS)


def test_a_commit_whose_file_cannot_be_flushed_is_not_acknowledged(tmp_path: Path) -> None:
    table = drawstring.create(tmp_path / "t", SCHEMA, record_key="id")
    table.insert(ROWS)
    with pytest.raises(UnavailableError, match=r"could not flush a file to the disk \(Input/output error\)"):
        with_files(table, Failing()).upsert(ROWS)
    assert table.upsert(ROWS).instant
    assert drawstring.open(tmp_path / "t").scan(["id"]).to_arrow().num_rows == 2


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP])
def test_folders_that_cannot_be_flushed_are_passed_over(tmp_path: Path, number: int) -> None:
    class NotForFolders(FileSystem):
        def fsync(self, descriptor: int) -> None:
            if os.path.isdir(f"/proc/self/fd/{descriptor}"):
                raise OSError(number, "not for folders")
            super().fsync(descriptor)

    table = drawstring.create(tmp_path / "t", SCHEMA, record_key="id")
    assert with_files(table, NotForFolders()).insert(ROWS).instant


def test_the_full_flush_of_macos_is_taken_where_there_is_one(tmp_path: Path) -> None:
    noted: list[str] = []

    class OfMac(FileSystem):
        has_it = True

        def fcntl(self, descriptor: int, command: int) -> None:
            if not self.has_it:
                raise OSError(errno.ENOTSUP, "not here")
            noted.append(f"fcntl {command}")

        def fsync(self, descriptor: int) -> None:
            noted.append("fsync")

    files = OfMac(full_flush=51)
    LocalStorage(tmp_path, files=files).put("one", b"1")
    assert noted == ["fcntl 51"]
    files.has_it = False
    files.flush_folder(str(tmp_path))
    assert noted == ["fcntl 51", "fsync"]


def test_a_few_folders_are_flushed_without_threads_and_many_with_some(
    tmp_path: Path, flushes: Flushes, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[threading.Thread] = []
    monkeypatch.setattr(threading.Thread, "start", lambda thread: started.append(thread))
    monkeypatch.setattr(threading.Thread, "join", lambda thread: None)
    folders = [str(tmp_path / str(number)) for number in range(32)]
    for folder in folders:
        os.mkdir(folder)
    flushes.flush_folders(folders[:3])
    assert (len(started), len(flushes.noted)) == (0, 3)
    flushes.flush_folders(folders)
    assert (len(started), len(flushes.noted)) == (7, 35)
