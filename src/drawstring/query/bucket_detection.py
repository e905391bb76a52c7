"""Buckets of a table that does not say how many it has, like those of Apache Hudi; for keys of one column.

A file group of a bucket index is named by its bucket, and its keys tell the number n of buckets:

    hash(key) % n = bucket        so n divides hash(key) - bucket, of every key

The greatest common divisor of a few differences is n, or a multiple. Each of its divisors that is greater
than all buckets may be n, and a key is in one of the buckets that these say. File groups without buckets
have names that do not begin with such small numbers, and keys that share no divisor. Each partition is asked
on its own: a writer may have begun later ones with another number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from drawstring.base.errors import CorruptTableError
from drawstring.base.lazy import evenly_spaced
from drawstring.base.resources import BUCKETS_MAX, map_in_threads, worker_threads
from drawstring.config.keys.index import HASH_FIELDS
from drawstring.config.table_config import TableConfig
from drawstring.filegroups.file_slice_reader import read_slice
from drawstring.filegroups.read_task import ReadTask
from drawstring.formats.data_file import base_footer, has_footer
from drawstring.index.bucket import FOLDER, bucket_numbers
from drawstring.merge.record_version import Array
from drawstring.model.files import FileSlice, bucket_of, has_bucket
from drawstring.query.partition_pruning import BucketFacts
from drawstring.schema.fields import KEY_ALONE, RECORD_KEY

_SLICES_MIN: Final = 4
"""A query reads all slices of a partition that has fewer."""

_SLICES_ASKED: Final = 3
_LOG_BYTES_MAX: Final = 4 << 20
"""Largest size of a slice without base file that is asked."""

_KEYS_OF_FOOTER: Final = ("hoodie_min_record_key", "hoodie_max_record_key")
_HASHES: Final = 1 << 31


@dataclass(frozen=True, slots=True)
class FoundBuckets:
    """The buckets that can hold the record keys of a query.

    Attributes:
        by_partition: the buckets by partition path; any of the others.
    """

    by_partition: Mapping[str, frozenset[int]]

    def may_hold(self, partition: str, file_id: str) -> bool:
        """Return whether a file group can hold one of the keys."""
        buckets = self.by_partition.get(partition)
        return buckets is None or bucket_of(file_id) in buckets

    def may_hold_each(self, partitions: pa.Array, file_ids: pa.Array) -> Array:
        """Return `may_hold` for each of several file groups."""
        pairs = zip(partitions.to_pylist(), file_ids.to_pylist(), strict=True)
        return np.fromiter((self.may_hold(*pair) for pair in pairs), bool, len(file_ids))


def found_buckets(
    keys: Sequence[str] | None,
    table: BucketFacts,
    groups: Sequence[tuple[str, str]],
    slice_at: Callable[[int], FileSlice],
) -> FoundBuckets | None:
    """Return the buckets that can hold record keys, None when no bucket can be ruled out.

    Args:
        keys: record keys that a query can match; None for any.
        table: the table.
        groups: partition path and file id of each slice of the query.
        slice_at: returns one of the slices.
    """
    config = table.config
    if keys is None or config.index_type is not None or not _knows_what_is_hashed(config):
        return None
    if not config.populate_meta_fields or not all(has_bucket(file_id) for _, file_id in groups):
        return None
    places: dict[str, list[int]] = {}
    for place, (partition, _) in enumerate(groups):
        places.setdefault(partition, []).append(place)
    many = {partition: among for partition, among in places.items() if len(among) >= _SLICES_MIN}
    if not many or table.storage.list_files(FOLDER):
        return None
    asked = {
        partition: [slice_at(place) for place in evenly_spaced(among, _SLICES_ASKED)]
        for partition, among in many.items()
    }
    ask = _Asks(table, tuple(keys))
    most = {partition: max(_bucket(groups[place][1]) for place in among) for partition, among in many.items()}
    answers = map_in_threads(ask, [(asked[each], most[each]) for each in many], worker_threads())
    found = {each: buckets for each, buckets in zip(many, answers, strict=True) if buckets is not None}
    return FoundBuckets(found) if found else None


def _knows_what_is_hashed(config: TableConfig) -> bool:
    """Return whether it is sure what of a record key is hashed: of a compound key it may be some fields.

    A few keys may be in their buckets by chance if others are hashed.
    """
    return len(config.record_key_fields) == 1 or HASH_FIELDS in config.properties


@dataclass(frozen=True, slots=True)
class _Asks:
    """Returns the buckets of a partition that can hold keys; None for any.

    Attributes:
        table: the table.
        keys: the keys.
    """

    table: BucketFacts
    keys: tuple[str, ...]

    def __call__(self, asked: tuple[Sequence[FileSlice], int]) -> frozenset[int] | None:
        """Ask some slices of a partition, beside the greatest bucket that it has."""
        slices, bucket_max = asked
        config = self.table.config
        try:
            known = [(key, _bucket(each.file_id)) for each in slices for key in self._keys_of(each)]
        except (CorruptTableError, FileNotFoundError):
            return None  # of what is gone or damaged the read tells
        counts = counts_that_fit(
            [key for key, _ in known], [each for _, each in known], bucket_max, config.bucket_hash_fields
        )
        if not counts:
            return None
        prefix = f"{config.record_key_fields[0]}:"
        are_named = known[0][0].startswith(prefix)
        alike = pa.array([key for key in self.keys if key.startswith(prefix) == are_named], pa.string())
        fields = config.bucket_hash_fields
        return frozenset(
            bucket for count in counts for bucket in bucket_numbers(alike, count, fields).tolist()
        )

    def _keys_of(self, file_slice: FileSlice) -> list[str]:
        """Return some record keys of a slice; none if they are not to be had for little."""
        table, base = self.table, file_slice.base
        if base is not None:
            if not has_footer(base.status.path):
                return []
            entries = base_footer(table.storage, base.status.path).entries
            return [entries[name] for name in _KEYS_OF_FOOTER if name in entries]
        if file_slice.size_bytes > _LOG_BYTES_MAX:
            return []
        task = ReadTask(
            table.storage.spec, table.config, file_slice, KEY_ALONE, (RECORD_KEY,), instants=table.instants
        )
        batch = next((each for each in read_slice(task) if each.num_rows), None)
        return [] if batch is None else batch.column(0).slice(0, 2).to_pylist()


def counts_that_fit(
    keys: Sequence[str], buckets: Sequence[int], bucket_max: int, hash_fields: tuple[str, ...]
) -> tuple[int, ...]:
    """Return the numbers of buckets with which stored keys are in their buckets; none if they tell nothing.

    Args:
        keys: record keys of a partition.
        buckets: the bucket of each.
        bucket_max: the greatest bucket that the partition has.
        hash_fields: fields of a compound key that are hashed.
    """
    if not keys:
        return ()
    hashes = bucket_numbers(pa.array(keys, pa.string()), _HASHES, hash_fields)
    divisor = int(np.gcd.reduce(np.abs(hashes - np.array(buckets, np.int64))))
    possible = np.arange(bucket_max + 1, BUCKETS_MAX + 1)
    return tuple(possible[divisor % possible == 0].tolist()) if divisor else ()


def _bucket(file_id: str) -> int:
    return bucket_of(file_id) or 0
