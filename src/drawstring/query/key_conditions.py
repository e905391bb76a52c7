"""Record keys that a condition can be true for.

A condition such as `id = 'a'` or `id IN (...)`, with or without further terms, can be true for a few keys
only. These keys select buckets (`query.bucket_pruning`) and rule out base files whose bloom filter has none
of them. Arrow does not expose the structure of an expression, but it can decide whether an expression can be
true in a given range of a column. So the literals of the condition are the keys, provided that the condition
cannot be true between, below or above them.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.config.table.config import KeyGeneratorType, TableConfig
from drawstring.formats.partition_match import ranges_that_match
from drawstring.schema.meta import RECORD_KEY

KEYS_MAX: Final = 64
"""Largest number of literals in a condition whose keys are determined."""

FROM_KEY_COLUMNS: Final = frozenset(
    {KeyGeneratorType.SIMPLE, KeyGeneratorType.COMPLEX, KeyGeneratorType.NON_PARTITION}
)
"""Key generators whose record key consists of the value of the key column only."""

_GENERATOR_NAMES: Final = ("hoodie.table.keygenerator.type", "hoodie.table.keygenerator.class")
_TEXT: Final = re.compile(r'"((?:[^"\\]|\\.)*)"')
_NUMBER: Final = re.compile(r"(?<![\w.])-?\d+(?![\w.])")


def stored_keys(
    where: pc.Expression | None, config: TableConfig, schema: pa.Schema
) -> tuple[str, ...] | None:
    """Return all record keys, as stored in base files, that a condition can be true for; None for any.

    Each value yields two keys, with and without the column name as prefix, because the COMPLEX key generators
    of Hudi releases differ in this. A table that does not name its key generator may have any keys.

    Args:
        where: the condition; None for all rows.
        config: table configuration.
        schema: the table's columns.
    """
    if where is None or not config.populate_meta_fields:
        return None
    if RECORD_KEY in schema.names and (keys := key_values(where, schema, RECORD_KEY)) is not None:
        return tuple(keys.to_pylist())
    fields = config.record_key_fields
    if len(fields) != 1 or fields[0] not in schema.names or config.key_generator not in FROM_KEY_COLUMNS:
        return None
    if not any(config.properties.get(name) for name in _GENERATOR_NAMES):
        return None
    values = key_values(where, schema, fields[0])
    if values is None:
        return None
    texts = values.cast(pa.string()).to_pylist()
    return tuple(f"{prefix}{text}" for text in texts for prefix in ("", f"{fields[0]}:"))


def key_values(where: pc.Expression, schema: pa.Schema, name: str) -> pa.Array | None:
    """Return all values of a column that a condition can be true for, None when they are unknown.

    Args:
        where: the condition.
        schema: the columns.
        name: the column, of type string or integer.
    """
    text = str(where)
    literals = _literals(text, schema.field(name).type) if name in text else None
    if not literals or len(literals) > KEYS_MAX:
        return None
    keys = pa.array(sorted(literals), schema.field(name).type)
    column = pc.field(name)
    between = [
        column < keys[0],
        *((column > low) & (column < high) for low, high in pairwise(keys)),
        column > keys[-1],
        column.is_null(),
    ]
    if any(ranges_that_match(where, schema, between)):
        return None
    return keys.filter(pa.array(ranges_that_match(where, schema, [column == key for key in keys])))


def _literals(text: str, kind: pa.DataType) -> set[Any]:
    """Return the literals of a type in the text of an expression; missing one does no harm."""
    if pa.types.is_string(kind):
        return {re.sub(r"\\(.)", r"\1", match[1]) for match in _TEXT.finditer(text)} - {""}
    if pa.types.is_integer(kind):
        bits = kind.bit_width - 1
        numbers = (int(digits) for digits in _NUMBER.findall(text))
        return {number for number in numbers if -(1 << bits) <= number < 1 << bits}
    return set()
