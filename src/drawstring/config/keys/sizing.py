"""Options of file sizing: the target size of base files, and small files that take new records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from drawstring.config.options.option import Kind, Option

MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Sizing:
    """Settings of file sizing.

    Attributes:
        small_file_limit_bytes: size below which a base file takes new records; 0 and -1 for never.
        base_file_size_max_bytes: target size of a base file.
        record_size_bytes: estimated size of a record if no large file gives one, None to measure the rows.
        record_size_threshold: size of the files that give the record size, as a fraction of the small file
            limit.
        auto_split: whether the record size determines the number of records of a new file group.
        split_rows: number of records of a new file group otherwise.
        candidates_max: small file groups of a partition that one write to a MERGE_ON_READ table fills.
        allow_duplicates: whether an insert into a small file keeps existing records with the same key.
    """

    small_file_limit_bytes: int
    base_file_size_max_bytes: int
    record_size_bytes: int | None
    record_size_threshold: float
    auto_split: bool
    split_rows: int
    candidates_max: int
    allow_duplicates: bool


SIZING_OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        "hoodie.parquet.max.file.size",
        "Target size of a new base file, bytes.",
        kind=Kind.NUMBER,
        default=120 * MIB,
        field="base_file_size_max_bytes",
    ),
    Option(
        "hoodie.parquet.small.file.limit",
        "Size below which a base file is rewritten with new records added, bytes; 0 and -1 for never.",
        kind=Kind.NUMBER,
        default=100 * MIB,
        minimum=-1,
        field="small_file_limit_bytes",
    ),
    Option(
        "hoodie.copyonwrite.record.size.estimate",
        "Estimated size of a record while there is no large file to take it from, bytes; measured from the"
        " rows when not given.",
        kind=Kind.NUMBER,
        field="record_size_bytes",
    ),
    Option(
        "hoodie.record.size.estimation.threshold",
        "Size from which a file is used to estimate the record size, as a fraction of the small file limit.",
        kind=Kind.FRACTION,
        default=1.0,
        field="record_size_threshold",
    ),
    Option(
        "hoodie.copyonwrite.insert.auto.split",
        "Whether the number of records of a new file group follows from the target size.",
        kind=Kind.FLAG,
        default=True,
        field="auto_split",
    ),
    Option(
        "hoodie.copyonwrite.insert.split.size",
        "Number of records of a new file group without auto split.",
        kind=Kind.NUMBER,
        default=500_000,
        field="split_rows",
    ),
    Option(
        "hoodie.merge.small.file.group.candidates.limit",
        "Number of small file groups of a partition that one write to a MERGE_ON_READ table fills.",
        kind=Kind.NUMBER,
        default=1,
        minimum=0,
        field="candidates_max",
    ),
    Option(
        "hoodie.merge.allow.duplicate.on.inserts",
        "Whether an insert into a small file keeps existing records with the same key; otherwise they merge.",
        kind=Kind.FLAG,
        default=True,
        field="allow_duplicates",
    ),
)
