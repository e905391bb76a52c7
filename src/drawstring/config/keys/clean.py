"""Options of cleaning: which old file slices are retained."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from drawstring.base.errors import InvalidError
from drawstring.config.options.option import Kind, Option
from drawstring.model.clean import CleanPolicy

PARTITION_PATTERN: Final = "hoodie.clean.partition.filter.regex"
_POLICIES: Final = tuple(each.value for each in CleanPolicy)


@dataclass(frozen=True, slots=True)
class Cleaning:
    """Settings of cleaning.

    Attributes:
        automatic: whether every write cleans.
        policy: `KEEP_LATEST_COMMITS`, `KEEP_LATEST_FILE_VERSIONS` or `KEEP_LATEST_BY_HOURS`.
        commits_retained: newest commits whose files are retained.
        versions_retained: newest file slices of a file group that are retained.
        hours_retained: hours for which files are retained.
        incremental: whether a clean scans only the partitions that changed since the last clean.
        partition_pattern: regular expression of the partitions that a clean looks at, None for all.
        partitions: paths of the partitions that it looks at, which win over the pattern; empty for all.
        commits_max: most commits that a clean covers after the one before; None for no bound.
        due_after_commits: commits after the last clean before the next one.
        has_filter: whether a clean leaves out partitions.
        window_minutes: duration of queries whose files are retained regardless of the policy; 0 for none.
    """

    automatic: bool
    policy: str
    commits_retained: int
    versions_retained: int
    hours_retained: int
    incremental: bool
    partition_pattern: str | None
    partitions: tuple[str, ...]
    commits_max: int | None
    due_after_commits: int
    window_minutes: int
    has_filter: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "has_filter", bool(self.partitions or self.partition_pattern))
        if self.partition_pattern:
            try:
                re.compile(self.partition_pattern)
            except re.error as error:
                raise InvalidError(
                    f"{PARTITION_PATTERN} is {self.partition_pattern!r}, which is no regular expression"
                    f" ({error}). Correct it, or drop it."
                ) from None

    def covers(self, partition: str) -> bool:
        """Return whether a clean looks at a partition."""
        if self.partitions:
            return partition in self.partitions
        return not self.partition_pattern or re.fullmatch(self.partition_pattern, partition) is not None


CLEAN_OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        "hoodie.clean.automatic",
        "Whether a write cleans the table, that is deletes old file slices, after its commit.",
        kind=Kind.FLAG,
        default=True,
        field="automatic",
    ),
    Option(
        "hoodie.clean.policy",
        "What a clean retains: the files of the newest commits, the newest file slices of each file group, or"
        " the files of the last hours.",
        default=_POLICIES[0],
        choices=_POLICIES,
        alternatives=("hoodie.cleaner.policy",),
        field="policy",
    ),
    Option(
        "hoodie.clean.commits.retained",
        "Newest commits whose files a clean retains.",
        kind=Kind.NUMBER,
        default=10,
        alternatives=("hoodie.cleaner.commits.retained",),
        field="commits_retained",
    ),
    Option(
        "hoodie.clean.fileversions.retained",
        "Newest file slices of each file group that a clean retains.",
        kind=Kind.NUMBER,
        default=3,
        alternatives=("hoodie.cleaner.fileversions.retained",),
        field="versions_retained",
    ),
    Option(
        "hoodie.clean.hours.retained",
        "Hours for which a clean retains files.",
        kind=Kind.NUMBER,
        default=24,
        alternatives=("hoodie.cleaner.hours.retained",),
        field="hours_retained",
    ),
    Option(
        "hoodie.clean.incremental.enabled",
        "Whether a clean scans only the partitions that changed since the last clean.",
        kind=Kind.FLAG,
        default=True,
        alternatives=("hoodie.cleaner.incremental.mode",),
        field="incremental",
    ),
    Option(
        PARTITION_PATTERN,
        "Regular expression of the paths of the partitions that a clean looks at, all of it; the others keep"
        " their files. Such a clean scans all of these partitions.",
        alternatives=("hoodie.cleaner.partition.filter.regex",),
        field="partition_pattern",
    ),
    Option(
        "hoodie.clean.partition.filter.selected",
        "Paths of the partitions that a clean looks at; they win over the regular expression.",
        kind=Kind.LIST,
        default=(),
        alternatives=("hoodie.cleaner.partition.filter.selected",),
        field="partitions",
    ),
    Option(
        "hoodie.clean.max.commits.to.clean",
        "Most commits whose files a clean deletes, counted from the first one that the clean before retained;"
        " later cleans go on from there. No bound when not given.",
        kind=Kind.NUMBER,
        field="commits_max",
    ),
    Option(
        "hoodie.clean.trigger.max.commits",
        "Commits after the last clean before a write cleans again.",
        kind=Kind.NUMBER,
        default=1,
        alternatives=("hoodie.clean.max.commits",),
        field="due_after_commits",
    ),
    Option(
        "drawstring.clean.window.minutes",
        "Longest duration of a query, in minutes: a clean retains the files that a query needs which began"
        " that long ago, however many commits there were since; 0 for no such guarantee.",
        kind=Kind.NUMBER,
        default=0,
        minimum=0,
        field="window_minutes",
    ),
)
