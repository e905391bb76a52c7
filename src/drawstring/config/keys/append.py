"""Options about what append does for small files, which it writes without looking at any other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from drawstring.config.options.option import Kind, Option


@dataclass(frozen=True, slots=True)
class AppendMerging:
    """When appends merge small files.

    Attributes:
        merges_appended: whether they do.
        merged_files_min: small files of a partition that have to come together for that.
    """

    merges_appended: bool
    merged_files_min: int


APPEND_OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        "drawstring.append.merge",
        "Whether an append has small files of the partitions that it wrote to merged once enough of them came"
        " together; false for the highest rate of writes. Writes to these files meanwhile go through, and the"
        " merge is taken back. Clustering that is asked for takes its place.",
        kind=Kind.FLAG,
        default=True,
        field="merges_appended",
    ),
    Option(
        "drawstring.append.merge.min.files",
        "Small base files (hoodie.parquet.small.file.limit) of a partition that an append merges, or a few"
        " more: about three times while they come together somebody looks. One larger than all smaller ones"
        " together is left alone until they have caught up, one that a clustering sorted for good.",
        kind=Kind.NUMBER,
        default=10,
        minimum=2,
        field="merged_files_min",
    ),
)
