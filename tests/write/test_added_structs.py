"""A struct that comes later is null in the rows before it, whatever its fields must not be."""

from __future__ import annotations

import io
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import drawstring
from drawstring.base.errors import InvalidError
from drawstring.table import Table
from tests.support.rows import arrow_rows
from tests.support.tables import COW, MOR, new_address

NULLS = {"hoodie.write.set.null.for.missing.columns": "true"}
OLD = pa.schema([pa.field("id", pa.string(), nullable=False), ("ts", pa.int64())])
PAIR = pa.struct([pa.field("a", pa.int32(), nullable=False), ("b", pa.string())])
A = {"a": 1, "b": "x"}
DEEP = pa.struct([pa.field("s", PAIR, nullable=False), pa.field("t", pa.string(), nullable=False)])
HOLDER = pa.struct(
    [
        pa.field("l", pa.list_(PAIR), nullable=False),
        pa.field("m", pa.map_(pa.string(), PAIR), nullable=False),
        pa.field("d", pa.decimal128(5, 2), nullable=False),
    ]
)
KINDS: dict[str, tuple[pa.DataType, Any]] = {
    "struct": (PAIR, A),
    "in a struct": (DEEP, {"s": A, "t": "t"}),
    "in a list": (pa.list_(DEEP), [None, {"s": A, "t": "t"}, None]),
    "in a map": (pa.map_(pa.string(), DEEP), [("k", {"s": A, "t": "t"}), ("z", None)]),
    "with lists and maps": (HOLDER, {"l": [None, A], "m": [("k", None), ("l", A)], "d": Decimal("1.25")}),
}
WAYS = [(COW, "avro"), (MOR, "avro"), (MOR, "parquet")]


def created(table_type: str, version: int) -> Table:
    path = new_address()
    return drawstring.create(
        path, OLD, record_key="id", ordering="ts", table_type=table_type, version=version
    )


def held(table: Table) -> dict[str, Any]:
    found = table.scan(["id", "more"]).to_arrow()
    pq.write_table(found, io.BytesIO())
    return {row["id"]: row["more"] for row in found.to_pylist()}


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize(("table_type", "log_format"), WAYS)
@pytest.mark.parametrize("name", KINDS)
def test_rows_from_before_a_struct_are_rewritten_and_merged(
    name: str, table_type: str, log_format: str, version: int
) -> None:
    kind, more = KINDS[name]
    new = OLD.append(pa.field("more", kind))
    options = {"hoodie.logfile.data.block.format": log_format}
    table = created(table_type, version)
    table.upsert(arrow_rows(OLD, ("a", 1), ("b", 1), ("c", 1)))
    table.upsert(arrow_rows(new, ("d", 1, more), ("a", 2, None)), options=options)
    assert held(table) == {"a": None, "b": None, "c": None, "d": more}
    table.upsert(arrow_rows(OLD, ("c", 2)), options={**options, **NULLS})
    table.upsert(arrow_rows(new, ("b", 2, more)), options=options)
    if table_type == MOR:
        table.services.compact()
    assert held(table) == {"a": None, "b": more, "c": None, "d": more}


@pytest.mark.parametrize("table_type", [COW, MOR])
def test_a_struct_below_a_null_one_may_grow(table_type: str) -> None:
    new = OLD.append(pa.field("more", DEEP))
    grown = pa.struct(
        [pa.field("s", pa.struct([*PAIR.fields, ("c", PAIR)]), nullable=False), DEEP.field("t")]
    )
    table = created(table_type, 9)
    table.upsert(arrow_rows(OLD, ("a", 1)))
    table.upsert(arrow_rows(new, ("b", 1, {"s": A, "t": "t"})))
    after = {"s": {**A, "c": A}, "t": "t"}
    table.upsert(arrow_rows(OLD.append(pa.field("more", grown)), ("c", 1, after), ("d", 1, None)))
    if table_type == MOR:
        table.upsert(arrow_rows(OLD, ("d", 2)), options=NULLS)
        table.services.compact()
    before = {"s": {**A, "c": None}, "t": "t"}
    assert held(table) == {"a": None, "b": before, "c": after, "d": None}


@pytest.mark.parametrize("kind", [PAIR, DEEP])
def test_a_null_in_a_struct_that_is_there_is_refused(kind: pa.StructType) -> None:
    table = created(COW, 9)
    table.upsert(arrow_rows(OLD, ("a", 1)))
    rows = arrow_rows(OLD.append(pa.field("more", kind)), ("b", 1, {"b": "x", "s": {"b": "x"}, "t": "t"}))
    with pytest.raises(InvalidError, match="non-nullable"):
        table.upsert(rows)
    assert table.scan().to_arrow().num_rows == 1


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize(("table_type", "log_format"), WAYS)
def test_rows_joined_with_nothing_are_written(table_type: str, log_format: str, version: int) -> None:
    options = {"hoodie.logfile.data.block.format": log_format}
    more = pa.array([{"s": A, "t": "t"}], DEEP).take(pa.array([None, 0], pa.int32()))
    rows = pa.table([["a", "b"], [1, 1], more], schema=OLD.append(pa.field("more", DEEP)))
    table = created(table_type, version)
    table.upsert(rows, options=options)
    assert held(table) == {"a": None, "b": {"s": A, "t": "t"}}
    table.upsert(rows, options=options)
    assert held(table) == {"a": None, "b": {"s": A, "t": "t"}}
    if table_type == MOR:
        table.services.compact()
        assert held(table) == {"a": None, "b": {"s": A, "t": "t"}}
