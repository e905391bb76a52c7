"""Rows that lack columns of the table are refused, unless the caller says what becomes of these columns."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import drawstring
from drawstring.base.errors import InvalidError
from tests.support.tables import COW, MOR, new_address

PLACE = pa.struct([("name", pa.string()), ("zip", pa.int32())])
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("ts", pa.int64()),
        ("note", pa.string()),
        ("place", PLACE),
        ("stops", pa.list_(PLACE)),
        ("named", pa.map_(pa.string(), PLACE)),
    ]
)
OXFORD = {"name": "Oxford", "zip": 1}
ROW = {"id": 1, "ts": 1, "note": "kept", "place": OXFORD, "stops": [OXFORD], "named": [("a", OXFORD)]}
NULLS = "hoodie.write.set.null.for.missing.columns"


def created(table_type: str = COW, version: int = 9, schema: pa.Schema = SCHEMA) -> drawstring.Table:
    table = drawstring.create(
        new_address(),
        schema,
        record_key="id",
        ordering="ts",
        table_type=table_type,
        version=version,
    )
    table.insert(pa.Table.from_pylist([ROW], schema))
    return table


def lacking(*names: str) -> pa.Table:
    return pa.Table.from_pylist([{**ROW, "ts": 2}], SCHEMA).drop_columns(list(names))


def rows(table: drawstring.Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = table.scan(SCHEMA.names).to_arrow().to_pylist()
    return found


@pytest.mark.parametrize(("table_type", "version"), [(COW, 9), (MOR, 9), (MOR, 6)])
@pytest.mark.parametrize(
    "verb", ["upsert", "insert", "bulk_insert", "append", "insert_overwrite", "insert_overwrite_table"]
)
def test_rows_that_lack_columns_are_refused_and_nothing_changes(
    verb: str, table_type: str, version: int
) -> None:
    table = created(table_type, version)
    before = table.timeline.instants
    with pytest.raises(InvalidError, match=f"lack columns of the table: note, stops.*{NULLS}=true") as caught:
        getattr(table, verb)(lacking("note", "stops"))
    assert ("drawstring.write.partial_update=true" in str(caught.value)) == (verb == "upsert")
    assert rows(table) == [ROW]
    assert table.timeline.instants == before


@pytest.mark.parametrize("table_type", [COW, MOR])
def test_the_caller_says_what_becomes_of_columns_that_rows_lack(table_type: str) -> None:
    table = created(table_type)
    table.upsert(lacking("note"), options={"drawstring.write.partial_update": "true"})
    assert rows(table) == [{**ROW, "ts": 2}]
    table.upsert(lacking("note"), options={NULLS: "true"})
    assert rows(table) == [{**ROW, "ts": 2, "note": None}]
    table = created(table_type)
    table.upsert(lacking("note"), options={"hoodie.datasource.write.reconcile.schema": "true"})
    assert rows(table) == [{**ROW, "ts": 2, "note": None}]
    with pytest.raises(InvalidError, match="lack columns"):
        table.upsert(lacking("note"), options={NULLS: "false"})


def test_fields_of_structs_count_at_any_depth() -> None:
    name_only = pa.struct([("name", pa.string())])
    place = pa.array([{"name": "Rome"}], name_only)
    for name, column, missing in (
        ("place", place, "place.zip"),
        ("stops", pa.array([[{"name": "Rome"}]], pa.list_(name_only)), "stops.item.zip"),
        ("named", pa.array([[("a", {"name": "Rome"})]], pa.map_(pa.string(), name_only)), "named.value.zip"),
    ):
        table = created()
        given = lacking(name).append_column(name, column)
        with pytest.raises(InvalidError, match=f"lack columns of the table: {missing}\\."):
            table.upsert(given)
        assert rows(table) == [ROW]


def test_what_needs_no_other_columns_goes_on_without_them() -> None:
    table = created()
    table.merge(lacking("note", "place", "stops", "named"), "target.id = source.id").when_matched_update(
        {"ts": "source.ts"}
    ).execute()
    table.update("id = 1", {"note": "'set'"})
    assert rows(table) == [{**ROW, "ts": 2, "note": "set"}]
    table.delete(lacking("note", "place", "stops", "named"))
    assert rows(table) == []


def test_rows_without_the_mark_of_deleted_rows_are_not_deleted() -> None:
    schema = SCHEMA.append(pa.field("_hoodie_is_deleted", pa.bool_()))
    table = created(schema=schema)
    table.upsert(lacking())
    assert rows(table) == [{**ROW, "ts": 2}]
