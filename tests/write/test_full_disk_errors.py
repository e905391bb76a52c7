"""Disks that take no more: what users are told, and that the table is as it was."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import drawstring
from drawstring.base.errors import InvalidError, UnavailableError, disk_error, disk_errors
from drawstring.engine.spill import SpillingGroups
from drawstring.storage.local import FileSystem, LocalStorage
from drawstring.table import Table
from drawstring.testing import context_of
from tests.support.methods import method
from tests.support.simulation.full_disks import FullDisk

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("ts", pa.int64(), nullable=False),
        pa.field("text", pa.string()),
    ]
)
LIMITED = """
import gc, os, resource, sys
import pyarrow as pa
import drawstring
from drawstring.base.errors import UnavailableError

gc.disable()
table = drawstring.open(sys.argv[1])
rows = pa.table({"id": range(50_000), "ts": range(50_000), "text": [str(n * 7919) for n in range(50_000)]})
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, resource.RLIM_INFINITY))
try:
    table.upsert(rows)
except UnavailableError as error:
    kept = error
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
files = [os.path.join("/proc/self/fd", each) for each in os.listdir("/proc/self/fd")]
print([os.readlink(each) for each in files if os.path.islink(each) and sys.argv[1] in os.readlink(each)])
print(kept)
assert table.upsert(rows.slice(0, 5)).instant
assert table.scan().to_arrow().num_rows == 5
"""


def rows(count: int) -> pa.Table:
    numbers = range(count)
    return pa.table([numbers, numbers, [str(n * 7919) for n in numbers]], schema=SCHEMA)


def made(path: Path, table_type: str) -> Table:
    return drawstring.create(path, SCHEMA, record_key="id", ordering="ts", table_type=table_type)


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("free_bytes", [0, 1_000, 5_000, 60_000])
def test_a_full_disk_is_told_as_what_it_is(table_type: str, free_bytes: int, tmp_path: Path) -> None:
    table = made(tmp_path / "t", table_type)
    table.upsert(rows(10))
    before = table.scan().to_arrow()
    full = Table(replace(context_of(table), storage=FullDisk(context_of(table).storage, free_bytes)))
    with pytest.raises(UnavailableError, match=r"The disk is full\. Free space"):
        full.upsert(rows(100_000))
    assert table.scan().to_arrow().equals(before)
    assert table.upsert(rows(10)).instant


@pytest.mark.parametrize("is_new", [True, False], ids=["new", "with rows"])
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_file_that_grows_beyond_the_limit_is_told_as_what_it_is_and_is_not_held_open(
    table_type: str, is_new: bool, tmp_path: Path
) -> None:
    table = made(tmp_path / "t", table_type)
    if not is_new:
        table.upsert(rows(5))
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path / "t")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("[]\nA file is larger than allowed. Raise the limit"), done.stdout


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO])
def test_every_error_of_a_disk_says_what_to_do(number: int, tmp_path: Path) -> None:
    class Failing(FileSystem):
        def rename(self, source: str, target: str) -> None:
            raise OSError(number, os.strerror(number))

    with pytest.raises(UnavailableError, match=r"the disk of the table.* then try again\. .*a/b") as caught:
        LocalStorage(tmp_path, files=Failing()).put("a/b", b"x")
    assert caught.value.__cause__ is not None
    assert os.listdir(tmp_path / "a") == []


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM, errno.EROFS])
@pytest.mark.parametrize("call", ["upsert", "clean", "compact", "hold"])
def test_a_folder_that_may_not_be_written_to_is_the_callers_to_fix(
    call: str, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(tmp_path / "t", "MERGE_ON_READ")
    table.upsert(rows(10))
    calls = {"upsert": lambda: table.upsert(rows(10)), "hold": lambda: table.holds.add("reader")}
    opened = os.open

    def refuse(path: str, flags: int, *args: int, **given: int) -> int:
        if flags & os.O_CREAT and str(path).startswith(str(tmp_path)):
            raise OSError(number, os.strerror(number))
        return opened(path, flags, *args, **given)

    monkeypatch.setattr(os, "open", refuse)
    monkeypatch.setattr("builtins.open", lambda path, mode, **_: refuse(path, os.O_CREAT))
    with pytest.raises(InvalidError, match="The file system refuses access") as caught:
        (calls[call] if call in calls else method(table, call))()
    assert caught.value.table == str(tmp_path / "t")
    assert (caught.value.path or "").startswith(".hoodie/")


def test_other_errors_stay_what_they_are() -> None:
    with pytest.raises(FileNotFoundError), disk_errors("here"):
        raise FileNotFoundError(errno.ENOENT, "gone")
    assert disk_error(OSError("without a number"), "here") is None


def test_a_disk_without_room_to_spill_to_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> pa.ipc.RecordBatchFileWriter:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(pa.ipc, "new_file", full)
    groups = SpillingGroups(SCHEMA, 1)
    with pytest.raises(UnavailableError, match=r"The disk is full. Free space on .*TMPDIR"):
        groups.add("g", rows(10).to_batches()[0])
    groups.close()
