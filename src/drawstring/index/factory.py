"""Choose the index of a write, from its options and the table.

Partition drops, rollbacks and restores get no index, and many tables do not declare theirs. They call
`STORED_INDEX_LIFECYCLE`, which maintains the index files that are in the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.config.keys.concurrency import ConcurrencyMode
from drawstring.config.keys.index import CLIQUE_FILES, EXPRESSIONS, LOG_INDEX_ENABLE
from drawstring.config.options.write_options import DEFAULT_BUCKET_COUNT, WriteOptions
from drawstring.config.table_config import TableConfig
from drawstring.filegroups.read_task import InstantRange
from drawstring.formats.bloom import BloomFilter
from drawstring.index.bloom_pruning import BloomPruning
from drawstring.index.bucket import BucketCounts, BucketIndex, remove_counts, stored_counts
from drawstring.index.consistent_bucket import ConsistentIndex, RingLifecycle
from drawstring.index.global_index import GlobalIndex
from drawstring.index.protocol import Index, IndexLifecycle
from drawstring.index.record_index import PARTITIONED_KIND, GlobalRecordIndex, PartitionedRecordIndex
from drawstring.index.simple import SimpleIndex
from drawstring.metadata.maintenance import maintainers_of
from drawstring.metadata.partitions.column_stats import statistics_maintainers
from drawstring.metadata.partitions.maintainer import PartitionMaintainer
from drawstring.metadata.partitions.record_index import RecordIndexMaintainer
from drawstring.metadata.table import BLOOM_FILTERS, RECORD_INDEX
from drawstring.model.instant import Action, Instant
from drawstring.storage import open_spec
from drawstring.storage.protocol import Storage, StorageSpec
from drawstring.timeline.timeline import Timeline

CONSISTENT: Final = "CONSISTENT_HASHING"


def choose_index(
    options: WriteOptions, config: TableConfig, storage: StorageSpec, timeline: Timeline
) -> Index:
    """Return the index that the options name, or else that of the table, or else the simple index.

    Args:
        options: options of the write.
        config: the table; for an unpartitioned table a global index equals one that is not global, and files
            without meta columns have no bloom filters.
        storage: opens the table.
        timeline: timeline at the start of the write.

    Raises:
        InvalidError: consistent hashing was requested for a copy-on-write table, or a log file index for a
            table that cannot have one.
        UnsupportedError: this release does not have the index type.
    """
    kind = options.index_type or config.index_type
    has_log_index = log_index_cliques(options.log_index, options.log_index_clique_files, config) > 0
    if has_log_index:
        check_log_index(kind, config)
    kind = kind or ("BLOOM" if has_log_index else "SIMPLE")
    is_global = is_global_index(kind, config)
    if is_global and (config.drop_partition_columns or not config.populate_meta_fields):
        raise UnsupportedError(
            f"{kind} is not available yet for tables without meta columns or with dropped partition columns."
            " Use SIMPLE."
        )
    pruning = BloomPruning(options.bloom_prunes_by_ranges, is_global, by_log_index=has_log_index)
    match kind:
        case "BUCKET":
            return _bucket_index(options, config, storage, timeline)
        case "SIMPLE" | "GLOBAL_SIMPLE":
            return _lookup_index(None, is_global, options.simple_index_update_partition_path)
        case "RECORD_INDEX" | "GLOBAL_RECORD_LEVEL_INDEX" | "RECORD_LEVEL_INDEX":
            moves = options.record_index_update_partition_path
            return (
                GlobalRecordIndex(None, moves)
                if is_global
                else PartitionedRecordIndex(None, kind == PARTITIONED_KIND)
            )
        case "BLOOM" if not config.populate_meta_fields:
            return SimpleIndex()
        case "BLOOM" | "GLOBAL_BLOOM":
            return _lookup_index(pruning, is_global, options.bloom_index_update_partition_path)
    raise UnsupportedError(
        f"Index type {kind} is not available yet. Use SIMPLE, BLOOM, GLOBAL_SIMPLE, GLOBAL_BLOOM, BUCKET"
        " or a record index."
    )


def _bucket_index(
    options: WriteOptions, config: TableConfig, storage: StorageSpec, timeline: Timeline
) -> Index:
    fields = options.bucket_hash_fields or config.bucket_hash_fields or config.record_key_fields
    counts = _counts(options, config, storage, timeline)
    if (options.bucket_engine or config.bucket_engine) != CONSISTENT:
        return BucketIndex(counts.default, fields, counts.expressions, options.is_non_blocking)
    if not config.is_merge_on_read:
        raise InvalidError(
            f"hoodie.index.bucket.engine={CONSISTENT} needs a MERGE_ON_READ table. Use SIMPLE."
        )
    return ConsistentIndex(counts.default, fields, storage, timeline)


def check_non_blocking(index: Index, config: TableConfig) -> None:
    """Check that a table can be written under non-blocking concurrency control (RFC-66).

    Args:
        index: the index of the write.
        config: configuration of the table.

    Raises:
        InvalidError: log files do not belong to slices by completion time, or writers do not find the same
            file group for a new key.
    """
    lacks = (
        (config.is_merge_on_read, "hoodie.table.type=MERGE_ON_READ"),
        (not config.rules.names_logs_by_slice, "table version 8 or later"),
        (isinstance(index, BucketIndex), "hoodie.index.type=BUCKET with hoodie.index.bucket.engine=SIMPLE"),
    )
    for has_it, what in lacks:
        if not has_it:
            raise InvalidError(
                f"hoodie.write.concurrency.mode={ConcurrencyMode.NON_BLOCKING} needs {what}. Use"
                f" {ConcurrencyMode.OPTIMISTIC} for this table."
            )


def is_global_index(kind: str | None, config: TableConfig) -> bool:
    """Return whether an index type makes a key identify a row in the whole table, not within its partition.

    Args:
        kind: `hoodie.index.type` of the write, else of the table; None if neither has it.
        config: configuration of the table.
    """
    return ((kind or "").startswith("GLOBAL_") or kind == "RECORD_INDEX") and bool(config.partition_fields)


def bloom_rate(options: WriteOptions, config: TableConfig) -> float:
    """Return the rate of false positives of the bloom filters of base files, 0 for none.

    A bloom index looks up all keys of a batch in each filter. The others ask no filter: what is left are
    queries of a few keys. Of a table that names no index the next writer may have a bloom index; in one that
    does, Hudi refuses any other.

    Args:
        options: options of the write.
        config: the table.
    """
    if not options.bloom_enabled:
        return 0.0
    in_metadata = options.metadata.bloom_filters or BLOOM_FILTERS in config.metadata_partitions
    has_log_index = log_index_cliques(options.log_index, options.log_index_clique_files, config) > 0
    has_bloom_index = any("BLOOM" in (each or "") for each in (config.index_type, options.index_type))
    is_loose = config.index_type is not None and not (has_bloom_index or in_metadata or has_log_index)
    return BloomFilter.LOOSE_RATE if is_loose else BloomFilter.DEFAULT_RATE


def partitions_to_build(
    index: Index, options: WriteOptions, config: TableConfig
) -> Mapping[str, PartitionMaintainer]:
    """Return the partitions that the metadata table needs for an index and options, and what keeps them."""
    wanted = maintainers_of([BLOOM_FILTERS] if options.metadata.bloom_filters else [])
    if options.metadata.column_stats:
        wanted |= statistics_maintainers(options.metadata, config)
    if isinstance(index, GlobalRecordIndex | PartitionedRecordIndex):
        is_partitioned = isinstance(index, PartitionedRecordIndex) and index.builds_partitioned
    elif options.metadata.record_index or options.metadata.partitioned_record_index:
        is_partitioned = bool(config.partition_fields) and not options.metadata.record_index
    else:
        return wanted
    if is_partitioned and not config.rules.has_all_indexes:
        return wanted
    return {**wanted, RECORD_INDEX: RecordIndexMaintainer(is_partitioned)}


def _lookup_index(pruning: BloomPruning | None, is_global: bool, update_partition_path: bool) -> Index:
    return GlobalIndex(pruning, update_partition_path) if is_global else SimpleIndex(pruning)


def declared_index(config: TableConfig, storage: Storage, timeline: Timeline) -> Index:
    """Return the index that a table declares, for checking its files; by default the simple index.

    During a bucket resizing, rows are in buckets that are on no ring yet, so these cannot be checked either.

    Args:
        config: the table's properties.
        storage: its files.
        timeline: current timeline.
    """
    if config.index_type != "BUCKET" or not config.bucket_count:
        return SimpleIndex()
    fields = config.bucket_hash_fields
    if config.bucket_engine == CONSISTENT:
        is_settled = not timeline.pending_of(Action.CLUSTERING)
        ring_index = ConsistentIndex(config.bucket_count, fields, storage.spec, timeline)
        return ring_index if is_settled else SimpleIndex()
    admits = InstantRange.of(timeline).admits
    counts = stored_counts(storage, admits, BucketCounts(config.bucket_count))
    return SimpleIndex() if counts is None else BucketIndex(counts.default, fields, counts.expressions)


def _counts(
    options: WriteOptions, config: TableConfig, storage: StorageSpec, timeline: Timeline
) -> BucketCounts:
    """Return the bucket counts of the table, or else those of the options.

    Raises:
        InvalidError: the two differ, or the rules for partitions are invalid.
    """
    rules = options.bucket_expressions or ""
    stored = stored_counts(open_spec(storage), lambda time: time not in timeline.uncommitted)
    if stored is None:
        count = options.bucket_count or config.bucket_count or DEFAULT_BUCKET_COUNT
        if rules and (options.bucket_engine or config.bucket_engine) == CONSISTENT:
            raise InvalidError(
                f"{EXPRESSIONS} cannot be combined with consistent hashing. Remove the option."
            )
        if not (rules and config.bucket_count):
            return BucketCounts(count, rules).check()
        stored = BucketCounts(config.bucket_count).check()
    for what, requested, actual in (
        ("hoodie.bucket.index.num.buckets", options.bucket_count, stored.default),
        (EXPRESSIONS, rules, stored.expressions),
    ):
        if requested and requested != actual:
            raise InvalidError(
                f"The options set {what}={requested}, but the table has {actual or 'none'}. Remove the"
                " option, or write to another table."
            )
    return stored


def log_index_cliques(enabled: bool | None, clique_files: int | None, config: TableConfig) -> int:
    """Return the number of log files of a clique (RFC-06), 0 for a table without an index in log files.

    Args:
        enabled: the write's `hoodie.index.log.enable`, None if it is not given.
        clique_files: the write's `hoodie.index.log.clique.files`, None if it is not given.
        config: configuration of the table.
    """
    stored = config.properties
    if enabled is None:
        enabled = stored.get(LOG_INDEX_ENABLE, "").strip().lower() == "true"
    if not enabled:
        return 0
    text = stored.get("hoodie.index.log.clique.files", "").strip()
    return clique_files or (int(text) if text.isdecimal() and int(text) else CLIQUE_FILES)


def check_log_index(kind: str | None, config: TableConfig) -> None:
    """Check that a table and its index support an index in log files.

    Args:
        kind: `hoodie.index.type` of the write, else of the table; None if neither has it.
        config: configuration of the table.

    Raises:
        InvalidError: the table has no log files, or another index type.
        UnsupportedError: the table has no meta columns.
    """
    if not config.is_merge_on_read:
        raise InvalidError(
            f"{LOG_INDEX_ENABLE} needs a MERGE_ON_READ table, but the table is {config.table_type}. Drop"
            " the option."
        )
    if kind not in (None, "BLOOM", "GLOBAL_BLOOM"):
        raise InvalidError(
            f"{LOG_INDEX_ENABLE} needs hoodie.index.type BLOOM or GLOBAL_BLOOM, but the index is {kind}."
            " Drop one of"
            " the options."
        )
    if not config.populate_meta_fields:
        raise UnsupportedError(
            f"{LOG_INDEX_ENABLE} needs the meta columns of records, but the table has"
            " hoodie.populate.meta.fields=false. Drop the option."
        )


class _StoredIndex(RingLifecycle):
    """Lifecycle of rings and of bucket counts by partition; without any, the hooks do nothing."""

    def rolled_back(self, storage: Storage, instant: Instant) -> None:
        """Delete the rings and the bucket counts of an instant that replaced file groups."""
        super().rolled_back(storage, instant)
        if instant.action.completed_action is Action.REPLACE_COMMIT:
            remove_counts(storage, instant.requested)


STORED_INDEX_LIFECYCLE: Final[IndexLifecycle] = _StoredIndex()
