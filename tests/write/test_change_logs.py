"""Tables that log their changes: the logs say what was written, and what comparing the slices says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import drawstring
from drawstring.base.clock import SystemClock
from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.timeline.properties import save_properties
from tests.support.golden import golden_table
from tests.support.tables import COW, MOR, new_address
from tests.support.tables import create as create_table

SCHEMA = pa.schema(
    [("id", pa.string()), ("city", pa.string()), ("ts", pa.int64()), ("fare", pa.float64()),
     ("tags", pa.list_(pa.string())), ("_hoodie_is_deleted", pa.bool_())]
)  # fmt: skip
ENABLED = "hoodie.table.cdc.enabled"
MODE = "hoodie.table.cdc.supplemental.logging.mode"
MODES = ("OP_KEY_ONLY", "DATA_BEFORE", "DATA_BEFORE_AFTER")


def create(mode: str | None, version: int = 9, table_type: str = COW, **more: Any) -> Table:
    properties = {ENABLED: "true", **({MODE: mode} if mode else {})}
    how = {"version": version, "table_type": table_type, "properties": properties}
    return create_table(SCHEMA, **{**how, **more})


def rows_of(*rows: tuple[Any, ...]) -> pa.Table:
    full = [(*row, ["a", None], False) if len(row) == 4 else row for row in rows]
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in full], SCHEMA)


def changes(table: Table, start: str = "earliest") -> list[tuple[str, Any, Any]]:
    """Return operation and fares before and after, those of one commit sorted."""
    found = table.changes(start).to_arrow().to_pylist()
    rows = [(row["ts_ms"], row["op"], fare(row["before"]), fare(row["after"])) for row in found]
    return [row[1:] for row in sorted(rows, key=str)]


def fare(image: str | None) -> float | None:
    return None if image is None else json.loads(image)["fare"]


def logs(table: Table) -> list[str]:
    stats = context_of(table).storage.list_tree("")
    return sorted(status.path for status in stats if status.path.endswith(".cdc"))


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("mode", MODES)
def test_every_change_of_a_rewrite_is_logged(mode: str, version: int) -> None:
    table = create(mode, version)
    table.insert(rows_of(("a", "rome", 1, 1.0), ("b", "rome", 1, 2.0), ("c", "rome", 5, 3.0)))
    assert logs(table) == []
    table.upsert(rows_of(("a", "rome", 2, 1.5), ("d", "rome", 1, 4.0), ("c", "rome", 4, 9.0)))
    table.upsert(rows_of(("d", "rome", 3, 0.0, None, True), ("b", "rome", 2, 2.5)))
    table.delete(rows_of(("a", "rome", 0, 0.0)))
    assert changes(table) == [
        ("i", None, 1.0), ("i", None, 2.0), ("i", None, 3.0),
        ("i", None, 4.0), ("u", 1.0, 1.5),
        ("d", 4.0, None), ("u", 2.0, 2.5),
        ("d", 1.5, None),
    ]  # fmt: skip
    assert len(logs(table)) == 3
    assert all("_" in path and path.startswith("rome/.") for path in logs(table))


def test_logs_say_what_comparing_the_slices_says() -> None:
    tables = [create(mode) for mode in MODES]
    plain = drawstring.create(
        new_address(), SCHEMA, name="rides", record_key="id", partition_by="city", ordering="ts"
    )
    for table in (plain, *tables):
        table.insert(rows_of(*((f"k{n}", "rome", n % 3, float(n)) for n in range(20))))
        table.upsert(rows_of(*((f"k{n}", "rome", 1, float(-n)) for n in range(10, 30))))
        table.insert(rows_of(*((f"new{n}", "rome", 1, 100.0 + n) for n in range(3))))
        table.delete(rows_of(*((f"k{n}", "rome", 1, 0.0) for n in range(5, 12))))
        table.insert_overwrite(rows_of(("z", "rome", 1, 7.0)))
    expected = changes(plain)
    assert [changes(table) for table in tables] == [expected] * 3


def test_the_log_holds_what_the_mode_says() -> None:
    for mode, names in zip(
        MODES,
        (("op", "record_key"), ("op", "record_key", "before"), ("op", "ts_ms", "before", "after")),
        strict=True,
    ):
        table = create(mode)
        table.insert(rows_of(("a", "rome", 1, 1.0)))
        table.upsert(rows_of(("a", "rome", 2, 2.0)))
        content = context_of(table).storage.read(logs(table)[0])
        header = content[content.index(b'{"type"') :]
        fields = json.JSONDecoder().raw_decode(header.decode("latin-1"))[0]["fields"]
        assert tuple(field["name"] for field in fields) == names


@pytest.mark.parametrize("version", [6, 9])
def test_log_files_need_no_change_logs(version: int) -> None:
    table = create("DATA_BEFORE_AFTER", version, MOR)
    table.insert(rows_of(("a", "rome", 1, 1.0), ("b", "rome", 1, 2.0)))
    table.upsert(rows_of(("a", "rome", 2, 1.5)), options={"hoodie.parquet.small.file.limit": "0"})
    table.delete(rows_of(("b", "rome", 2, 0.0)))
    assert changes(table) == [("i", None, 1.0), ("i", None, 2.0), ("u", 1.0, 1.5), ("d", 2.0, None)]
    table.services.compact()
    assert logs(table) == []
    assert changes(table)[-1] == ("d", 2.0, None)


def test_the_table_says_whether_and_how_it_logs() -> None:
    table = create(None)
    assert table.config.properties[MODE] == "DATA_BEFORE_AFTER"
    row = rows_of(("a", "rome", 1, 1.0))
    table.insert(row, options={ENABLED: "true", MODE: "data_before_after"})
    with pytest.raises(InvalidError, match="mode OP_KEY_ONLY but the table has DATA_BEFORE_AFTER"):
        table.insert(row, options={MODE: "OP_KEY_ONLY"})
    with pytest.raises(InvalidError, match="CDC logging False but the table has True"):
        table.insert(row, options={ENABLED: "false"})
    with pytest.raises(InvalidError, match=r"needs hoodie\.table\.cdc\.enabled"):
        create(None, properties={MODE: "DATA_BEFORE"})
    with pytest.raises(InvalidError, match="Choose one of OP_KEY_ONLY"):
        create("EVERYTHING")
    assert len(table.timeline.writes()) == 1


def test_a_failed_write_leaves_no_change_log(monkeypatch: pytest.MonkeyPatch) -> None:
    table = create("DATA_BEFORE")
    table.insert(rows_of(("a", "rome", 1, 1.0), ("b", "rome", 1, 1.0)))
    storage = type(context_of(table).storage)
    put = storage.put_if_absent

    def failing(self: Any, path: str, data: bytes) -> bool:
        if path.endswith(".commit"):
            raise OSError("no more room")
        return put(self, path, data)

    monkeypatch.setattr(storage, "put_if_absent", failing)
    with pytest.raises(OSError, match="no more room"):
        table.upsert(rows_of(("a", "rome", 2, 2.0)))
    monkeypatch.undo()
    table.upsert(rows_of(("b", "rome", 2, 3.0)))
    assert len(logs(table)) == 1
    assert changes(table) == [("i", None, 1.0), ("i", None, 1.0), ("u", 1.0, 3.0)]


def test_changes_that_merge_column_by_column_are_not_logged_yet() -> None:
    table = create("DATA_BEFORE")
    table.insert(rows_of(("a", "rome", 1, 1.0)))
    patching = {**table.config.properties, "hoodie.table.partial.update.mode": "IGNORE_DEFAULTS"}
    save_properties(context_of(table).storage, patching, SystemClock())
    with pytest.raises(UnsupportedError, match=r"logs changes .* and merges records column by column"):
        table.upsert(rows_of(("a", "rome", 2, 2.0)))


NAMES = (
    "v6_cdc_cow_op_key_only",
    "v9_cdc_cow_data_before",
    "v8_cdc_cow_data_before_after",
    "v9_cdc_mor_data_before",
)


@pytest.mark.parametrize("name", NAMES)
def test_logs_go_on_in_tables_of_real_hudi(name: str, tmp_path: Path) -> None:
    table = golden_table(name, tmp_path)
    before = (
        table.scan()
        .to_arrow()
        .drop_columns(
            [
                "_hoodie_commit_time",
                "_hoodie_commit_seqno",
                "_hoodie_record_key",
                "_hoodie_partition_path",
                "_hoodie_file_name",
            ]
        )
    )
    ordering = table.config.ordering_fields[0]
    late = before.slice(0, 2)
    newer = late.set_column(
        late.column_names.index(ordering),
        ordering,
        pa.array([10**9] * 2).cast(late.schema.field(ordering).type),
    )
    last = table.timeline.latest_write()
    table.upsert(newer)
    table.delete(before.slice(2, 1))
    start = last.requested if table.config.version == 6 else last.completed
    found = table.changes(start).to_arrow().to_pylist()
    assert sorted(row["op"] for row in found) == ["d", "u", "u"]
    assert all(json.loads(row["after"])[ordering] == 10**9 for row in found if row["op"] == "u")
    assert all(row["before"] for row in found)
