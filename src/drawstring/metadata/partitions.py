"""The partitions of a metadata table and the columns that their records use.

files                                file names and sizes by partition of the table
column_stats, partition_stats        bounds and counts by column and file, or partition
bloom_filters                        a bloom filter of the record keys by file
record_index                         the file group of each record key
secondary_index_<name>               the record keys of each value of a column
expr_index_<name>                    statistics, or a bloom filter, of an expression by file
"""

from __future__ import annotations

from enum import StrEnum
from functools import cache
from typing import Final

import pyarrow as pa

from drawstring.base.errors import UnsupportedError
from drawstring.formats import schemas
from drawstring.schema.avro import avro_to_arrow

METADATA_FOLDER: Final = ".hoodie/metadata"
PARTITIONS_KEY: Final = "hoodie.table.metadata.partitions"
"""Table property: the partitions of the metadata table that are complete."""

BUILDING_KEY: Final = "hoodie.table.metadata.partitions.inflight"
"""Table property: the partitions of the metadata table that are being built."""

FILES: Final = "files"
RECORD_INDEX: Final = "record_index"
BLOOM_FILTERS: Final = "bloom_filters"
ALL_PARTITIONS: Final = "__all_partitions__"
"""Key of the record in `files` that lists the partitions of the table."""

ROOT_PARTITION: Final = "."
"""How the metadata table calls the one partition of an unpartitioned table."""

KEY: Final = "key"
TYPE: Final = "type"
IS_REMOVED: Final = "is_removed"
"""Whether a row is an entry of a delete block."""

NAME: Final = "name"
SIZE: Final = "size_bytes"
FILE_INFOS: Final = "filesystemMetadata"
BLOOM: Final = "BloomFilterMetadata"
STATISTICS: Final = "ColumnStatsMetadata"
LOCATION: Final = "recordIndexMetadata"
SECONDARY: Final = "SecondaryIndexMetadata"
PARTITION_STATISTICS: Final = 6
"""Record type of statistics of a partition."""


class Kind(StrEnum):
    """What the records of a partition hold."""

    FILES = "files"
    STATISTICS = "statistics"
    BLOOM_FILTERS = "bloom filters"
    RECORD_INDEX = "record index"
    SECONDARY_INDEX = "secondary index"
    EXPRESSION_INDEX = "expression index"


_BY_NAME: Final = {
    FILES: Kind.FILES,
    "column_stats": Kind.STATISTICS,
    "partition_stats": Kind.STATISTICS,
    "bloom_filters": Kind.BLOOM_FILTERS,
    RECORD_INDEX: Kind.RECORD_INDEX,
}
_BY_PREFIX: Final = {
    "secondary_index_": Kind.SECONDARY_INDEX,
    "expr_index_": Kind.EXPRESSION_INDEX,
}
_COLUMNS: Final = {
    Kind.FILES: (FILE_INFOS,),
    Kind.STATISTICS: (STATISTICS,),
    Kind.BLOOM_FILTERS: (BLOOM,),
    Kind.RECORD_INDEX: (LOCATION,),
    Kind.SECONDARY_INDEX: (SECONDARY,),
    Kind.EXPRESSION_INDEX: (STATISTICS, BLOOM),
}


def kind_of(partition: str) -> Kind:
    """Return what the records of a partition of the metadata table hold.

    Raises:
        UnsupportedError: this release does not know the partition.
    """
    for prefix, kind in _BY_PREFIX.items():
        if partition.startswith(prefix):
            return kind
    if partition not in _BY_NAME:
        raise UnsupportedError(
            f"The partition {partition!r} of the metadata table is of a kind that this release does not know."
            " Read it with the release of Apache Hudi that wrote it."
        )
    return _BY_NAME[partition]


@cache
def record_schema(kind: Kind) -> pa.Schema:
    """Return the columns of the records of a kind: key, type and content, all nullable."""
    whole = avro_to_arrow(schemas.text("metadata_record"), with_unions=True)
    return pa.schema([whole.field(name).with_nullable(True) for name in (KEY, TYPE, *_COLUMNS[kind])])
