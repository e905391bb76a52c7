"""Options about the size of base files: which ones take new records in, and how many go into one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from drawstring.config.options.option import Kind, Option

MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Sizing:
    """How large base files are to be.

    Attributes:
        small_file_limit_bytes: size below which a base file takes new records in; 0 for never.
        base_file_size_max_bytes: size that a base file aims at.
        record_size_bytes: size of a record while no large file tells it, None to go by the rows.
        record_size_threshold: size of the files that tell it, as a share of the small-file limit.
        auto_split: whether new file groups get as many records as fit by size.
        split_rows: records of a new file group otherwise.
        candidates_max: small file groups of a partition that a MERGE_ON_READ table fills at once.
        allow_duplicates: whether an insert puts records beside others of the same key in a small file.
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
        "Size that a new base file aims at, bytes.",
        kind=Kind.NUMBER,
        default=120 * MIB,
        field="base_file_size_max_bytes",
    ),
    Option(
        "hoodie.parquet.small.file.limit",
        "Size below which a base file takes new records in, by being written anew, bytes; 0 for never.",
        kind=Kind.NUMBER,
        default=100 * MIB,
        minimum=0,
        field="small_file_limit_bytes",
    ),
    Option(
        "hoodie.copyonwrite.record.size.estimate",
        "Size of a record while no large file tells it, bytes; by the rows themselves when not given.",
        kind=Kind.NUMBER,
        field="record_size_bytes",
    ),
    Option(
        "hoodie.record.size.estimation.threshold",
        "Size of the files that tell the size of a record, as a share of the small-file limit.",
        kind=Kind.FRACTION,
        default=1.0,
        field="record_size_threshold",
    ),
    Option(
        "hoodie.copyonwrite.insert.auto.split",
        "Whether new file groups get as many records as fit by size.",
        kind=Kind.FLAG,
        default=True,
        field="auto_split",
    ),
    Option(
        "hoodie.copyonwrite.insert.split.size",
        "Records of a new file group without auto split.",
        kind=Kind.NUMBER,
        default=500_000,
        field="split_rows",
    ),
    Option(
        "hoodie.merge.small.file.group.candidates.limit",
        "Small file groups of a partition that one write to a MERGE_ON_READ table fills.",
        kind=Kind.NUMBER,
        default=1,
        minimum=0,
        field="candidates_max",
    ),
    Option(
        "hoodie.merge.allow.duplicate.on.inserts",
        "Whether an insert leaves records of the same key in a small file beside its own; else they merge.",
        kind=Kind.FLAG,
        default=True,
        field="allow_duplicates",
    ),
)
