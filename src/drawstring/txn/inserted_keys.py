"""Keys that two writes inserted side by side: whether one key may be among both.

    own base files ── keys of this write ──> an array ─┐
    base files of the other one                        ├─> key range and bloom filter in the footer
                                                       └─> keys of the other write, a batch at a time

Only base files with inserts in partitions where both inserted are looked at. Where the keys cannot be told in
this way, or are too many, the answer is that they may share one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.errors import MissingFileError
from drawstring.base.javahash import sorts_like_java
from drawstring.formats.base_files import Selection, is_parquet, read_base
from drawstring.formats.bloom.key_summary import StoredSummary
from drawstring.formats.parquet import stored_summary
from drawstring.model.commit import CommitMetadata, WriteStat
from drawstring.schema.meta import COMMIT_TIME, RECORD_KEY
from drawstring.storage.protocol import Storage

KEYS_MAX: Final = 1_000_000
"""Keys of the own write that are held in memory, by partition; beyond that they are not compared."""


Inserts: TypeAlias = Mapping[str, Sequence[WriteStat]]
"""The files with inserted records: by partition, or all under "" if keys are unique in the table."""


def inserts_of(metadata: CommitMetadata, *, is_global: bool, in_logs: bool) -> Inserts:
    """Return the files in which a write inserted records.

    Args:
        metadata: of the write.
        is_global: whether keys are unique in the table, rather than in their partition.
        in_logs: whether log files may have inserted records that their statistics do not count.
    """
    inserts: dict[str, list[WriteStat]] = {}
    for stat in metadata.stats:
        if stat.num_inserts or (stat.is_log and in_logs):
            inserts.setdefault("" if is_global else stat.partition, []).append(stat)
    return inserts


def may_share_key(storage: Storage, time: str, own: Inserts, other: Inserts, *, has_keys: bool) -> bool:
    """Return whether two writes may have inserted the same key.

    Args:
        storage: the table's files.
        time: requested time of the own write.
        own: its files, which are there.
        other: files of a completed write, which may have been cleaned since.
        has_keys: whether files have the column of record keys.
    """
    for place in own.keys() & other.keys():
        stats, others = own[place], other[place]
        changed = sum(stat.num_inserts + stat.num_updates for stat in stats)
        if not has_keys or changed > KEYS_MAX or any(stat.is_log for stat in (*stats, *others)):
            return True
        keys = _own_keys(storage, time, stats)
        if any(_has_any(storage, stat.path, keys) for stat in others):
            return True
    return False


def _own_keys(storage: Storage, time: str, stats: Sequence[WriteStat]) -> pa.Array:
    """Return the keys that a write inserted or updated, without those that it only copied."""
    where = pc.field(COMMIT_TIME) == time
    return pa.chunked_array(
        (each for stat in stats for each in _keys(storage, stat.path, where)), pa.string()
    ).combine_chunks()


def _has_any(storage: Storage, path: str, keys: pa.Array) -> bool:
    """Return whether a base file has one of some keys; those that it had before were not inserted anew."""
    try:
        if is_parquet(path) and not _may_hold(stored_summary(storage, path), keys):
            return False
        return any(pc.any(pc.is_in(each, value_set=keys)).as_py() for each in _keys(storage, path))
    except (FileNotFoundError, MissingFileError):
        return True


def _keys(storage: Storage, path: str, where: pc.Expression | None = None) -> Iterator[pa.Array]:
    for batch in read_base(storage, path, Selection([RECORD_KEY], where)):
        yield batch.column(RECORD_KEY).cast(pa.string())


def _may_hold(summary: StoredSummary, keys: pa.Array) -> bool:
    """Return whether a file may have one of some keys, by its footer."""
    smallest, largest = summary.smallest, summary.largest
    if smallest and largest and sorts_like_java(pa.array([smallest, largest])) and sorts_like_java(keys):
        keys = keys.filter(pc.and_(pc.greater_equal(keys, smallest), pc.less_equal(keys, largest)))
    if not len(keys):
        return False
    bloom = summary.bloom_filter()
    return bloom is None or bloom.contains_any(keys)
