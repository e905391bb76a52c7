"""New tables with a payload class: real Hudi and drawstring store the same, and merge the same in turns."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import drawstring
from drawstring.config.table.properties import decode_properties
from tests.support.referee import Referee
from tests.support.rows import arrow_rows

MODEL = "org.apache.hudi.common.model."
ROWS = pa.schema(
    [
        ("id", pa.string()),
        ("part", pa.string()),
        ("ts", pa.int64()),
        ("Op", pa.string()),
        ("a", pa.string()),
        ("b", pa.string()),
        ("_event_bin_file", pa.string()),
        ("_event_pos", pa.int64()),
        ("_change_operation_type", pa.string()),
        ("_event_lsn", pa.int64()),
    ]
)
ABOUT_MERGING = ("hoodie.record.", "hoodie.compaction.payload", "hoodie.table.legacy", "hoodie.table.partial")
ORDERING = "hoodie.table.ordering.fields"
PAYLOADS = [
    pytest.param(9, "AWSDmsAvroPayload", id="v9-dms"),
    pytest.param(9, "PartialUpdateAvroPayload", id="v9-partial"),
    pytest.param(9, "OverwriteNonDefaultsWithLatestAvroPayload", id="v9-non-defaults"),
    pytest.param(9, "debezium.MySqlDebeziumAvroPayload", id="v9-mysql"),
    pytest.param(9, "debezium.PostgresDebeziumAvroPayload", id="v9-postgres", marks=pytest.mark.long),
    pytest.param(9, "DefaultHoodieRecordPayload", id="v9-default", marks=pytest.mark.long),
    pytest.param(9, "EventTimeAvroPayload", id="v9-event-time", marks=pytest.mark.long),
    pytest.param(9, "OverwriteWithLatestAvroPayload", id="v9-latest", marks=pytest.mark.long),
    pytest.param(8, "PartialUpdateAvroPayload", id="v8-partial", marks=pytest.mark.long),
    pytest.param(8, "EventTimeAvroPayload", id="v8-event-time", marks=pytest.mark.long),
    pytest.param(6, "PartialUpdateAvroPayload", id="v6-partial", marks=pytest.mark.long),
]


def change(number: int, ts: int, a: str | None, b: str | None, op: str = "U") -> tuple[object, ...]:
    kind = "d" if op == "D" else "u"
    return (f"k{number}", "p", ts, op, a, b, f"log.{ts}", ts, kind, ts)


def batches() -> list[pa.Table]:
    """Three writes: an insert; newer, older and deleting changes; and the same again."""
    first = [change(number, 10, f"a{number}", f"b{number}") for number in range(8)]
    second = [
        change(0, 20, "new", None),
        change(1, 5, "late", None),
        change(2, 20, None, None, "D"),
        change(3, 10, "tie", "__debezium_unavailable_value"),
        change(4, 20, None, "__debezium_unavailable_value"),
    ]
    third = [change(0, 30, None, "newer"), change(2, 30, "back", None), change(5, 20, None, "b")]
    return [arrow_rows(ROWS, *rows) for rows in (first, second, third)]


def options_of(version: int, payload: str, table_type: str) -> dict[str, str]:
    # For Debezium's classes Hudi stores ordering fields of its own, and then refuses other ones.
    ordering = {} if "Debezium" in payload else {"hoodie.datasource.write.precombine.field": "ts"}
    return ordering | {
        "hoodie.table.name": "rides",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.datasource.write.table.type": table_type,
        "hoodie.datasource.write.payload.class": MODEL + payload,
        "hoodie.write.table.version": str(version),
        "hoodie.write.auto.upgrade": "false",
        "hoodie.metadata.enable": "false",
    }


def stored(path: Path) -> dict[str, str]:
    properties = decode_properties((path / ".hoodie/hoodie.properties").read_bytes())
    return {key: each for key, each in properties.items() if key == ORDERING or key.startswith(ABOUT_MERGING)}


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize(("version", "payload"), PAYLOADS)
def test_both_create_the_table_alike_and_merge_alike(
    referee: Referee, tmp_path: Path, version: int, payload: str, table_type: str
) -> None:
    options = options_of(version, payload, table_type)
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    drawstring.create(
        ours, ROWS, name="rides", record_key="id", partition_by="part", ordering="ts", version=version,
        table_type=table_type, properties={"hoodie.datasource.write.payload.class": MODEL + payload},
    )  # fmt: skip
    for number, rows in enumerate(batches()):
        referee.write(str(theirs), rows, options)
        if number == 1:
            referee.write(str(ours), rows, options)
        else:
            drawstring.open(ours).upsert(rows)
    assert stored(ours) == stored(theirs)
    expected = rows_in(referee.read(str(theirs)))
    assert len(expected) >= 7
    assert rows_in(referee.read(str(ours))) == expected
    assert rows_in(drawstring.open(ours).scan().to_arrow()) == expected
    assert rows_in(drawstring.open(theirs).scan().to_arrow()) == expected


def rows_in(table: pa.Table) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in table.select(["id", "ts", "a", "b"]).to_pylist())
