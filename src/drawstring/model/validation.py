"""Findings of a table validation."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from drawstring.base.display import Grid, ShowsGrid


class Severity(StrEnum):
    """The severity of a finding."""

    ERROR = "error"
    """Rows are lost, wrong, or cannot be read."""

    WARNING = "warning"
    """Nothing is wrong yet, but something needs to be done."""

    NOTE = "note"
    """Worth knowing."""


class Remedy(StrEnum):
    """The repair that `repair` can apply to a finding."""

    METADATA = "metadata"
    ORPHAN = "orphan"
    PARTITION_METADATA = "partition-metadata"
    PROPERTIES = "properties"
    ROLLBACK = "rollback"
    TEMPORARY = "temporary"


@dataclass(frozen=True, slots=True)
class Finding:
    """One deviation from the expected state of a table.

    Attributes:
        severity: how serious it is.
        check: the violated invariant, in a word or two.
        what: the finding, and what to do about it.
        path: the file or partition, relative to the table.
        instant: requested time of the action concerned.
        remedy: the repair that `repair` can apply; None for none.
    """

    severity: Severity
    check: str
    what: str
    path: str | None = None
    instant: str | None = None
    remedy: Remedy | None = None


@dataclass(frozen=True, slots=True)
class Validation(ShowsGrid):
    """The result of a validation. It shows itself as a table of what was found, in notebooks too.

    Attributes:
        findings: the most severe first.
        instants: number of instants checked, all of the active timeline.
        partitions: number of partitions checked.
        file_groups: number of file groups checked.
        files: number of data files checked.
        records: number of records whose keys were checked; None when file contents were not read.
    """

    findings: tuple[Finding, ...]
    instants: int = 0
    partitions: int = 0
    file_groups: int = 0
    files: int = 0
    records: int | None = None

    def _grid(self) -> Grid:
        rows = [(each.severity, each.check, each.path, each.instant, each.what) for each in self.findings]
        title = "The table is sound" if self.is_sound else "The table is not sound"
        looked = f"{self.instants} instants, {self.file_groups} file groups, {self.files} files"
        head = ("severity", "check", "where", "instant", "what") if rows else ()
        return Grid(title, head, rows, f"Looked at {looked}")

    @property
    def is_sound(self) -> bool:
        """Whether there is no error."""
        return all(finding.severity is not Severity.ERROR for finding in self.findings)
