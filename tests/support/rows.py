"""Rows of rides, which most tests write, and reading them back."""

from __future__ import annotations

import random
import string
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from drawstring.model.instant import Instant
from drawstring.table import Table

SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        ("city", pa.string()),
        ("ts", pa.int64()),
        ("fare", pa.float64()),
    ]
)
A1, A2, B1 = ("a", "rome", 1, 1.0), ("a", "rome", 2, 2.0), ("b", "rome", 1, 1.0)
WIDE = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        ("city", pa.string()),
        ("ts", pa.int64()),
        ("note", pa.string()),
    ]
)


def rides(*rows: tuple[Any, ...]) -> pa.Table:
    """Return rows of rides: key, city, time and fare of each."""
    return arrow_rows(SCHEMA, *rows)


def arrow_rows(schema: pa.Schema, *rows: tuple[Any, ...]) -> pa.Table:
    """Return rows as an Arrow table: the values of all columns of each."""
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)


def held(table: Table, **how: Any) -> list[tuple[Any, ...]]:
    """Return the rides that a query finds, sorted; `how` are the arguments of `Table.scan`."""
    return scanned(table, SCHEMA.names, **how)


def scanned(table: Table, columns: Iterable[str], **how: Any) -> list[tuple[Any, ...]]:
    """Return the values of some columns that a query finds, sorted by row."""
    return sorted_rows(table.scan(columns=list(columns), **how).to_arrow())


def sorted_rows(rows: pa.Table) -> list[tuple[Any, ...]]:
    """Return rows as sorted tuples."""
    return sorted(tuple(row.values()) for row in rows.to_pylist())


def changed_since(table: Table, write: Instant) -> list[tuple[Any, ...]]:
    """Return the rides that were written after a write, sorted."""
    assert write.completed
    return sorted_rows(table.incremental(write.completed, columns=SCHEMA.names).to_arrow())


def meta_rows(table: Table) -> list[str]:
    """Return commit time, sequence number, key and partition path of all rows as texts, sorted."""
    names = ["_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key", "_hoodie_partition_path"]
    return sorted(map(str, table.scan(columns=names).to_arrow().to_pylist()))


def wide(start: int, count: int, city: str = "rome", ts: int = 1) -> pa.Table:
    """Rows of about 100 bytes that no codec shortens much."""
    chance = random.Random(f"{start}-{ts}")
    notes = ["".join(chance.choices(string.printable, k=110)) for _ in range(count)]
    ids = [f"k{number:06}" for number in range(start, start + count)]
    return pa.table([ids, [city] * count, [ts] * count, notes], schema=WIDE)
