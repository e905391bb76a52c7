"""Temporary files of killed writers: reported, and removed once nobody can still need them."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import drawstring
from drawstring.model.result import Remedy, Severity
from drawstring.storage.local import FileSystem, LocalStorage
from drawstring.table import Table
from drawstring.testing import context_of

SCHEMA = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), pa.field("city", pa.string(), nullable=False)]
)
UUID = "0e7c1c5e-6a52-4f0e-9f6d-0123456789ab"
METADATA = ".hoodie/metadata"
FOLDERS = (
    *(".hoodie", ".hoodie/timeline", ".hoodie/timeline/history", "lima"),
    *(f"{METADATA}/.hoodie/timeline", f"{METADATA}/files"),
)
DIES_WHILE_IT_PUTS = """
import os, sys
import pyarrow as pa
import drawstring

table = drawstring.open(sys.argv[1])
link = os.link

def die(source, target):
    if target.endswith(".commit"):
        os.kill(os.getpid(), 9)
    link(source, target)

os.link = die
table.upsert(pa.table({"id": [1], "city": ["lima"]}))
"""


DIES_BEFORE_THE_LOCK = """
import os, sys
import pyarrow as pa
import drawstring
from drawstring.storage.local import LocalStorage

stage = LocalStorage.stage

def die(storage, files):
    stage(storage, files)
    os.kill(os.getpid(), 9)

LocalStorage.stage = die
drawstring.open(sys.argv[1]).upsert(pa.table({"id": [1], "city": ["lima"]}))
"""


def rows(*ids: int) -> pa.Table:
    return pa.table([list(ids), ["lima"] * len(ids)], schema=SCHEMA)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    made = drawstring.create(tmp_path / "t", SCHEMA, record_key="id", partition_by="city")
    made.upsert(rows(1, 2))
    return made


def leave(table: Table, folder: str, *, hours: int = 1) -> Path:
    path = Path(table.uri) / folder / f".some.file.{UUID}.tmp"
    path.write_bytes(b"half")
    then = context_of(table).clock.now_ms() / 1000 - hours * 3600
    os.utime(path, (then, then))
    return path


def hidden(table: Table) -> list[str]:
    return sorted(path.name for path in Path(table.uri).rglob(".*.tmp"))


def temporary(table: Table) -> list[str]:
    found = [each for each in table.services.validate().findings if each.remedy is Remedy.TEMPORARY]
    assert {each.severity for each in found} <= {Severity.NOTE}
    return [each.path for each in found if each.path]


def test_validate_reports_temporary_files_and_repair_removes_them(table: Table) -> None:
    left = [leave(table, folder) for folder in FOLDERS]
    paths = sorted(str(path.relative_to(table.uri)) for path in left)
    assert sorted(temporary(table)) == paths
    assert sorted(each.path or "" for each in table.services.repair(apply=False)) == paths
    assert len(hidden(table)) == len(FOLDERS)
    table.services.repair(apply=True)
    assert hidden(table) == []
    assert temporary(table) == []


def test_a_temporary_file_that_is_young_or_held_is_left_alone(table: Table) -> None:
    young = leave(table, ".hoodie", hours=0)
    held = leave(table, "lima")
    other = Path(table.uri) / "lima/.of.another.tool.tmp"
    other.write_bytes(b"")
    os.utime(other, (0, 0))
    with open(held, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert temporary(table) == ["lima/" + held.name]
        table.services.repair(apply=True)
        assert held.exists()
    table.services.repair(apply=True)
    assert not held.exists()
    assert young.exists()
    assert other.exists()


@pytest.mark.parametrize(("script", "left"), [(DIES_WHILE_IT_PUTS, 1), (DIES_BEFORE_THE_LOCK, 3)])
def test_the_next_writer_removes_what_a_killed_one_left(table: Table, script: str, left: int) -> None:
    done = subprocess.run([sys.executable, "-c", script, table.uri], check=False)
    assert done.returncode == -signal.SIGKILL
    assert len(hidden(table)) == left
    for path in Path(table.uri).rglob(".*.tmp"):
        os.utime(path, (0, 0))
    leave(table, "lima")
    table.upsert(rows(3))
    assert hidden(table) == []
    assert sorted(table.scan(["id"]).to_arrow()["id"].to_pylist()) == [1, 2, 3]


def test_a_clean_removes_them_where_it_cleans(table: Table) -> None:
    for number in range(3):
        table.upsert(rows(number), options={"hoodie.clean.automatic": "false"})
    for folder in FOLDERS:
        leave(table, folder)
    assert table.services.clean(options={"hoodie.clean.commits.retained": "1"})
    assert hidden(table) == []


def test_a_put_holds_its_temporary_file_until_it_is_in_place(tmp_path: Path) -> None:
    class Sweeping(FileSystem):
        def rename(self, source: str, target: str) -> None:
            os.utime(source, (0, 0))
            assert [each.name for each in storage.list_unfinished("")] == [os.path.basename(source)]
            storage.drop_unfinished([os.path.basename(source)])
            super().rename(source, target)

    storage = LocalStorage(tmp_path, files=Sweeping())
    storage.put("f", b"whole")
    assert storage.read("f") == b"whole"


def test_comparing_and_replacing_leaves_no_lock_file(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    storage.put("f", b"1")
    found = storage.read_versioned("f")
    assert found
    assert storage.put_if_match("f", b"2", found[1])
    assert not storage.put_if_match("f", b"3", found[1])
    assert os.listdir(tmp_path) == ["f"]
