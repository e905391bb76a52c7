"""Options of indexes."""

from __future__ import annotations

from typing import Final

from drawstring.config.options.option import Kind, Option

_INDEXES: Final = (
    "SIMPLE", "BUCKET", "BLOOM", "GLOBAL_SIMPLE", "GLOBAL_BLOOM", "INMEMORY", "RECORD_INDEX",
    "GLOBAL_RECORD_LEVEL_INDEX", "RECORD_LEVEL_INDEX", "FLINK_STATE", "HBASE",
)  # fmt: skip
EXPRESSIONS: Final = "hoodie.bucket.index.partition.expressions"
SUPPORTED_INDEXES: Final = _INDEXES[:5]

INDEX_OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        "hoodie.index.type",
        "How records find their file group: a join on the key (SIMPLE), bloom filters before it (BLOOM), "
        "both also over all partitions (GLOBAL_...), or a hash (BUCKET); SIMPLE when nobody says.",
        choices=_INDEXES,
        only=SUPPORTED_INDEXES,
        field="index_type",
        stored_as="hoodie.index.type",
    ),
    Option(
        "hoodie.bucket.index.num.buckets",
        "Buckets of a partition, with consistent hashing of a new one; 256 when not given. All writers of a "
        "table must agree.",
        kind=Kind.NUMBER,
        field="bucket_count",
        stored_as="hoodie.bucket.index.num.buckets",
    ),
    Option(
        EXPRESSIONS,
        "Buckets by partition, as pattern,count;pattern,count: the first regular expression that is found in "
        "the partition path counts, hoodie.bucket.index.num.buckets where none is. A new table keeps them.",
        field="bucket_expressions",
        stored_as=EXPRESSIONS,
    ),
    Option(
        "hoodie.bucket.index.partition.rule.type",
        "What the patterns are.",
        default="regex",
        choices=("regex",),
    ),
    Option(
        "hoodie.bucket.index.hash.field",
        "Columns of the record key that are hashed; all when not given.",
        kind=Kind.LIST,
        default=(),
        field="bucket_hash_fields",
        stored_as="hoodie.bucket.index.hash.field",
    ),
    Option(
        "hoodie.index.bucket.engine",
        "Whether the number of buckets is fixed (SIMPLE), or a partition's buckets may be split and merged "
        "(CONSISTENT_HASHING, MERGE_ON_READ only).",
        choices=("SIMPLE", "CONSISTENT_HASHING"),
        field="bucket_engine",
        stored_as="hoodie.index.bucket.engine",
    ),
    Option(
        "hoodie.simple.index.update.partition.path",
        "With GLOBAL_SIMPLE: whether a record that arrives with another partition value moves to that "
        "partition; else it stays where it is.",
        kind=Kind.FLAG,
        default=True,
        field="simple_index_moves",
    ),
    Option(
        "hoodie.bloom.index.update.partition.path",
        "The same with GLOBAL_BLOOM.",
        kind=Kind.FLAG,
        default=True,
        field="bloom_index_moves",
    ),
    Option(
        "hoodie.bloom.index.prune.by.ranges",
        "Whether the bloom indexes leave out files by their smallest and largest key; for random keys that "
        "saves nothing.",
        kind=Kind.FLAG,
        default=True,
        field="bloom_prunes_by_ranges",
    ),
)
