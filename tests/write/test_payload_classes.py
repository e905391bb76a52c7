"""Each payload class of the catalogue has its effect in tables that may have it; others are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest

import drawstring
from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.config.payload_classes import (
    COMMIT_TIME_STRATEGY,
    EMPTY_PAYLOAD,
    EVENT_TIME_STRATEGY,
    PAYLOAD_CLASSES,
    PAYLOAD_STRATEGY,
)
from drawstring.table import Table
from tests.support.merge_tables import by_payload, set_properties
from tests.support.rows import arrow_rows

PAYLOAD: Final = "hoodie.datasource.write.payload.class"
UNAVAILABLE: Final = "__debezium_unavailable_value"
ROWS: Final = pa.schema(
    [
        ("id", pa.string()),
        ("ts", pa.int64()),
        ("Op", pa.string()),
        ("a", pa.string()),
        ("b", pa.string()),
        ("_event_bin_file", pa.string()),
        ("_event_pos", pa.int64()),
        ("_event_seq", pa.string()),
        ("_change_operation_type", pa.string()),
        ("_event_lsn", pa.int64()),
    ]
)
OLD: Final = ("old", "old")
FOUND: Final[dict[str, dict[str, tuple[str | None, str | None]]]] = {
    "OverwriteWithLatestAvroPayload": {
        "late": ("late", None), "tie": ("tie", "tie"), "new": ("new", None), "op": ("op", "op"),
        "gap": ("gap", UNAVAILABLE),
    },
    "DefaultHoodieRecordPayload": {
        "late": OLD, "tie": ("tie", "tie"), "new": ("new", None), "op": ("op", "op"),
        "gap": ("gap", UNAVAILABLE),
    },
    "EventTimeAvroPayload": {
        "late": OLD, "tie": ("tie", "tie"), "new": ("new", None), "op": ("op", "op"),
        "gap": ("gap", UNAVAILABLE),
    },
    "PartialUpdateAvroPayload": {
        "late": OLD, "tie": ("tie", "tie"), "new": ("new", "old"), "op": ("op", "op"),
        "gap": ("gap", UNAVAILABLE),
    },
    "OverwriteNonDefaultsWithLatestAvroPayload": {
        "late": ("late", "old"), "tie": ("tie", "tie"), "new": ("new", "old"), "op": ("op", "op"),
        "gap": ("gap", UNAVAILABLE),
    },
    "AWSDmsAvroPayload": {
        "late": ("late", None), "tie": ("tie", "tie"), "new": ("new", None), "gap": ("gap", UNAVAILABLE),
    },
    "MySqlDebeziumAvroPayload": {
        "late": OLD, "tie": ("tie", "tie"), "new": ("new", None), "gap": ("gap", UNAVAILABLE),
    },
    "PostgresDebeziumAvroPayload": {
        "late": OLD, "tie": ("tie", "tie"), "new": ("new", None), "gap": ("gap", "old"),
    },
    "FirstValueAvroPayload": {
        "late": OLD, "tie": OLD, "new": ("new", None), "op": ("op", "op"), "gap": ("gap", UNAVAILABLE),
    },
}  # fmt: skip
"""The columns a and b of each key after both writes, by the simple name of the class."""
VERSIONS: Final = (6, 8, 9)
TYPES: Final = ("COPY_ON_WRITE", "MERGE_ON_READ")
classes = pytest.mark.parametrize("name", sorted(PAYLOAD_CLASSES))
tables = pytest.mark.parametrize(
    ("version", "table_type"), [(version, kind) for version in VERSIONS for kind in TYPES]
)


def change(key: str, ts: int, a: str, b: str | None, op: str = "U") -> tuple[object, ...]:
    return (key, ts, op, a, b, "log.1", ts, f"1.{ts}", "d" if op == "D" else "u", ts)


BEFORE: Final = [change(key, 5, "old", "old") for key in ("late", "tie", "new", "op", "gap")]
AFTER: Final = [
    change("late", 4, "late", None),
    change("tie", 5, "tie", "tie"),
    change("new", 6, "new", None),
    change("op", 6, "op", "op", "D"),
    change("gap", 6, "gap", UNAVAILABLE),
]


def new_table(root: Path, version: int, table_type: str, payload: str | None) -> Table:
    properties = {PAYLOAD: payload} if payload else {}
    return drawstring.create(
        root,
        ROWS,
        record_key="id",
        ordering="ts",
        version=version,
        table_type=table_type,
        properties=properties,
    )


def after_both_writes(table: Table) -> dict[str, tuple[Any, Any]]:
    for rows in (BEFORE, AFTER):
        table.upsert(arrow_rows(ROWS, *rows))
    found = values(table)
    if table.config.is_merge_on_read:
        table.services.compact()
        assert values(table) == found
    return found


def values(table: Table) -> dict[str, tuple[Any, Any]]:
    rows = table.scan(columns=["id", "a", "b"]).to_arrow().to_pylist()
    return {row["id"]: (row["a"], row["b"]) for row in rows}


@tables
@classes
def test_a_class_merges_by_its_rule_or_is_refused_at_creation(
    tmp_path: Path, name: str, version: int, table_type: str
) -> None:
    payload, root = PAYLOAD_CLASSES[name], tmp_path / "t"
    if payload.stored is None:
        with pytest.raises(UnsupportedError, match=f"no payload class {name}"):
            new_table(root, version, table_type, payload.full_name)
        assert not root.exists()
        return
    table = new_table(root, version, table_type, payload.full_name)
    assert after_both_writes(table) == FOUND[name]


@tables
@pytest.mark.parametrize("name", [each.name for each in PAYLOAD_CLASSES.values() if not each.is_plain])
def test_a_table_that_has_the_class_already_merges_by_its_rule(
    tmp_path: Path, name: str, version: int, table_type: str
) -> None:
    payload = PAYLOAD_CLASSES[name]
    new_table(tmp_path / "t", version, table_type, None)
    stored = by_payload(version, payload.full_name.removeprefix("org.apache.hudi.common.model."))
    table = set_properties(tmp_path / "t", stored)
    assert after_both_writes(table) == FOUND[name]


def test_a_write_names_a_class_that_only_older_tables_have(tmp_path: Path) -> None:
    new_table(tmp_path / "t", 8, "MERGE_ON_READ", None)
    payload = PAYLOAD_CLASSES["FirstValueAvroPayload"].full_name
    table = set_properties(tmp_path / "t", by_payload(8, "FirstValueAvroPayload"))
    for rows in (BEFORE, AFTER):
        table.upsert(arrow_rows(ROWS, *rows), options={PAYLOAD: payload})
    assert values(table) == FOUND["FirstValueAvroPayload"]
    plain = new_table(tmp_path / "plain", 8, "MERGE_ON_READ", None)
    with pytest.raises(InvalidError, match="payload class"):
        plain.upsert(arrow_rows(ROWS, *BEFORE), options={PAYLOAD: payload})


@pytest.mark.parametrize(
    "name",
    [
        *PAYLOAD_CLASSES,
        *(each.full_name for each in PAYLOAD_CLASSES.values()),
        EMPTY_PAYLOAD,
        COMMIT_TIME_STRATEGY,
        EVENT_TIME_STRATEGY,
        PAYLOAD_STRATEGY,
    ],
)
def test_a_merger_that_would_never_run_is_not_registered(name: str) -> None:
    with pytest.raises(InvalidError, match="would never run"):
        drawstring.register_merger(name, lambda older, newer: older)


@tables
def test_a_registered_merger_merges_a_new_table_of_its_class(
    tmp_path: Path, version: int, table_type: str
) -> None:
    drawstring.register_merger("test.classes.KeepsOlder", lambda older, newer: older)
    table = new_table(tmp_path / "t", version, table_type, "test.classes.KeepsOlder")
    keys = ("late", "tie", "new", "op", "gap")
    assert after_both_writes(table) == dict.fromkeys(keys, OLD)


@tables
def test_a_class_that_nobody_registered_is_refused_before_anything_is_written(
    tmp_path: Path, version: int, table_type: str
) -> None:
    with pytest.raises(UnsupportedError, match="register_merger") as refused:
        new_table(tmp_path / "t", version, table_type, "com.example.NobodyKnows")
    assert "FirstValueAvroPayload" not in str(refused.value)
    assert not (tmp_path / "t").exists()
