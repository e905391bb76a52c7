"""Tasks of a failed write that go on after it was taken back, as those of Spark's executors may."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import drawstring
from drawstring.base.errors import InvalidError
from drawstring.model.files import BaseFile, FileStatus
from drawstring.table import Table
from tests.support.late_files import KEEP_FEW, DetachedEngine
from tests.support.rows import SCHEMA, held, rides
from tests.support.tables import create, table_types
from tests.support.validation import problems
from tests.support.version_changes import change_version

LISTS = {"hoodie.metadata.enable": "false"}
FILE_ID = "0e7c1c5e-6a52-4f0e-9f6d-0123456789ab-0"


def fail_before_the_first_file(table: Table) -> None:
    rows = rides(("a", "rome", 1, 1.0))
    no_key = rows.set_column(0, pa.field("id", pa.string()), pa.array([None], pa.string()))
    with pytest.raises(InvalidError):
        table.upsert(no_key)


def write_late(root: Path, instant: str) -> None:
    """Write a file of an instant with the rows of the newest file, as a task does: after its marker."""
    (newest,) = root.glob("rome/*.parquet")
    name = BaseFile.name_of(FILE_ID, "0-0-0", instant)
    marker = root / f".hoodie/.temp/{instant}/rome/{name}.marker.CREATE"
    marker.parent.mkdir(parents=True)
    marker.touch()
    shutil.copy(newest, root / "rome" / name)


def times_of_notes(root: Path) -> list[str]:
    return [each.name.partition("_")[0] for each in root.glob(".hoodie/timeline/*.rolledback")]


@table_types
def test_rows_of_a_task_that_outlives_the_first_write_do_not_count(table_type: str, tmp_path: Path) -> None:
    root = tmp_path / "t"
    drawstring.create(
        root, SCHEMA, name="rides", record_key="id", partition_by="city", ordering="ts", table_type=table_type
    )
    table = drawstring.open(root, engine=DetachedEngine(), options=LISTS)
    fail_before_the_first_file(table)
    (failed,) = times_of_notes(root)
    table.upsert(rides(("a", "rome", 1, 1.0)))
    write_late(root, failed)
    assert table.scan().to_arrow().num_rows == 1
    table.upsert(rides(("b", "rome", 1, 1.0)))
    assert sorted(table.scan(["id"]).to_arrow().column("id").to_pylist()) == ["a", "b"]
    files = [BaseFile.parse(FileStatus(each.name, 0)) for each in root.glob("rome/*.parquet")]
    assert failed not in {each.instant for each in files if each is not None}


def test_a_write_of_threads_that_begins_no_file_leaves_no_note(tmp_path: Path) -> None:
    table = drawstring.create(tmp_path / "t", SCHEMA, name="rides", record_key="id")
    fail_before_the_first_file(table)
    assert times_of_notes(tmp_path / "t") == []


@pytest.mark.parametrize(("old", "new"), [(6, 9), (9, 6)])
def test_nor_do_they_when_the_timeline_has_another_layout_by_then(old: int, new: int, tmp_path: Path) -> None:
    root = tmp_path / "t"
    create(path=root, version=old)
    table = drawstring.open(root, engine=DetachedEngine(), options=LISTS)
    fail_before_the_first_file(table)
    folder = root / ".hoodie" / ("" if old == 6 else "timeline")
    (failed,) = [each.name.partition("_")[0] for each in folder.glob("*.rolledback")]
    table.upsert(rides(("a", "rome", 1, 1.0)))
    change_version(table, new)
    assert not list(folder.glob("*.rolledback"))
    table = drawstring.open(root, options=LISTS)
    assert failed in table.timeline.rolled_back
    write_late(root, failed)
    shutil.rmtree(root / ".hoodie" / ".temp")  # its task died before it looked whether the write goes on
    for ts in range(2, 9):
        table.upsert(rides(("a", "rome", ts, 1.0)), options=KEEP_FEW)
    assert table.timeline.start is not None and table.timeline.start > failed
    assert held(table) == [("a", "rome", 8, 1.0)]
    assert [each.check for each in problems(table)] == ["orphan"]
