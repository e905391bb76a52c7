"""The partitions of the metadata table that this release keeps, and what keeps them."""

from __future__ import annotations

from collections.abc import Iterable

from drawstring.metadata.column_ranges import COLUMN_STATS, PARTITION_STATS
from drawstring.metadata.expressions.index import PREFIX as EXPRESSION_PREFIX
from drawstring.metadata.maintained.bloom_filters import BloomFilterMaintainer
from drawstring.metadata.maintained.column_stats import ColumnStatsMaintainer
from drawstring.metadata.maintained.expression_index import ExpressionIndexMaintainer
from drawstring.metadata.maintained.files import FilesMaintainer
from drawstring.metadata.maintained.partition_stats import PartitionStatsMaintainer
from drawstring.metadata.maintained.protocol import PartitionMaintainer, TableFacts
from drawstring.metadata.maintained.record_index import RecordIndexMaintainer
from drawstring.metadata.maintained.secondary_index import PREFIX, SecondaryIndexMaintainer
from drawstring.model.commit import CommitMetadata


def maintainer_of(partition: str) -> PartitionMaintainer | None:
    """Return what keeps a partition of the metadata table; None if this release cannot.

    Args:
        partition: of the metadata table.
    """
    match partition:
        case "files":
            return FilesMaintainer()
        case "record_index":
            return RecordIndexMaintainer()
        case "bloom_filters":
            return BloomFilterMaintainer()
        case "column_stats":
            return ColumnStatsMaintainer()
        case "partition_stats":
            return PartitionStatsMaintainer()
    if partition.startswith(EXPRESSION_PREFIX):
        return ExpressionIndexMaintainer(partition)
    return SecondaryIndexMaintainer(partition) if partition.startswith(PREFIX) else None


def with_columns(
    maintainers: dict[str, PartitionMaintainer], added: tuple[str, ...]
) -> dict[str, PartitionMaintainer]:
    """Return what keeps some partitions over an instant that adds columns to the table.

    Args:
        maintainers: by partition of the metadata table.
        added: the columns that statistics get.
    """
    if not added:
        return maintainers
    of_columns: dict[str, PartitionMaintainer] = {
        COLUMN_STATS: ColumnStatsMaintainer(added=added),
        PARTITION_STATS: PartitionStatsMaintainer(added),
    }
    return {partition: of_columns.get(partition, each) for partition, each in maintainers.items()}


def can_keep(partition: str, facts: TableFacts, commit: CommitMetadata | None) -> bool:
    """Return whether this release can keep a partition of the metadata table over an instant.

    Args:
        partition: of the metadata table.
        facts: the table as it is.
        commit: of the instant that is about to complete, if it is a write.

    Raises:
        CorruptTableError: the definitions of the indexes, or the schema of the table, are damaged.
    """
    maintainer = maintainer_of(partition)
    if isinstance(maintainer, SecondaryIndexMaintainer):
        return maintainer.can_keep(facts, commit)
    if isinstance(maintainer, ExpressionIndexMaintainer):
        return maintainer.can_keep(facts)
    return maintainer is not None


def maintainers_of(partitions: Iterable[str]) -> dict[str, PartitionMaintainer]:
    """Return what keeps some partitions of the metadata table, those left out that this release cannot keep.

    Args:
        partitions: of the metadata table.
    """
    found = ((each, maintainer_of(each)) for each in partitions)
    return {partition: each for partition, each in found if each is not None}
