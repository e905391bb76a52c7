"""Tables with ORC base files: real Hudi reads those of drawstring and goes on with them, but for dates."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import drawstring
from tests.support.histories import Case, write
from tests.support.interop import assert_both_read, hudi_options
from tests.support.referee import Referee, RefereeError
from tests.support.tables import COW, MOR

ORC = {"hoodie.table.base.file.format": "ORC"}
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("city", pa.string()),
        ("ts", pa.int64()),
        ("fare", pa.decimal128(12, 2)),
        ("stops", pa.list_(pa.string())),
        ("driver", pa.struct([("name", pa.string()), ("age", pa.int32())])),
        ("tags", pa.map_(pa.string(), pa.int64())),
        ("seen", pa.timestamp("us", "UTC")),
    ]
)
DATED = SCHEMA.append(pa.field("day", pa.date32()))


def rides(ts: int, *ids: int, schema: pa.Schema = SCHEMA) -> pa.Table:
    rows = [
        {
            "id": str(number),
            "city": "rome",
            "ts": ts,
            "fare": Decimal(number * ts),
            "stops": ["a", None],
            "driver": {"name": "d", "age": number},
            "tags": [("k", ts)],
            "seen": dt.datetime(2024, 5, 1, 12, 0, ts, tzinfo=dt.UTC),
            "day": dt.date(2024, 5, ts),
        }
        for number in ids
    ]
    return pa.Table.from_pylist(rows, schema)


def created(path: Path, table_type: str, schema: pa.Schema) -> drawstring.Table:
    how = {"name": "rides", "record_key": "id", "partition_by": "city", "ordering": "ts", "version": 9}
    return drawstring.create(path, schema, **how, table_type=table_type, properties=ORC)


def shown(rows: pa.Table) -> list[dict[str, Any]]:
    return sorted(rows.select(SCHEMA.names).cast(SCHEMA).to_pylist(), key=lambda row: str(row["id"]))


@pytest.mark.parametrize("table_type", [COW, MOR])
def test_hudi_reads_orc_base_files(referee: Referee, tmp_path: Path, table_type: str) -> None:
    history = write(str(tmp_path / "rides"), Case(9, table_type), properties=ORC)
    assert_both_read(referee, history)


@pytest.mark.parametrize("table_type", [COW, MOR])
def test_both_write_a_table_with_orc_base_files_in_turns(
    referee: Referee, tmp_path: Path, table_type: str
) -> None:
    table = created(tmp_path / "t", table_type, SCHEMA)
    options = hudi_options(Case(9, table_type))
    table.upsert(rides(1, 0, 1, 2, 3))
    referee.write(table.uri, rides(2, 1, 7), options)
    table.upsert(rides(3, 2))
    if table_type == MOR:
        assert table.compact()
    referee.write(table.uri, rides(4, 3, 9), options)
    parts = [rides(1, 0), rides(2, 1), rides(3, 2), rides(4, 3), rides(2, 7), rides(4, 9)]
    expected = shown(pa.concat_tables(parts))
    assert shown(drawstring.open(table.uri).scan().to_arrow()) == expected
    assert shown(referee.read(table.uri)) == expected
    assert drawstring.open(table.uri).validate().is_sound


def test_hudi_writes_no_dates_to_orc_files_not_even_to_its_own(referee: Referee, tmp_path: Path) -> None:
    options = hudi_options(Case(9, COW))
    with pytest.raises(RefereeError):
        referee.write(str(tmp_path / "theirs"), rides(1, 0, schema=DATED), {**options, **ORC})
    table = created(tmp_path / "ours", COW, DATED)
    table.upsert(rides(1, 0, 1, schema=DATED))
    with pytest.raises(RefereeError):
        referee.write(table.uri, rides(2, 1, schema=DATED), options)
    table.upsert(rides(3, 2, schema=DATED))
    expected = shown(pa.concat_tables([rides(1, 0, 1), rides(3, 2)]))
    assert shown(table.scan().to_arrow()) == shown(referee.read(table.uri)) == expected
