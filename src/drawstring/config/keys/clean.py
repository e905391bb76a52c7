"""Options about cleaning: which old versions of files stay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from drawstring.config.options.option import Kind, Option
from drawstring.model.clean import CleanPolicy

_POLICIES: Final = tuple(each.value for each in CleanPolicy)


@dataclass(frozen=True, slots=True)
class Cleaning:
    """What a clean keeps, and when it is due.

    Attributes:
        automatic: whether every write cleans.
        policy: `KEEP_LATEST_COMMITS`, `KEEP_LATEST_FILE_VERSIONS` or `KEEP_LATEST_BY_HOURS`.
        commits_retained: newest commits whose files stay.
        versions_retained: newest slices of a file group that stay.
        hours_retained: hours for which files stay.
        incremental: whether only partitions are looked at that changed since the last clean.
        due_after_commits: commits after the last clean before the next one.
        window_minutes: how long a query may take whose files stay whatever the policy; 0 for no promise.
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
        "Whether a write deletes old versions of files after its commit.",
        kind=Kind.FLAG,
        default=True,
        field="automatic",
    ),
    Option(
        "hoodie.clean.policy",
        "What a clean keeps: the files of the newest commits, the newest versions of each file group, or the"
        " files of the last hours.",
        default=_POLICIES[0],
        choices=_POLICIES,
        alternatives=("hoodie.cleaner.policy",),
        field="policy",
    ),
    Option(
        "hoodie.clean.commits.retained",
        "Newest commits whose files a clean keeps.",
        kind=Kind.NUMBER,
        default=10,
        alternatives=("hoodie.cleaner.commits.retained",),
        field="commits_retained",
    ),
    Option(
        "hoodie.clean.fileversions.retained",
        "Newest versions of each file group that a clean keeps.",
        kind=Kind.NUMBER,
        default=3,
        alternatives=("hoodie.cleaner.fileversions.retained",),
        field="versions_retained",
    ),
    Option(
        "hoodie.clean.hours.retained",
        "Hours for which a clean keeps files.",
        kind=Kind.NUMBER,
        default=24,
        alternatives=("hoodie.cleaner.hours.retained",),
        field="hours_retained",
    ),
    Option(
        "hoodie.clean.incremental.enabled",
        "Whether a clean looks only at partitions that changed since the last one.",
        kind=Kind.FLAG,
        default=True,
        alternatives=("hoodie.cleaner.incremental.mode",),
        field="incremental",
    ),
    Option(
        "hoodie.clean.trigger.max.commits",
        "Commits after a clean before a write cleans again.",
        kind=Kind.NUMBER,
        default=1,
        alternatives=("hoodie.clean.max.commits",),
        field="due_after_commits",
    ),
    Option(
        "drawstring.clean.window.minutes",
        "Minutes that a query may take: files that one needs which began so long ago stay, however many"
        " commits there were since; 0 for no such promise.",
        kind=Kind.NUMBER,
        default=0,
        minimum=0,
        field="window_minutes",
    ),
)
