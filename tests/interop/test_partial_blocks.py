"""Log blocks with some of the columns, as drawstring's updates and merges write them, read by real Hudi."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import drawstring
from tests.support.referee import Referee
from tests.support.rows import arrow_rows, sorted_rows
from tests.support.tables import create

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("city", pa.string()),
        ("ts", pa.int64()),
        ("fare", pa.float64()),
        ("note", pa.string()),
    ]
)


def rows(*values: tuple[Any, ...]) -> pa.Table:
    return arrow_rows(SCHEMA, *values)


@pytest.mark.parametrize("log_format", ["parquet", "avro"])
@pytest.mark.parametrize("version", [9, pytest.param(8, marks=pytest.mark.long)])
def test_real_hudi_reads_partial_blocks_and_goes_on(
    referee: Referee, tmp_path: Path, version: int, log_format: str
) -> None:
    path = str(tmp_path / "rides")
    options = {
        "hoodie.table.name": "rides",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "city",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.write.table.version": str(version),
        "hoodie.write.auto.upgrade": "false",
    }
    table = create(SCHEMA, path, table_type="MERGE_ON_READ", version=version)
    model = {id: (id, "rome", 5, float(number), f"n{number}") for number, id in enumerate("abcdef")}
    table.insert(rows(*model.values()))

    def settled(**changed: tuple[Any, ...] | None) -> None:
        for id, row in changed.items():
            if row is None:
                del model[id]
            else:
                model[id] = row
        for found in (
            drawstring.open(path).scan(columns=SCHEMA.names).to_arrow(),
            referee.read(path, columns=SCHEMA.names),
        ):
            assert sorted_rows(found) == sorted(model.values())

    logged = {
        "hoodie.logfile.data.block.format": log_format,
        "hoodie.spark.sql.merge.into.partial.updates": "true",
        "hoodie.compact.inline": "false",  # Hudi is to compact the partial blocks
    }
    table.update("id = 'a'", {"fare": "fare + 10"}, options=logged)
    settled(a=("a", "rome", 5, 10.0, "n0"))
    source = rows(("b", "rome", 6, 7.0, None), ("c", "rome", 6, 8.0, None), ("x", "rome", 1, 9.0, "new"))
    (
        table.merge(source, "target.id = source.id", options=logged)
        .when_matched_delete("source.id = 'c'")
        .when_matched_update({"note": "source.note", "ts": "source.ts"})
        .when_not_matched_insert_all()
        .execute()
    )
    settled(b=("b", "rome", 6, 1.0, None), c=None, x=("x", "rome", 1, 9.0, "new"))
    theirs = (("a", "rome", 7, 70.0, "theirs"), ("d", "rome", 7, 71.0, "theirs"))
    referee.write(path, rows(*theirs), options)
    settled(a=theirs[0], d=theirs[1])
    drawstring.open(path).update("id in ('a', 'e')", {"note": "'ours'"}, options=logged)
    settled(a=("a", "rome", 7, 70.0, "ours"), e=("e", "rome", 5, 4.0, "ours"))
    assert referee.compact(path, options)
    settled()


@pytest.mark.parametrize("ordering", ["ts", ()], ids=["event", "commit"])
def test_real_hudi_reads_a_key_that_comes_back_after_some_of_its_columns_were_set(
    referee: Referee, tmp_path: Path, ordering: Any
) -> None:
    logged = {
        "hoodie.logfile.data.block.format": "avro",
        "hoodie.spark.sql.merge.into.partial.updates": "true",
        "hoodie.compact.inline": "false",
    }
    path = str(tmp_path / "rides")
    kind = {"table_type": "MERGE_ON_READ", "record_key": "id", "partition_by": "city", "ordering": ordering}
    table = drawstring.create(path, SCHEMA, **kind)
    table.insert(rows(("a", "rome", 5, 1.0, "n"), ("b", "rome", 5, 1.0, "n")))
    table.update(None, {"fare": "fare + 1"}, options=logged)
    table.delete(where="id = 'a'", options=logged)
    back, other = ("a", "rome", 6, 9.0, "back"), ("b", "rome", 5, 2.0, "n")
    table.upsert(rows(back), options=logged)
    table.update("id = 'b'", {"fare": "fare + 1"}, options=logged)
    found = referee.read(path, columns=SCHEMA.names).to_pylist()
    assert sorted(tuple(row.values()) for row in found) == [back, (*other[:3], 3.0, "n")]
