"""Whether a write lays out file groups the way the table has them.

Apache Hudi does not store the number of buckets, often not even the index, so every writer has to be
told. A wrong answer would bring a key to a second file group; the file groups of the last write
give it away.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.config.options.write_options import WriteOptions
from drawstring.filegroups.view.lookup import SliceLookup
from drawstring.formats.parquet import parquet_footer
from drawstring.index.bucket.detection import refuse_untold_buckets
from drawstring.index.bucket.simple_bucket import bucket_of
from drawstring.index.consistent.consistent_bucket import ConsistentIndex
from drawstring.index.consistent.rings import has_rings
from drawstring.index.protocol import Index
from drawstring.model.commit import WriteStat
from drawstring.storage.protocol import Storage
from drawstring.write.facts import WriteFacts

_WRITES_LOOKED_AT = 10
_FILES_LOOKED_AT = 4
_SET_BUCKETS = "set hoodie.index.type=BUCKET and the hoodie.bucket.index.num.buckets that it was written with"
_KEYS = ("hoodie_min_record_key", "hoodie_max_record_key")


def check_buckets(facts: WriteFacts, index: Index, options: WriteOptions) -> None:
    """Compare the index of a write with the file groups that earlier writes made.

    Args:
        facts: the table as the write finds it.
        index: what the write is going to use.
        options: whether the caller chose it.

    Raises:
        InvalidError: the table was written with another index or another number of buckets.
        UnsupportedError: file groups of a consistent hashing index were replaced.
    """
    config = facts.session.config
    if facts.timeline.latest_write() is None:
        return
    if isinstance(index, ConsistentIndex):
        _refuse_replaced(facts, index)
        return
    if has_rings(facts.session.state.storage):
        raise InvalidError(
            "the table has a consistent hashing index: set hoodie.index.type=BUCKET and"
            " hoodie.index.bucket.engine=CONSISTENT_HASHING"
        )
    if not index.is_hashed:
        if not (options.index_type or config.index_type):
            refuse_untold_buckets(facts.session.store, facts.timeline, _SET_BUCKETS)
    elif config.bucket_count is None:
        for key, stat in known_keys(facts):
            _check_key(index, key, stat)


def _refuse_replaced(facts: WriteFacts, index: ConsistentIndex) -> None:
    """Refuse rings with file groups that were replaced: ids follow from the ring, and cannot come again."""
    session = facts.session
    lookup = SliceLookup(session.state.storage.spec, session.config, facts.timeline)
    for partition, file_id in lookup.view().replaced_groups():
        if index.has_group(partition, file_id):
            raise UnsupportedError(
                f"file group {file_id} of the consistent hashing index was replaced by another engine, and no"
                " reader would see rows that are written to it: give the partition new file groups first, by"
                " overwriting it (insert_overwrite)",
                path=partition,
            )


def known_keys(facts: WriteFacts) -> Iterator[tuple[str, WriteStat]]:
    """Yield the smallest and the greatest key of base files of the newest write that made any."""
    storage, store = facts.session.state.storage, facts.session.store
    for instant in facts.timeline.writes()[: -_WRITES_LOOKED_AT - 1 : -1]:
        stats = [stat for stat in store.commit_metadata(instant).stats if _is_there(storage, stat)]
        for stat in stats[:_FILES_LOOKED_AT]:
            footer = parquet_footer(storage, stat.path)
            yield from ((footer[name], stat) for name in _KEYS if name in footer)
        if stats:
            return


def _is_there(storage: Storage, stat: WriteStat) -> bool:
    return stat.path.endswith(".parquet") and storage.exists(stat.path)


def _check_key(index: Index, key: str, stat: WriteStat) -> None:
    locations = index.locations(pa.array([key]), pa.array([stat.partition]))
    expected = None if locations is None else int(locations[0].as_py())
    if expected != bucket_of(stat.file_id):
        raise InvalidError(
            f"record key {key} would go to bucket {expected} but is in file group {stat.file_id}: set"
            " hoodie.bucket.index.num.buckets and hoodie.bucket.index.hash.field as at the writes before",
            path=stat.path,
        )
