"""Options of cleaning: which old file slices are retained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from drawstring.config.options.option import Kind, Option
from drawstring.model.clean import CleanPolicy

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
        due_after_commits: commits after the last clean before the next one.
        window_minutes: duration of queries whose files are retained regardless of the policy; 0 for none.
    """

    automatic: bool
    policy: str
    commits_retained: int
    versions_retained: int
    hours_retained: int
    incremental: bool
    due_after_commits: int
    window_minutes: int


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
