"""Bucket pruning: which file groups of a bucket index a condition on the record key rules out.

A condition that holds for few keys only (`query.key_conditions`) leads to the buckets of these keys.
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
    if config.key_generator not in FROM_KEY_COLUMNS:
        return None
    keys = key_values(where, schema, fields[0])
    if keys is None:
        return None
    return KeyGenerator(config).record_keys(pa.record_batch([keys], names=list(fields)))
