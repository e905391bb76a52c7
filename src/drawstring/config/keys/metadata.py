"""Options of the partitions of the metadata table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from drawstring.config.options.option import Kind, Option


@dataclass(frozen=True, slots=True)
class MetadataPartitions:
    """Partitions that the metadata table gets, if it does not have them.

    Attributes:
        bloom_filters: those in the footers of base files.
    """

    bloom_filters: bool


METADATA_OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        "hoodie.metadata.index.bloom.filter.enable",
        "Whether the metadata table gets the bloom filters of base files, if it does not have them. Once"
        " there, all writes keep them.",
        kind=Kind.FLAG,
        default=False,
        field="bloom_filters",
    ),
)
