"""Queries as of times whose commits, or histories of the schema, are no longer on the active timeline."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import drawstring
from drawstring.base.errors import UnavailableError
from drawstring.storage.protocol import Storage
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.timeline.schema import loaded_history
from tests.support.tables import WITHOUT_SERVICES

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string()), ("w", pa.string())])
ARCHIVES = {
    "hoodie.keep.min.commits": "3",
    "hoodie.keep.max.commits": "4",
    "hoodie.clean.commits.retained": "2",
}
SWAPPED = [(1, "w1", "v1"), (2, "v2", "w2")]
KINDS = pytest.mark.parametrize(
    ("table_type", "version"), [("COPY_ON_WRITE", 9), ("MERGE_ON_READ", 9), ("MERGE_ON_READ", 6)]
)


def swapped(path: Path, table_type: str, version: int) -> tuple[Table, str]:
    """Create a table whose columns v and w have swapped their names, and return the commit after that."""
    table = drawstring.create(path, SCHEMA, record_key="id", table_type=table_type, version=version)
    write(table, 1, v="v1", w="w1")
    for name, new in (("v", "x"), ("w", "v"), ("x", "w")):
        table.columns.rename(name, new, options=WITHOUT_SERVICES)
    return table, write(table, 2, v="v2", w="w2")


def write(table: Table, key: int, **values: str) -> str:
    rows = pa.Table.from_pylist([{"id": key, "v": None, "w": None, **values}], schema=SCHEMA)
    result = table.upsert(rows.select(table.schema.names), options=WITHOUT_SERVICES)
    assert result is not None
    return result.instant


def archive(table: Table) -> None:
    for number in range(3, 9):
        write(table, number)
    table.services.archive(options=ARCHIVES)


def as_of(path: Path, instant: str) -> list[tuple[object, ...]]:
    found = drawstring.open(path).scan(["id", "v", "w"], as_of=instant).to_arrow().to_pylist()
    return sorted(tuple(row.values()) for row in found)


@KINDS
def test_columns_keep_their_names_of_a_time_whose_commits_are_archived(
    tmp_path: Path, table_type: str, version: int
) -> None:
    table, instant = swapped(tmp_path, table_type, version)
    before = as_of(tmp_path, instant)
    archive(table)
    assert table.timeline.start is not None
    assert instant < table.timeline.start
    assert before == as_of(tmp_path, instant) == SWAPPED


@KINDS
def test_a_savepoint_is_read_by_a_history_of_later(tmp_path: Path, table_type: str, version: int) -> None:
    table, instant = swapped(tmp_path, table_type, version)
    table.savepoints.create(options=WITHOUT_SERVICES)
    archive(table)
    assert as_of(tmp_path, instant) == SWAPPED


def test_an_added_column_stays_in_a_time_whose_commits_are_archived(tmp_path: Path) -> None:
    table = drawstring.create(tmp_path, SCHEMA.remove(2), record_key="id")
    instant = write_wide(table)
    for number in range(3, 9):
        write(table, number)
    table.services.archive(options=ARCHIVES)
    assert as_of(tmp_path, instant) == [(1, "v1", "w1")]


def write_wide(table: Table) -> str:
    result = table.upsert(
        pa.Table.from_pylist([{"id": 1, "v": "v1", "w": "w1"}], schema=SCHEMA), options=WITHOUT_SERVICES
    )
    assert result is not None
    return result.instant


def test_a_history_that_cannot_be_read_now_is_not_called_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, _ = swapped(tmp_path, "COPY_ON_WRITE", 9)
    storage, timeline = context_of(table).storage, table.timeline
    latest = '{"version_id": 1, "fields": []}'

    def fails(self: Storage, path: str) -> bytes:
        raise UnavailableError("The disk is away. Try again.", path=path)

    monkeypatch.setattr(type(storage), "read", fails)
    with pytest.raises(UnavailableError, match="The disk is away"):
        loaded_history(storage, timeline, latest)


def test_a_history_that_is_lost_is_found(tmp_path: Path) -> None:
    table, _ = swapped(tmp_path, "MERGE_ON_READ", 9)
    assert table.services.validate().findings == ()
    for file in (tmp_path / ".hoodie/.schema").iterdir():
        file.unlink()
    found = [
        each for each in drawstring.open(tmp_path).services.validate().findings if each.check == "schema"
    ]
    assert ["schema history begins after" in each.what for each in found] == [True]
    assert not drawstring.open(tmp_path).services.validate().is_sound
