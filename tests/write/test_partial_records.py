"""Partial updates find their record by key and partition path, as other upserts do."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest

import drawstring
from drawstring.table import Table
from tests.support.partial_rows import PARTIAL
from tests.support.rows import scanned
from tests.support.tables import COW, MOR, new_address

COLUMNS = {"id": pa.string(), "line": pa.string(), "made": pa.int64(), "ts": pa.int64(), "note": pa.string()}
DAYS = {
    "hoodie.datasource.write.keygenerator.type": "TIMESTAMP",
    "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
    "hoodie.keygen.timebased.output.dateformat": "yyyyMMdd",
}
written_whole = pytest.mark.parametrize(("table_type", "version"), [(COW, 9), (MOR, 6)])


def create(table_type: str, version: int, key: Sequence[str], path: str, more: dict[str, str]) -> Table:
    return drawstring.create(
        new_address(),
        pa.schema(COLUMNS),
        record_key=key,
        partition_by=path,
        ordering="ts",
        table_type=table_type,
        version=version,
        properties=more,
    )


def upsert(table: Table, *rows: dict[str, object], **options: str) -> None:
    names = [name for name in COLUMNS if name in rows[0]]
    table.upsert(
        pa.Table.from_pylist(list(rows), pa.schema([(n, COLUMNS[n]) for n in names])), options=options
    )


def notes(table: Table) -> list[tuple[str, int, str]]:
    return scanned(table, ["id", "ts", "note"])


@written_whole
@pytest.mark.parametrize(("there", "comes"), [(None, None), ("", ""), (None, "")])
def test_a_record_without_a_partition_value_keeps_its_other_columns(
    table_type: str, version: int, there: str | None, comes: str | None
) -> None:
    table = create(table_type, version, ["id"], "line", {})
    upsert(table, *({"id": each, "line": there, "made": 1, "ts": 1, "note": f"of {each}"} for each in "ab"))
    upsert(table, {"id": "b", "line": comes, "ts": 2}, **PARTIAL)
    assert notes(table) == [("a", 1, "of a"), ("b", 2, "of b")]


@written_whole
def test_another_time_of_the_same_day_is_the_same_partition(table_type: str, version: int) -> None:
    table = create(table_type, version, ["id"], "made", DAYS)
    upsert(table, {"id": "a", "line": "x", "made": 1, "ts": 1, "note": "of a"})
    upsert(table, {"id": "a", "made": 3_600_000, "ts": 2}, **PARTIAL)
    assert notes(table) == [("a", 2, "of a")]


@written_whole
def test_a_null_in_one_of_several_key_columns_names_a_record(table_type: str, version: int) -> None:
    table = create(table_type, version, ["id", "line"], "made", {})
    upsert(table, *({"id": "a", "line": each, "made": 1, "ts": 1, "note": str(each)} for each in ("x", None)))
    upsert(table, {"id": "a", "line": None, "made": 1, "ts": 2}, **PARTIAL)
    assert notes(table) == [("a", 1, "x"), ("a", 2, "None")]
