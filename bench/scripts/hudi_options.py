"""The options of a table in Hudi's words: the same for drawstring on Spark and for Hudi itself."""

from __future__ import annotations

from pathlib import Path

from shapes import RIDES, Shape

INCREMENTAL = {"hoodie.datasource.query.type": "incremental"}
BEGIN = "hoodie.datasource.read.begin.instanttime"
KINDS = {"mor": "MERGE_ON_READ", "cow": "COPY_ON_WRITE"}
INDEXES = {
    "bucket": {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4"},
    "simple": {"hoodie.index.type": "SIMPLE"},
    "bloom": {"hoodie.index.type": "BLOOM"},
    "log": {"hoodie.index.type": "BLOOM", "hoodie.index.log.enable": "true"},
}


UNCOMPACTED = {"hoodie.compact.inline": "false"}
"""For every write of drawstring's or Hudi's: compaction is a step of its own."""


def in_one_bucket(index: str) -> dict[str, str]:
    """Return the options of an index for partitions that hold a single file group."""
    one_bucket = {"hoodie.bucket.index.num.buckets": "1"} if index == "bucket" else {}
    return INDEXES[index] | one_bucket


def write_options(kind: str, index: str, shape: Shape = RIDES) -> dict[str, str]:
    """Return the options of every write."""
    return {
        "hoodie.table.name": shape.name,
        "hoodie.datasource.write.table.type": KINDS[kind],
        "hoodie.datasource.write.recordkey.field": ",".join(shape.key),
        "hoodie.datasource.write.partitionpath.field": ",".join(shape.partition_by),
        "hoodie.datasource.write.precombine.field": shape.ordering,
        **UNCOMPACTED,
        "hoodie.clean.automatic": "false",
        "hoodie.bulkinsert.shuffle.parallelism": "4",
        "hoodie.upsert.shuffle.parallelism": "4",
    } | index_options(index, shape)


def index_options(index: str, shape: Shape) -> dict[str, str]:
    """Return the options of the index alone."""
    buckets = {"hoodie.bucket.index.num.buckets": str(shape.buckets)} if index == "bucket" else {}
    return INDEXES[index] | buckets


def completion_of_first(table: str) -> str:
    """Return when a table's first commit took effect, from its name: REQUESTED_COMPLETED.ACTION."""
    done = [file for file in Path(table, ".hoodie/timeline").iterdir() if "_" in file.stem]
    return (
        min(file.name for file in done if file.suffix in (".commit", ".deltacommit"))
        .split("_")[1]
        .split(".")[0]
    )
