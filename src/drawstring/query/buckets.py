"""Bucket pruning: which file groups of a bucket index a condition on the record key rules out.

A condition that holds for few keys only, `id = 'a'` or `id IN (...)` whatever else it says, leads to
the buckets of these keys. Arrow does not tell what an expression is made of, but it tells whether one
can be true where something is known: so the keys are those literals between which it cannot.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.config.table import KeyGeneratorType, TableConfig
from drawstring.filegroups.tasks import InstantRange
from drawstring.formats.partition_match import ranges_that_match
from drawstring.index.bucket import bucket_numbers, bucket_of
from drawstring.index.bucket_counts import BucketCounts, stored_counts
from drawstring.keygen.keys import KeyGenerator
from drawstring.model.files import FileSlice
from drawstring.storage.protocol import Storage

KEYS_MAX: Final = 64
"""Literals of a condition up to which its keys are looked for."""

_FROM_KEY_COLUMNS: Final = frozenset(
    {KeyGeneratorType.SIMPLE, KeyGeneratorType.COMPLEX, KeyGeneratorType.NON_PARTITION}
)
"""Key generators whose record key tells the key column's value and nothing else."""

_TEXT: Final = re.compile(r'"((?:[^"\\]|\\.)*)"')
_NUMBER: Final = re.compile(r"(?<![\w.])-?\d+(?![\w.])")


@dataclass(frozen=True, slots=True)
class BucketFacts:
    """What the buckets of a table follow from.

    Attributes:
        storage: its files.
        config: its properties.
        instants: which instants count.
    """

    storage: Storage
    config: TableConfig
    instants: InstantRange


class BucketPruning:
    """The buckets that may hold the records that a query finds.

    Args:
        keys: record keys of the records.
        counts: buckets by partition.
        fields: columns that are hashed.
    """

    def __init__(self, keys: pa.Array, counts: BucketCounts, fields: tuple[str, ...]) -> None:
        self._keys = keys
        self._counts = counts
        self._fields = fields
        self._known: dict[int, frozenset[int]] = {}

    def may_hold(self, file_slice: FileSlice) -> bool:
        """Tell whether a slice may have one of the records; one that is in none of the index's buckets may.

        Args:
            file_slice: the slice.
        """
        count, bucket = self._counts.of(file_slice.partition), bucket_of(file_slice.file_id)
        return bucket is None or bucket >= count or bucket in self.among(count)

    def among(self, count: int) -> frozenset[int]:
        """Return which ones of so many buckets they are."""
        if count not in self._known:
            self._known[count] = frozenset(bucket_numbers(self._keys, count, self._fields).tolist())
        return self._known[count]


def bucket_pruning(
    where: pc.Expression | None, schema: pa.Schema, table: BucketFacts
) -> BucketPruning | None:
    """Return the buckets that may hold rows of a query, None for all.

    Args:
        where: the condition; None for all rows.
        schema: the columns.
        table: the table, which says its index if it was created with one, or has counts by partition.
    """
    config = table.config
    texts = None if where is None else _key_texts(where, config, schema)
    if texts is None:
        return None
    count = config.bucket_count if config.index_type == "BUCKET" else None
    fixed = BucketCounts(count) if count else None
    counts = stored_counts(table.storage, table.instants.admits, fixed)
    return None if counts is None else BucketPruning(texts, counts, config.record_key_fields)


def _key_texts(where: pc.Expression, config: TableConfig, schema: pa.Schema) -> pa.Array | None:
    """Return the only record keys that a condition can be true for, None when they are not known."""
    fields = config.record_key_fields
    if config.index_type not in (None, "BUCKET") or config.bucket_engine != "SIMPLE" or len(fields) != 1:
        return None
    if config.bucket_hash_fields != fields or fields[0] not in schema.names:
        return None
    if config.key_generator not in _FROM_KEY_COLUMNS:
        return None
    keys = _keys(where, schema, fields[0])
    if keys is None:
        return None
    return KeyGenerator(config).record_keys(pa.record_batch([keys], names=list(fields)))


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
