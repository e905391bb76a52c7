"""Tables that name payload classes of change capture: which change wins, and what deletes."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import drawstring
from drawstring.table import Table
from tests.support.merge_tables import by_payload, set_properties

UNAVAILABLE = "__debezium_unavailable_value"
SCHEMA = pa.schema(
    [
        ("key", pa.string()),
        ("Op", pa.string()),
        ("_change_operation_type", pa.string()),
        ("_event_seq", pa.string()),
        ("_event_lsn", pa.int64()),
        ("text", pa.string()),
        ("raw", pa.binary()),
    ]
)
tables = pytest.mark.parametrize(
    ("version", "table_type"),
    [(6, "COPY_ON_WRITE"), (6, "MERGE_ON_READ"), (8, "COPY_ON_WRITE"), (8, "MERGE_ON_READ")],
)


@contextmanager
def captured(payload: str, version: int, table_type: str) -> Iterator[Table]:
    with tempfile.TemporaryDirectory() as folder:
        drawstring.create(
            folder, SCHEMA, name="captured", table_type=table_type, record_key="key", version=version
        )
        yield set_properties(Path(folder), by_payload(version, payload))


def change(table: Table, *rows: dict[str, Any]) -> None:
    table.upsert(pa.Table.from_pylist(list(rows), SCHEMA))


def texts(table: Table) -> dict[str, str | None]:
    rows = table.scan(columns=["key", "text"]).to_arrow().to_pylist()
    return {row["key"]: row["text"] for row in rows}


@tables
def test_dms_deletes_by_its_operation_in_either_case(version: int, table_type: str) -> None:
    with captured("AWSDmsAvroPayload", version, table_type) as table:
        change(table, *({"key": key, "text": "old"} for key in "abc"))
        change(
            table, {"key": "a", "Op": "D"}, {"key": "b", "Op": "d"}, {"key": "c", "Op": "U", "text": "new"}
        )
        assert texts(table) == {"c": "new"}


@tables
def test_mysql_orders_by_the_number_of_the_log_file_and_the_position(version: int, table_type: str) -> None:
    with captured("debezium.MySqlDebeziumAvroPayload", version, table_type) as table:
        change(table, *({"key": key, "_event_seq": "9.100", "text": "old"} for key in "abcd"))
        change(
            table,
            {"key": "a", "_event_seq": "10.5", "text": "new"},
            {"key": "b", "_event_seq": "9.99", "text": "late"},
            {"key": "c", "_event_seq": "9.1000", "_change_operation_type": "d"},
            {"key": "d", "_event_seq": "9.100", "text": "tie"},
        )
        assert texts(table) == {"a": "new", "b": "old", "d": "tie"}


@tables
def test_postgres_keeps_what_is_unavailable_and_late_changes_fill_nothing(
    version: int, table_type: str
) -> None:
    with captured("debezium.PostgresDebeziumAvroPayload", version, table_type) as table:
        change(
            table,
            {"key": "a", "_event_lsn": 5, "text": "kept", "raw": b"kept"},
            {"key": "b", "_event_lsn": 5, "text": UNAVAILABLE},
        )
        change(
            table,
            {"key": "a", "_event_lsn": 6, "text": UNAVAILABLE, "raw": UNAVAILABLE.encode()},
            {"key": "b", "_event_lsn": 4, "text": "late"},
        )
        assert texts(table) == {"a": "kept", "b": UNAVAILABLE}
        assert table.scan(where="key = 'a'").to_arrow().column("raw").to_pylist() == [b"kept"]
