"""A late row that follows a delete in the log files of a MERGE_ON_READ table."""

from __future__ import annotations

import pyarrow as pa
import pytest

from drawstring.table import Table
from tests.support.rows import SCHEMA, held, rides
from tests.support.tables import MOR, create

FIRST, LATE = ("a", "rome", 6, 1.0), ("a", "rome", 3, 2.0)
MARK = pa.field("_hoodie_is_deleted", pa.bool_())

versions = pytest.mark.parametrize("version", [6, 8, 9])


def with_base_file(version: int) -> Table:
    table = create(SCHEMA.append(MARK), table_type=MOR, version=version)
    table.upsert(rides(FIRST))
    table.services.compact()
    return table


@versions
def test_after_a_plain_delete_the_late_row_comes_in(version: int) -> None:
    table = with_base_file(version)
    table.delete(where="id = 'a'")
    assert held(table) == []
    table.upsert(rides(LATE))
    assert held(table) == [LATE]


@versions
def test_after_a_compaction_of_the_delete_the_late_row_comes_in(version: int) -> None:
    table = with_base_file(version)
    table.delete(where="id = 'a'")
    table.services.compact()
    table.upsert(rides(LATE))
    assert held(table) == [LATE]


@versions
def test_after_a_mark_of_deletion_the_late_row_is_lost(version: int) -> None:
    table = with_base_file(version)
    table.upsert(rides(FIRST).append_column(MARK, pa.array([True])))
    table.upsert(rides(LATE))
    assert held(table) == []
