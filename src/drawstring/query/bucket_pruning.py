"""Bucket pruning: the buckets of a bucket index that can hold rows of a query.

A condition that is true for a few record keys only (`query.key_conditions`) selects the buckets of these
keys.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.config.table.config import TableConfig
from drawstring.filegroups.read.tasks import InstantRange
from drawstring.index.bucket.counts import BucketCounts, stored_counts
from drawstring.index.bucket.detection import bucket_of
from drawstring.index.bucket.simple_bucket import bucket_numbers
from drawstring.keygen.keys import KeyGenerator
from drawstring.model.files import FileSlice
from drawstring.query.key_conditions import FROM_KEY_COLUMNS, key_values
from drawstring.storage.protocol import Storage


@dataclass(frozen=True, slots=True)
class BucketFacts:
    """The parts of a table that determine its buckets.

    Attributes:
        storage: storage of the table.
        config: table configuration.
        instants: instants that the query may see.
    """

    storage: Storage
    config: TableConfig
    instants: InstantRange


class BucketPruning:
    """The buckets that can hold the record keys of a query.

    Args:
        keys: record keys that the query can match.
        counts: number of buckets by partition.
        fields: record key columns that are hashed.
    """

    def __init__(self, keys: pa.Array, counts: BucketCounts, fields: tuple[str, ...]) -> None:
        self._keys = keys
        self._counts = counts
        self._fields = fields
        self._buckets: dict[int, frozenset[int]] = {}

    def may_hold(self, file_slice: FileSlice) -> bool:
        """Return whether a file slice can hold one of the keys.

        A slice whose file id names no bucket of the index always can.

        Args:
            file_slice: the slice.
        """
        count, bucket = self._counts.of(file_slice.partition), bucket_of(file_slice.file_id)
        return bucket is None or bucket >= count or bucket in self.among(count)

    def among(self, count: int) -> frozenset[int]:
        """Return the buckets of the keys in a partition with `count` buckets."""
        if count not in self._buckets:
            self._buckets[count] = frozenset(bucket_numbers(self._keys, count, self._fields).tolist())
        return self._buckets[count]


def bucket_pruning(
    where: pc.Expression | None, schema: pa.Schema, table: BucketFacts
) -> BucketPruning | None:
    """Return the buckets that can hold rows of a query, None when no bucket can be ruled out.

    The table either names its index in its properties or stores bucket counts by partition.

    Args:
        where: the condition; None for all rows.
        schema: the columns.
        table: the table.
    """
    config = table.config
    keys = None if where is None else _record_keys(where, config, schema)
    if keys is None:
        return None
    count = config.bucket_count if config.index_type == "BUCKET" else None
    fixed = BucketCounts(count) if count else None
    counts = stored_counts(table.storage, table.instants.admits, fixed)
    return None if counts is None else BucketPruning(keys, counts, config.record_key_fields)


def _record_keys(where: pc.Expression, config: TableConfig, schema: pa.Schema) -> pa.Array | None:
    """Return all record keys that a condition can be true for, None when they are unknown."""
    fields = config.record_key_fields
    if config.index_type not in (None, "BUCKET") or config.bucket_engine != "SIMPLE" or len(fields) != 1:
        return None
    if config.bucket_hash_fields != fields or fields[0] not in schema.names:
        return None
    if config.key_generator not in FROM_KEY_COLUMNS:
        return None
    keys = key_values(where, schema, fields[0])
    if keys is None:
        return None
    return KeyGenerator(config).record_keys(pa.record_batch([keys], names=list(fields)))
