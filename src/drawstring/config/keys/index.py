"""Options of the index."""

from __future__ import annotations

from typing import Final

from drawstring.config.options.option import Kind, Option

_INDEXES: Final = (
    "SIMPLE", "BUCKET", "BLOOM", "GLOBAL_SIMPLE", "GLOBAL_BLOOM", "RECORD_INDEX",
    "GLOBAL_RECORD_LEVEL_INDEX", "RECORD_LEVEL_INDEX", "FLINK_STATE", "HBASE",
)  # fmt: skip
HASH_FIELDS: Final = "hoodie.bucket.index.hash.field"
EXPRESSIONS: Final = "hoodie.bucket.index.partition.expressions"
OF_BUCKETS: Final = (
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
