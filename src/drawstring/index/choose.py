"""Which index a write uses."""

from __future__ import annotations

from typing import Final

from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.config.log_index_keys import check_log_index, log_index_cliques
from drawstring.config.options import DEFAULT_BUCKET_COUNT, WriteOptions
from drawstring.config.table import TableConfig
from drawstring.index.bloom import BloomPruning
from drawstring.index.bucket import BucketIndex
from drawstring.index.consistent import ConsistentIndex
from drawstring.index.everywhere import GlobalIndex
from drawstring.index.protocol import Index
from drawstring.index.simple import SimpleIndex
from drawstring.storage.protocol import StorageSpec
from drawstring.timeline.timeline import Timeline

CONSISTENT: Final = "CONSISTENT_HASHING"


def choose_index(
    options: WriteOptions, config: TableConfig, storage: StorageSpec, timeline: Timeline
) -> Index:
    """Return the index that a write asks for, else the one that the table names, else the simple one.

    Args:
        options: of the write.
        config: the table; without partitions a global index is as good as one that is not, and files
            without meta columns have no bloom filters.
        storage: opens the table.
        timeline: as the write finds it.

    Raises:
        InvalidError: a copy-on-write table asks for consistent hashing, or log files for an index that does
            not go with the table.
        UnsupportedError: a kind that this release does not have.
    """
    kind = options.index_type or config.index_type
    has_log_index = log_index_cliques(options.log_index, options.log_index_clique_files, config) > 0
    if has_log_index:
        check_log_index(kind, config)
    kind = kind or ("BLOOM" if has_log_index else "SIMPLE")
    is_global = kind.startswith("GLOBAL_") and bool(config.partition_fields)
    if is_global and (config.drop_partition_columns or not config.populate_meta_fields):
        raise UnsupportedError(
            f"{kind} is not available yet for tables without meta columns or with dropped partition columns:"
            " use SIMPLE"
        )
    pruning = BloomPruning(options.bloom_prunes_by_ranges, is_global, by_log_index=has_log_index)
    match kind:
        case "BUCKET":
            count = options.bucket_count or config.bucket_count or DEFAULT_BUCKET_COUNT
            fields = options.bucket_hash_fields or config.bucket_hash_fields or config.record_key_fields
            if (options.bucket_engine or config.bucket_engine) != CONSISTENT:
                return BucketIndex(count, fields)
            if not config.is_merge_on_read:
                raise InvalidError(
                    f"hoodie.index.bucket.engine={CONSISTENT} needs a MERGE_ON_READ table: use SIMPLE"
                )
            return ConsistentIndex(count, fields, storage, timeline)
        case "SIMPLE" | "GLOBAL_SIMPLE":
            return GlobalIndex(moves=options.simple_index_moves) if is_global else SimpleIndex()
        case "BLOOM" if not config.populate_meta_fields:
            return SimpleIndex()
        case "BLOOM" | "GLOBAL_BLOOM":
            return GlobalIndex(pruning, options.bloom_index_moves) if is_global else SimpleIndex(pruning)
    raise UnsupportedError(
        f"index type {kind} is not available yet: use SIMPLE, BLOOM, GLOBAL_SIMPLE, GLOBAL_BLOOM or BUCKET"
    )
