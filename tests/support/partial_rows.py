"""Tables of which writes bring some of the columns."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

import drawstring
from drawstring.table import Table
from tests.support.copies import copied
from tests.support.rows import arrow_rows
from tests.support.tables import BUCKETS, new_address

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


@copied
def filled(table_type: str, version: int = 9, index: str = "SIMPLE", ordered: bool = True) -> Table:
    """Create a table with three rows of all columns."""
    table = drawstring.create(
        new_address(),
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
    table.upsert(arrow_rows(SCHEMA, *rows))
    return table


def rows_with(names: str, *rows: tuple[Any, ...]) -> pa.Table:
    """Return rows that have some of the columns; `names` are divided by spaces."""
    schema = pa.schema([SCHEMA.field(name) for name in names.split()])
    return arrow_rows(schema, *rows)
