"""Tables without key columns: every row gets a key, and is known by it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import drawstring
from drawstring.base.errors import InvalidError
from drawstring.engine.local import LocalEngine
from drawstring.table import Table
from tests.support.golden import unpack
from tests.support.rows import arrow_rows, scanned
from tests.support.tables import COW, MOR, new_address

SCHEMA = pa.schema([("city", pa.string()), ("fare", pa.int64())])
KINDS = [(6, COW), (6, MOR), (8, MOR), (9, COW), (9, MOR)]


def create(version: int = 9, table_type: str = COW, **more: Any) -> Table:
    described = {"name": "rides", "partition_by": "city", "version": version, "table_type": table_type}
    return drawstring.create(new_address(), SCHEMA, **described | more)


def keys(table: Table) -> list[str]:
    return sorted(table.scan(columns=["_hoodie_record_key"]).to_arrow().column(0).to_pylist())


@pytest.mark.parametrize(("version", "table_type"), KINDS)
def test_equal_rows_are_different_records(version: int, table_type: str) -> None:
    table = create(version, table_type)
    assert "hoodie.table.recordkey.fields" not in table.config.properties
    same = arrow_rows(SCHEMA, ("rome", 1), ("rome", 1), ("oslo", 1))
    first = table.insert(same)
    table.bulk_insert(same)
    assert table.upsert(same).operation == "upsert"
    assert scanned(table, SCHEMA.names) == [("oslo", 1)] * 3 + [("rome", 1)] * 6
    assert len(set(keys(table))) == 9
    assert all(key.split("_")[0] in {i.requested for i in table.timeline.writes()} for key in keys(table))
    assert {key for key in keys(table) if key.startswith(f"{first.instant}_0_")}
    table.insert_overwrite(arrow_rows(SCHEMA, ("oslo", 5)))
    assert scanned(table, SCHEMA.names) == [("oslo", 5)] + [("rome", 1)] * 6


@pytest.mark.parametrize(("version", "table_type"), KINDS)
def test_rows_of_a_scan_are_updated_and_deleted(version: int, table_type: str) -> None:
    table = create(version, table_type)
    table.insert(arrow_rows(SCHEMA, ("rome", 1), ("rome", 1), ("rome", 2), ("oslo", 3)))
    twos = table.scan(where="fare = 2").to_arrow()
    raised = twos.set_column(twos.schema.get_field_index("fare"), "fare", pc.add(twos.column("fare"), 10))
    table.upsert(raised)
    assert scanned(table, SCHEMA.names) == [("oslo", 3), ("rome", 1), ("rome", 1), ("rome", 12)]
    table.delete(table.scan(where="fare = 1").to_arrow().slice(0, 1))
    assert scanned(table, SCHEMA.names) == [("oslo", 3), ("rome", 1), ("rome", 12)]
    if table_type == MOR:
        table.services.compact()
        assert scanned(table, SCHEMA.names) == [("oslo", 3), ("rome", 1), ("rome", 12)]


def test_rows_with_and_without_keys_may_come_together() -> None:
    table = create()
    table.insert(arrow_rows(SCHEMA, ("rome", 1), ("rome", 2)))
    old = table.scan(where="fare = 1").to_arrow().select([*SCHEMA.names, "_hoodie_record_key"])
    table.upsert(
        pa.concat_tables([old, arrow_rows(SCHEMA, ("rome", 7), ("rome", 7))], promote_options="default")
    )
    assert scanned(table, SCHEMA.names) == [("rome", 1), ("rome", 2), ("rome", 7), ("rome", 7)]
    assert len(set(keys(table))) == 4


def test_inserted_rows_of_a_scan_get_new_keys() -> None:
    table = create()
    table.insert(arrow_rows(SCHEMA, ("rome", 1)))
    table.insert(table.scan().to_arrow())
    assert scanned(table, SCHEMA.names) == [("rome", 1)] * 2
    assert len(set(keys(table))) == 2


def test_keys_are_unique_across_tasks_and_batches() -> None:
    table = create(engine=LocalEngine(threads=4), partition_by=())
    many = pa.table({"city": ["x"] * 300_000, "fare": pa.array(range(300_000))}, schema=SCHEMA)
    table.bulk_insert(many)
    assert len(set(keys(table))) == 300_000


def test_what_needs_key_columns_is_refused() -> None:
    table = create()
    table.insert(arrow_rows(SCHEMA, ("rome", 1)))
    with pytest.raises(InvalidError, match="give those of a scan"):
        table.delete(arrow_rows(SCHEMA, ("rome", 1)))
    with pytest.raises(InvalidError, match="bucket index needs key columns"):
        table.upsert(arrow_rows(SCHEMA, ("rome", 1)), options={"hoodie.index.type": "BUCKET"})
    with pytest.raises(InvalidError, match="record key fare but the table has none"):
        table.upsert(
            arrow_rows(SCHEMA, ("rome", 1)), options={"hoodie.datasource.write.recordkey.field": "fare"}
        )
    assert len(table.timeline.writes()) == 1


def test_dates_make_the_paths_of_a_table_without_keys_too() -> None:
    day = {
        "hoodie.datasource.write.keygenerator.type": "TIMESTAMP",
        "hoodie.keygen.timebased.timestamp.type": "SCALAR",
        "hoodie.keygen.timebased.timestamp.scalar.time.unit": "DAYS",
        "hoodie.keygen.timebased.output.dateformat": "yyyyMMdd",
    }
    table = create(partition_by="fare", properties=day)
    table.insert(arrow_rows(SCHEMA, ("rome", 0), ("oslo", 31)), options=day)
    found = table.scan(columns=["_hoodie_partition_path", "city"], where="fare = '31'").to_arrow().to_pylist()
    assert found == [{"_hoodie_partition_path": "19700201", "city": "oslo"}]


def test_a_table_of_real_hudi_goes_on(tmp_path: Path) -> None:
    table = drawstring.open(unpack("v9_cow_keyless", tmp_path))
    before = table.scan().to_arrow()
    table.insert(before.slice(0, 2))
    table.delete(before.slice(2, 1))
    after = table.scan().to_arrow()
    assert after.num_rows == before.num_rows + 1
    assert len(set(after.column("_hoodie_record_key").to_pylist())) == after.num_rows
