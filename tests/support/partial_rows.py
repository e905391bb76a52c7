"""Tables of which writes bring some of the columns."""

from __future__ import annotations

import uuid
from typing import Any

import pyarrow as pa

import drawstring
from drawstring.table import Table
from tests.support.tables import BUCKETS

PARTIAL = {"drawstring.write.partial_update": "true"}
SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        ("city", pa.string()),
        ("ts", pa.int64()),
        ("fare", pa.float64()),
        ("note", pa.string()),
        ("stops", pa.list_(pa.string())),
    ]
)


def filled(table_type: str, version: int = 9, index: str = "SIMPLE", ordered: bool = True) -> Table:
    table = drawstring.create(
        f"memory://{uuid.uuid4()}",
        SCHEMA,
        record_key="id",
        partition_by="city",
        ordering="ts" if ordered else (),
        table_type=table_type,
        version=version,
        properties=BUCKETS if index == "BUCKET" else {},
    )
    rows = [
        ("a", "rome", 5, 1.0, "n1", ["x"]),
        ("b", "rome", 5, 2.0, "n2", []),
        ("c", "pisa", 5, 3.0, "n3", None),
    ]
    table.upsert(pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA))
    return table


def some(names: str, *rows: tuple[Any, ...]) -> pa.Table:
    schema = pa.schema([SCHEMA.field(name) for name in names.split()])
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)
