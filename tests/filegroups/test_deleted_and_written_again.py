"""Records of a MERGE_ON_READ table that were deleted and then written again with a lower ordering value."""

from __future__ import annotations

import pyarrow as pa
import pytest

from drawstring.table import Table
from tests.support.rows import rides
from tests.support.tables import COW, MOR, WITHOUT_SERVICES, create, versions

LOG_COMPACTION = {**WITHOUT_SERVICES, "hoodie.log.compaction.blocks.threshold": "2"}


def rows(table: Table) -> list[tuple[str, int, float]]:
    found = table.scan(["id", "ts", "fare"]).to_arrow().to_pylist()
    return sorted((row["id"], row["ts"], row["fare"]) for row in found)


def upsert(table: Table, *given: tuple[str, str, int, float]) -> None:
    table.upsert(rides(*given), options=WITHOUT_SERVICES)


def deleted_and_written_again(table_type: str, version: int) -> Table:
    table = create(table_type=table_type, version=version)
    upsert(table, ("a", "rome", 100, 1.0), ("b", "rome", 100, 1.0))
    table.delete(where="id = 'a'", options=WITHOUT_SERVICES)
    assert rows(table) == [("b", 100, 1.0)]
    upsert(table, ("a", "rome", 50, 2.0))
    return table


@versions
@pytest.mark.parametrize("table_type", [COW, MOR])
def test_the_version_before_the_delete_does_not_come_back(table_type: str, version: int) -> None:
    table = deleted_and_written_again(table_type, version)
    assert rows(table) == [("a", 50, 2.0), ("b", 100, 1.0)]
    assert table.scan(["id"], where="id = 'a' and ts = 100").to_arrow().num_rows == 0
    upsert(table, ("a", "rome", 40, 3.0))
    assert rows(table) == [("a", 50, 2.0), ("b", 100, 1.0)]
    upsert(table, ("a", "rome", 60, 4.0))
    if table_type == MOR:
        table.services.compact(options=WITHOUT_SERVICES)
    assert rows(table) == [("a", 60, 4.0), ("b", 100, 1.0)]


@pytest.mark.parametrize("version", [8, 9, 10])
def test_a_log_compaction_keeps_that_the_record_came_after_its_delete(version: int) -> None:
    table = deleted_and_written_again(MOR, version)
    table.services.log_compact(options=LOG_COMPACTION)
    assert rows(table) == [("a", 50, 2.0), ("b", 100, 1.0)]
    upsert(table, ("a", "rome", 40, 3.0))
    assert rows(table) == [("a", 50, 2.0), ("b", 100, 1.0)]


def test_a_delete_with_an_ordering_value_outdates_older_versions() -> None:
    schema = rides().schema.append(pa.field("_hoodie_is_deleted", pa.bool_()))
    table = create(schema, table_type=MOR)

    def write(ts: int, fare: float, *, is_deleted: bool) -> None:
        row = rides(("a", "rome", ts, fare)).append_column(schema[-1], pa.array([is_deleted]))
        table.upsert(row, options=WITHOUT_SERVICES)

    write(100, 1.0, is_deleted=False)
    write(100, 1.0, is_deleted=True)
    write(50, 2.0, is_deleted=False)
    assert rows(table) == []
    write(150, 3.0, is_deleted=False)
    assert rows(table) == [("a", 150, 3.0)]
