"""Options of the append operation: merging of the small files that it writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from drawstring.config.options.option import Kind, Option


@dataclass(frozen=True, slots=True)
class AppendMerging:
    """Settings of the merging of small files after appends.

    Attributes:
        merges_appended: whether appends merge small files.
        merged_files_min: number of small files of a partition at which they are merged.
    """

    merges_appended: bool
    merged_files_min: int


APPEND_OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        "drawstring.append.merge",
        "Whether an append merges the small files of the partitions that it wrote to once there are enough of"
        " them; false for the highest write rate. A concurrent write to these files succeeds, and the merge"
        " is rolled back. Clustering, if enabled, replaces the merge.",
        kind=Kind.FLAG,
        default=True,
        field="merges_appended",
    ),
    Option(
        "drawstring.append.merge.min.files",
        "Number of small base files (hoodie.parquet.small.file.limit) of a partition at which an append"
        " merges them; the actual number may be a little higher, since not every append checks. A file larger"
        " than all smaller ones together waits until these have grown; a file that a clustering sorted is"
        " never merged.",
        kind=Kind.NUMBER,
        default=10,
        minimum=2,
        field="merged_files_min",
    ),
)
