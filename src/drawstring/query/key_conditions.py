"""Which record keys a condition can be true for.

A condition that holds for few keys only, `id = 'a'` or `id IN (...)` whatever else it says, leads to the
buckets of these keys (`query.bucket_pruning`), and past the base files whose bloom filter lacks them all.
Arrow does not tell what an expression is made of, but it tells whether one can be true where something is
known: so the keys are those literals between which it cannot.
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
"""Literals of a condition up to which its keys are looked for."""

FROM_KEY_COLUMNS: Final = frozenset(
    {KeyGeneratorType.SIMPLE, KeyGeneratorType.COMPLEX, KeyGeneratorType.NON_PARTITION}
)
"""Key generators whose record key tells the key column's value and nothing else."""

_GENERATOR_NAMES: Final = ("hoodie.table.keygenerator.type", "hoodie.table.keygenerator.class")
_TEXT: Final = re.compile(r'"((?:[^"\\]|\\.)*)"')
_NUMBER: Final = re.compile(r"(?<![\w.])-?\d+(?![\w.])")


def stored_keys(
    where: pc.Expression | None, config: TableConfig, schema: pa.Schema
) -> tuple[str, ...] | None:
    """Return the only texts of record keys in base files that a condition can be true for; None for any.

    Of a value both texts are among them, bare and with the column's name in front: releases of Hudi differ in
    what their COMPLEX generator makes. A table that does not say what makes its keys may have any.

    Args:
        where: the condition; None for all rows.
        config: the table.
        schema: its columns.
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
    """Return all values of a column that a condition can be true for, None when that is not known.

    Args:
        where: the condition.
        schema: the columns.
        name: the column, of text or whole numbers.
    """
    said = str(where)
    found = _literals(said, schema.field(name).type) if name in said else None
    if not found or len(found) > KEYS_MAX:
        return None
    keys = pa.array(sorted(found), schema.field(name).type)
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
    """Return what may be values of a type in the text of an expression; to miss one does no harm."""
    if pa.types.is_string(kind):
        return {re.sub(r"\\(.)", r"\1", match[1]) for match in _TEXT.finditer(text)} - {""}
    if pa.types.is_integer(kind):
        bits = kind.bit_width - 1
        return {number for each in _NUMBER.findall(text) if -(1 << bits) <= (number := int(each)) < 1 << bits}
    return set()
