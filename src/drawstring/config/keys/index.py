"""Define the options of the index, of the index in log files, and of the metadata table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from drawstring.config.options.option import Kind, Option

_INDEXES: Final = (
    "SIMPLE", "BUCKET", "BLOOM", "GLOBAL_SIMPLE", "GLOBAL_BLOOM", "RECORD_INDEX",
    "GLOBAL_RECORD_LEVEL_INDEX", "RECORD_LEVEL_INDEX", "FLINK_STATE", "HBASE",
)  # fmt: skip
HASH_FIELDS: Final = "hoodie.bucket.index.hash.field"
EXPRESSIONS: Final = "hoodie.bucket.index.partition.expressions"
BUCKET_COUNT_KEYS: Final = (
    "hoodie.bucket.index.num.buckets", "hoodie.index.bucket.engine", HASH_FIELDS, EXPRESSIONS,
)  # fmt: skip
DEFAULT_BUCKET_COUNT: Final = 256
SUPPORTED_INDEXES: Final = _INDEXES[:8]

INDEX_OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        "hoodie.index.type",
        "How the file group of a record is found: by a join on the key (SIMPLE), with bloom filters before "
        "it (BLOOM), by either over all partitions (GLOBAL_...), by the record index of the metadata table, "
        "of the table (RECORD_INDEX, GLOBAL_RECORD_LEVEL_INDEX) or of the partition (RECORD_LEVEL_INDEX), or "
        "by a hash (BUCKET); SIMPLE when not given, and for INMEMORY.",
        choices=_INDEXES,
        spellings=(("INMEMORY", "SIMPLE"),),
        only=SUPPORTED_INDEXES,
        field="index_type",
        stored_as="hoodie.index.type",
    ),
    Option(
        "hoodie.bucket.index.num.buckets",
        "Number of buckets of a partition; with consistent hashing of a new partition; 256 when not given. "
        "All writers of a table have to use the same number.",
        kind=Kind.NUMBER,
        field="bucket_count",
        stored_as="hoodie.bucket.index.num.buckets",
    ),
    Option(
        EXPRESSIONS,
        "Number of buckets by partition, as pattern,count;pattern,count: the first regular expression that "
        "matches anywhere in the partition path decides, else hoodie.bucket.index.num.buckets. A new table "
        "stores the rules.",
        field="bucket_expressions",
        stored_as=EXPRESSIONS,
    ),
    Option(
        "hoodie.bucket.index.partition.rule.type",
        "Kind of the patterns.",
        default="regex",
        choices=("regex",),
    ),
    Option(
        HASH_FIELDS,
        "Columns of the record key that are hashed; all when not given.",
        kind=Kind.LIST,
        default=(),
        field="bucket_hash_fields",
        stored_as=HASH_FIELDS,
    ),
    Option(
        "hoodie.index.bucket.engine",
        "Whether the number of buckets is fixed (SIMPLE), or clustering may split and merge a partition's "
        "buckets (CONSISTENT_HASHING, MERGE_ON_READ only).",
        choices=("SIMPLE", "CONSISTENT_HASHING"),
        field="bucket_engine",
        stored_as="hoodie.index.bucket.engine",
    ),
    Option(
        "hoodie.simple.index.update.partition.path",
        "With GLOBAL_SIMPLE: whether an incoming record with another partition value moves the stored record "
        "to that partition; otherwise it stays in its partition.",
        kind=Kind.FLAG,
        default=True,
        field="simple_index_update_partition_path",
    ),
    Option(
        "hoodie.bloom.index.update.partition.path",
        "The same with GLOBAL_BLOOM.",
        kind=Kind.FLAG,
        default=True,
        field="bloom_index_update_partition_path",
    ),
    Option(
        "hoodie.record.index.update.partition.path",
        "The same with RECORD_INDEX and GLOBAL_RECORD_LEVEL_INDEX.",
        kind=Kind.FLAG,
        default=False,
        field="record_index_update_partition_path",
    ),
    Option(
        "hoodie.bloom.index.prune.by.ranges",
        "Whether the bloom indexes skip files by their smallest and largest key; with random keys this saves "
        "nothing.",
        kind=Kind.FLAG,
        default=True,
        field="bloom_prunes_by_ranges",
    ),
)


CLIQUE_FILES: Final = 10
LOG_INDEX_ENABLE: Final = "hoodie.index.log.enable"

LOG_INDEX_OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        LOG_INDEX_ENABLE,
        "Whether log files of a MERGE_ON_READ table contain an index of their keys, so that new records can "
        "go to the log files of small file groups. With BLOOM (the default then) and GLOBAL_BLOOM. Apache "
        "Hudi's own indexes of these types do not search log files: compact the table before Hudi upserts to"
        " it.",
        kind=Kind.FLAG,
        field="log_index",
        stored_as=LOG_INDEX_ENABLE,
    ),
    Option(
        "hoodie.index.log.clique.files",
        "Number of log files of a file group that share one key summary (a clique, RFC-06) in the index in "
        "log files; 10 when not given.",
        kind=Kind.NUMBER,
        field="log_index_clique_files",
        stored_as="hoodie.index.log.clique.files",
    ),
)


@dataclass(frozen=True, slots=True)
class MetadataPartitions:
    """Partitions that the metadata table gets, if it does not have them.

    Attributes:
        bloom_filters: those in the footers of base files.
        column_stats: statistics of columns in each file.
        column_stats_columns: the columns that get statistics; empty for the first ones.
        column_stats_columns_max: number of the first columns that get statistics.
        partition_stats: beside `column_stats`, statistics of columns in each partition.
        record_index: where each record key is.
        partitioned_record_index: where each record key is within its partition; `record_index` goes before.
    """

    bloom_filters: bool
    column_stats: bool
    column_stats_columns: tuple[str, ...]
    column_stats_columns_max: int
    partition_stats: bool
    record_index: bool
    partitioned_record_index: bool


@dataclass(frozen=True, slots=True)
class MetadataCompaction:
    """When a write compacts the metadata table.

    Attributes:
        delta_commits: number of delta commits after which it is compacted.
        logs: whether its log files are compacted into fewer ones in between.
        log_blocks: number of delta commits after which they are, in file groups with log blocks of as many.
        waiting: number of delta commits from which on there is a warning that a compaction waits.
    """

    delta_commits: int = 10
    logs: bool = False
    log_blocks: int = 5
    waiting: int = 1000


DEFAULT_COMPACTION: Final = MetadataCompaction()

METADATA_COMPACTION_OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        "hoodie.metadata.compact.max.delta.commits",
        "Number of delta commits after which the metadata table is compacted.",
        kind=Kind.NUMBER,
        default=10,
        minimum=1,
        field="delta_commits",
    ),
    Option(
        "hoodie.metadata.log.compaction.enable",
        "Whether a write compacts the log files of the metadata table into fewer ones, between two"
        " compactions into base files. Readers then open fewer files where compactions are rare.",
        kind=Kind.FLAG,
        default=False,
        field="logs",
    ),
    Option(
        "hoodie.metadata.log.compaction.blocks.threshold",
        "Number of delta commits after which the log files of the metadata table are compacted, in the file"
        " groups with log blocks of as many.",
        kind=Kind.NUMBER,
        default=5,
        minimum=2,
        field="log_blocks",
    ),
    Option(
        "hoodie.metadata.max.deltacommits.when_pending",
        "Number of delta commits of the metadata table from which on a write warns that its compaction waits"
        " for a pending action of the table.",
        kind=Kind.NUMBER,
        default=1000,
        field="waiting",
    ),
)

METADATA_OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        "hoodie.metadata.index.bloom.filter.enable",
        "Whether the metadata table gets the bloom filters of base files, if it does not have them. Once"
        " there, all writes keep them.",
        kind=Kind.FLAG,
        default=False,
        field="bloom_filters",
    ),
    Option(
        "hoodie.metadata.index.column.stats.enable",
        "Whether the metadata table gets the least and greatest values of columns in each file, if it does"
        " not have them; queries skip files by them. Once there, all writes"
        " keep them.",
        kind=Kind.FLAG,
        default=False,
        field="column_stats",
    ),
    Option(
        "hoodie.metadata.index.column.stats.column.list",
        "The columns that get statistics, as in `fare,trip.distance`; by default the first ones of types that"
        " have an order. Meta columns are among them without being named. A write whose list has columns"
        " without statistics builds those of all files again, with these.",
        kind=Kind.LIST,
        default=(),
        field="column_stats_columns",
    ),
    Option(
        "hoodie.metadata.index.column.stats.max.columns.to.index",
        "Without a list, the number of columns that get statistics when they are added.",
        kind=Kind.NUMBER,
        default=32,
        minimum=1,
        field="column_stats_columns_max",
    ),
    Option(
        "hoodie.metadata.index.partition.stats.enable",
        "Whether the metadata table of a partitioned table that gets statistics of files gets those of"
        " partitions too; they let queries skip partitions.",
        kind=Kind.FLAG,
        default=True,
        field="partition_stats",
    ),
    Option(
        "hoodie.metadata.global.record.level.index.enable",
        "Whether the metadata table gets the record index, if it does not have one. Once there, all writes"
        " keep it. It has one location for each key: queries do not use it once a write adds one that is"
        " elsewhere.",
        kind=Kind.FLAG,
        default=False,
        alternatives=("hoodie.metadata.record.index.enable",),
        field="record_index",
    ),
    Option(
        "hoodie.metadata.record.level.index.enable",
        "The same, for a record index that has the keys of each partition by themselves.",
        kind=Kind.FLAG,
        default=False,
        field="partitioned_record_index",
    ),
)
