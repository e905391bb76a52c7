"""The values of a column by record key: in the rows of a table, and in a secondary index of it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

import drawstring
from drawstring.base.clock import SteppingClock
from drawstring.metadata.reader import read_rows
from drawstring.metadata.table import Kind, group_numbers, open_metadata_table
from drawstring.query.table_state import load_facts
from drawstring.testing import context_of

Values = set[tuple[str | None, str]]
"""Text of the value, and record key."""


def stored_values(table: drawstring.Table, column: str) -> Values:
    """Return the values of all rows."""
    rows = table.scan(columns=["_hoodie_record_key", column]).to_arrow().to_pylist()
    return {(None if row[column] is None else str(row[column]), row["_hoodie_record_key"]) for row in rows}


def indexed_values(table: drawstring.Table, partition: str) -> Values:
    """Return the values that a secondary index has."""
    rows: list[dict[str, Any]] = table.inspect.metadata(partition).to_pylist()
    found = [(row["value"], row["key"]) for row in rows]
    assert len(found) == len(set(found))
    return set(found)


def misplaced(table: drawstring.Table, partition: str, *, hashes_value: bool) -> list[str]:
    """Return the keys, also those removed, that are in another file group than their hash tells."""
    facts = load_facts(context_of(table).storage, SteppingClock())
    opened = open_metadata_table(facts.storage, facts.config, facts.timeline, SteppingClock())
    slices = opened.slices(partition)
    found = []
    for number, each in enumerate(slices):
        keys = read_rows(opened, each, Kind.SECONDARY_INDEX).column("key").to_pylist()
        hashed = [key.partition("$")[0] + "$" if hashes_value else key for key in keys]
        numbers = group_numbers(pa.array(hashed, pa.string()), len(slices)).tolist()
        found += [key for key, own in zip(keys, numbers, strict=True) if own != number]
    return found
