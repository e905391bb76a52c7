"""What a look at a whole table found."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How bad a finding is."""

    ERROR = "error"
    """Rows are lost, wrong, or cannot be read."""

    WARNING = "warning"
    """Nothing is wrong yet, but something needs doing."""

    NOTE = "note"
    """Worth knowing."""


class Remedy(StrEnum):
    """What `repair` can do about a finding."""

    ORPHAN = "orphan"
    PARTITION_METADATA = "partition-metadata"
    PROPERTIES = "properties"
    ROLLBACK = "rollback"
    TEMPORARY = "temporary"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be.

    Attributes:
        severity: how bad it is.
        check: the invariant, in a word or two.
        what: what was found and what to do about it.
        path: the file or partition, relative to the table.
        instant: requested time of the action that it is about.
        remedy: what `repair` can do about it; None for nothing.
    """

    severity: Severity
    check: str
    what: str
    path: str | None = None
    instant: str | None = None
    remedy: Remedy | None = None


@dataclass(frozen=True, slots=True)
class Validation:
    """What was looked at, and what was found.

    Attributes:
        findings: the worst first.
        instants: of the active timeline.
        partitions: looked at.
        file_groups: looked at.
        files: data files.
        records: whose keys were read; None when contents were not looked at.
    """

    findings: tuple[Finding, ...]
    instants: int = 0
    partitions: int = 0
    file_groups: int = 0
    files: int = 0
    records: int | None = None

    @property
    def is_sound(self) -> bool:
        """Whether there is no error."""
        return all(finding.severity is not Severity.ERROR for finding in self.findings)
