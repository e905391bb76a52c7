"""Bucket pruning: which file groups of a bucket index a condition on the record key rules out.

A condition that holds for few keys only, `id = 'a'` or `id IN (...)` whatever else it says, leads to
the buckets of these keys. Arrow does not tell what an expression is made of, but it tells whether one
can be true where something is known: so the keys are those literals between which it cannot.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.config.table import KeyGeneratorType, TableConfig
from drawstring.formats.partition_match import ranges_that_match
from drawstring.index.bucket import bucket_numbers, bucket_of
from drawstring.keygen.keys import KeyGenerator
from drawstring.model.files import FileSlice

KEYS_MAX: Final = 64
"""Literals of a condition up to which its keys are looked for."""

_FROM_KEY_COLUMNS: Final = frozenset(
    {KeyGeneratorType.SIMPLE, KeyGeneratorType.COMPLEX, KeyGeneratorType.NON_PARTITION}
)
"""Key generators whose record key tells the key column's value and nothing else."""

_TEXT: Final = re.compile(r'"((?:[^"\\]|\\.)*)"')
_NUMBER: Final = re.compile(r"(?<![\w.])-?\d+(?![\w.])")


def buckets_to_read(
    where: pc.Expression | None, config: TableConfig, schema: pa.Schema
) -> frozenset[int] | None:
    """Return the buckets that may hold rows of a query, None for all.

    Args:
        where: the condition; None for all rows.
        config: the table, which says its index if it was created with one.
        schema: its columns.
    """
    fields = config.record_key_fields
    if where is None or config.index_type != "BUCKET" or not config.bucket_count or len(fields) != 1:
        return None
    if (
        config.bucket_engine != "SIMPLE"
        or config.bucket_hash_fields != fields
        or fields[0] not in schema.names
    ):
        return None
    if config.key_generator not in _FROM_KEY_COLUMNS:
        return None
    keys = _keys(where, schema, fields[0])
    if keys is None:
        return None
    texts = KeyGenerator(config).record_keys(pa.record_batch([keys], names=list(fields)))
    return frozenset(bucket_numbers(texts, config.bucket_count, fields).tolist())


def is_among(file_slice: FileSlice, buckets: frozenset[int] | None, config: TableConfig) -> bool:
    """Tell whether a slice may be in one of some buckets; those that are in none of the index's may.

    Args:
        file_slice: the slice.
        buckets: the buckets, None for all.
        config: the table.
    """
    if buckets is None:
        return True
    bucket = bucket_of(file_slice.file_id)
    return bucket is None or bucket >= (config.bucket_count or 0) or bucket in buckets


def _keys(where: pc.Expression, schema: pa.Schema, name: str) -> pa.Array | None:
    """Return all values of a column that a condition can be true for, None when that is not known."""
    found = _literals(str(where), schema.field(name).type)
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
