"""New tables with a payload class of Hudi's: what the class means holds from the first write on."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import drawstring
from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.table import Table

PAYLOAD = "hoodie.datasource.write.payload.class"
MODEL = "org.apache.hudi.common.model."
SCHEMA = pa.schema(
    [("id", pa.int64()), ("ts", pa.int64()), ("Op", pa.string()), ("a", pa.string()), ("b", pa.string())]
)
tables = pytest.mark.parametrize(
    ("version", "table_type"),
    [(version, kind) for version in (6, 8, 9) for kind in ("COPY_ON_WRITE", "MERGE_ON_READ")],
)


def new_table(
    root: Path, payload: str, version: int, table_type: str, schema: pa.Schema = SCHEMA, ordering: str = "ts"
) -> Table:
    return drawstring.create(
        root / "t",
        schema,
        record_key="id",
        ordering=ordering,
        version=version,
        table_type=table_type,
        properties={PAYLOAD: MODEL + payload},
    )


def upsert(table: Table, payload: str, *rows: tuple[object, ...]) -> None:
    data = pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)
    table.upsert(data, options={PAYLOAD: MODEL + payload})


def values(table: Table) -> dict[int, tuple[str | None, str | None]]:
    rows = table.scan(columns=["id", "a", "b"]).to_arrow().to_pylist()
    return {row["id"]: (row["a"], row["b"]) for row in rows}


@tables
def test_dms_deletes_and_the_latest_write_wins(tmp_path: Path, version: int, table_type: str) -> None:
    payload = "AWSDmsAvroPayload"
    table = new_table(tmp_path, payload, version, table_type)
    upsert(table, payload, *((key, 5, "I", "old", None) for key in (1, 2, 3)))
    upsert(table, payload, (1, 9, "D", None, None), (2, 4, "U", "new", None))
    assert values(table) == {2: ("new", None), 3: ("old", None)}


@tables
def test_partial_update_fills_the_winner_from_the_loser(
    tmp_path: Path, version: int, table_type: str
) -> None:
    payload = "PartialUpdateAvroPayload"
    table = new_table(tmp_path, payload, version, table_type)
    upsert(table, payload, (1, 5, None, "a1", None), (2, 5, None, "a2", "b2"))
    upsert(table, payload, (1, 6, None, None, "new"), (2, 4, None, "late", "late"))
    assert values(table) == {1: ("a1", "new"), 2: ("a2", "b2")}


@tables
def test_non_defaults_fill_the_latest_write_whatever_its_ordering_value(
    tmp_path: Path, version: int, table_type: str
) -> None:
    payload = "OverwriteNonDefaultsWithLatestAvroPayload"
    table = new_table(tmp_path, payload, version, table_type)
    upsert(table, payload, (1, 5, None, "a1", "b1"))
    upsert(table, payload, (1, 4, None, None, "late"))
    assert values(table) == {1: ("a1", "late")}


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_mysql_orders_by_the_columns_that_the_class_prescribes(tmp_path: Path, table_type: str) -> None:
    schema = pa.schema(
        [
            *SCHEMA,
            ("_event_bin_file", pa.string()),
            ("_event_pos", pa.int64()),
            ("_change_operation_type", pa.string()),
        ]
    )
    payload = "debezium.MySqlDebeziumAvroPayload"
    table = new_table(tmp_path, payload, 9, table_type, schema)
    options = {PAYLOAD: MODEL + payload, "hoodie.datasource.write.precombine.field": "ts"}
    for rows in (
        [("log.1", 100, "c", "old"), ("log.1", 100, "c", "old"), ("log.1", 100, "c", "old")],
        [("log.1", 99, "u", "late"), ("log.2", 1, "u", "new"), ("log.2", 1, "d", "gone")],
    ):
        names = ("_event_bin_file", "_event_pos", "_change_operation_type", "a")
        data = [{"id": key, "ts": 1} | dict(zip(names, row, strict=True)) for key, row in enumerate(rows)]
        table.upsert(pa.Table.from_pylist(data, schema), options=options)
    assert values(table) == {0: ("old", None), 1: ("new", None)}


def test_a_schema_without_the_columns_of_the_class_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidError, match="lacks _event_lsn"):
        new_table(tmp_path, "debezium.PostgresDebeziumAvroPayload", 9, "COPY_ON_WRITE")
    assert not (tmp_path / "t/.hoodie/hoodie.properties").exists()


def test_a_write_that_names_another_class_than_the_table_is_refused(tmp_path: Path) -> None:
    table = new_table(tmp_path, "AWSDmsAvroPayload", 9, "COPY_ON_WRITE")
    with pytest.raises(InvalidError, match="payload class"):
        upsert(table, "OverwriteNonDefaultsWithLatestAvroPayload", (1, 1, None, None, None))
    with pytest.raises(InvalidError, match="payload class"):
        upsert(table, "OverwriteWithLatestAvroPayload", (1, 1, None, None, None))


MARKED = {
    PAYLOAD: MODEL + "DefaultHoodieRecordPayload",
    "hoodie.payload.delete.field": "Op",
    "hoodie.payload.delete.marker": "gone",
}


def marked_table(root: Path, version: int, table_type: str, properties: dict[str, str] = MARKED) -> Table:
    return drawstring.create(
        root / "t",
        SCHEMA,
        record_key="id",
        ordering="ts",
        version=version,
        table_type=table_type,
        properties=properties,
    )


@pytest.mark.parametrize("version", [9, 10])
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_delete_marker_deletes_by_event_time(tmp_path: Path, version: int, table_type: str) -> None:
    table = marked_table(tmp_path, version, table_type)
    rows = [(1, 5, "ok", "old", None), (2, 5, "ok", "old", None), (3, 5, "ok", "old", None)]
    upsert(table, "DefaultHoodieRecordPayload", *rows)
    changes = [(1, 6, "gone", None, None), (2, 4, "gone", None, None), (4, 6, "GONE", "kept", None)]
    data = pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in changes], SCHEMA)
    table.upsert(data, options=MARKED)
    assert values(table) == {2: ("old", None), 3: ("old", None), 4: ("kept", None)}
    if table.config.is_merge_on_read:
        table.services.compact()
        assert values(table) == {2: ("old", None), 3: ("old", None), 4: ("kept", None)}


@pytest.mark.parametrize("missing", ["field", "marker"])
def test_half_a_delete_marker_is_refused(tmp_path: Path, missing: str) -> None:
    properties = {key: value for key, value in MARKED.items() if not key.endswith(f"delete.{missing}")}
    with pytest.raises(InvalidError, match="given alone"):
        marked_table(tmp_path, 9, "COPY_ON_WRITE", properties)


def test_a_delete_marker_needs_its_payload_class_and_version_9(tmp_path: Path) -> None:
    without = {key: value for key, value in MARKED.items() if key != PAYLOAD}
    for properties in (without, MARKED | {PAYLOAD: MODEL + "OverwriteWithLatestAvroPayload"}):
        with pytest.raises(InvalidError, match="DefaultHoodieRecordPayload"):
            marked_table(tmp_path, 9, "COPY_ON_WRITE", properties)
    for version in (6, 8):
        with pytest.raises(UnsupportedError, match="version"):
            marked_table(tmp_path, version, "COPY_ON_WRITE")


def test_a_write_that_names_another_delete_marker_than_the_table_is_refused(tmp_path: Path) -> None:
    table = marked_table(tmp_path, 9, "COPY_ON_WRITE")
    rows = pa.Table.from_pylist([dict.fromkeys(SCHEMA.names) | {"id": 1, "ts": 1}], SCHEMA)
    with pytest.raises(InvalidError, match="delete marker"):
        table.upsert(rows, options=MARKED | {"hoodie.payload.delete.marker": "D"})
    plain = new_table(tmp_path / "plain", "DefaultHoodieRecordPayload", 9, "COPY_ON_WRITE")
    with pytest.raises(InvalidError, match="delete field"):
        plain.upsert(rows, options=MARKED)
