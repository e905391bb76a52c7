"""How far files of a partition overlap in a column."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import drawstring
from drawstring.base.errors import InvalidError
from drawstring.metadata.column_overlap import ColumnOverlap, column_overlaps
from drawstring.metadata.table import open_metadata_table
from drawstring.query.table_state import facts_of
from drawstring.table import Table
from drawstring.testing import context_of

SCHEMA = pa.schema(
    [("id", pa.int64()), ("n", pa.int32()), ("name", pa.string()), ("tags", pa.list_(pa.string()))]
)
ALONE = {"hoodie.parquet.small.file.limit": "0", "hoodie.metadata.index.column.stats.enable": "true"}


def three_files(path: Path) -> Table:
    table = drawstring.create(path, SCHEMA, record_key="id")
    for first, (low, high) in enumerate(((1, 5), (3, 7), (7, 8))):
        rows = [
            {"id": 10 * first + place, "n": n, "name": f"{n}", "tags": None}
            for place, n in enumerate((low, high))
        ]
        table.insert(pa.Table.from_pylist(rows, SCHEMA), options=ALONE)
    return table


def overlaps(table: Table, *columns: str) -> list[ColumnOverlap]:
    facts = facts_of(context_of(table))
    opened = open_metadata_table(facts.storage, facts.config, facts.timeline, context_of(table).clock)
    return column_overlaps(opened, table.inspect.files(), [table.schema.field(name) for name in columns])


def test_values_that_several_files_hold_are_counted(tmp_path: Path) -> None:
    table = three_files(tmp_path / "t")
    ids, numbers = overlaps(table, "n", "id", "tags")
    # 1 and 8 are in one file each; 3, 5 and 7 in two
    assert (numbers.column, numbers.average, numbers.greatest) == ("n", 1.6, 2)
    assert (numbers.files, numbers.percentiles, numbers.values) == (3, (2, 2, 2, 2), 5)
    assert (ids.column, ids.average, ids.greatest, ids.values) == ("id", 1.0, 1, 6)


def test_a_table_without_statistics_says_so(tmp_path: Path) -> None:
    table = drawstring.create(tmp_path / "t", SCHEMA, record_key="id")
    table.insert(pa.Table.from_pylist([{"id": 1, "n": 1, "name": "a", "tags": None}], SCHEMA))
    with pytest.raises(InvalidError, match=r"has no statistics of columns.* Build them"):
        overlaps(table, "n")
