"""Define what calls return: results of writes and services, events, explanations, validations and locks.

Result, CommitResult, CleanResult, ...   the result of a write or table service
Event                                    a completed action, for logs and metrics
Explanation                              what a query reads, what it skips, and why
Validation, Finding                      the findings of a table validation
TableLocks                               who holds the locks of a table, waits for them, or works on it
                                         without them
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from html import escape
from typing import Any, Final

from drawstring.base.text_format import Grid, ShowsGrid
from drawstring.model.commit import WriteStat
from drawstring.model.instant import Instant, time_of


@dataclass(frozen=True, slots=True)
class Result(ShowsGrid):
    """What a call that may change a table returns; false when there was nothing to do.

    It shows itself as a table of what there was to do.
    """

    @property
    def changed(self) -> bool:
        """Whether the call changed the table; a commit without rows is a change of its timeline."""
        raise NotImplementedError

    def __bool__(self) -> bool:
        return self.changed

    def _grid(self) -> Grid:
        values = ((each.name.replace("_", " "), getattr(self, each.name)) for each in fields(self))
        rows = [
            (name, ", ".join(value) if isinstance(value, tuple) else value) for name, value in values if value
        ]
        return Grid(type(self).__name__, (), rows, "" if self.changed else "There was nothing to do.")


@dataclass(frozen=True, slots=True)
class CommitResult(Result):
    """What a write, compaction, clustering or expiry of partitions committed.

    Attributes:
        instant: requested time; empty when there was nothing to do.
        completed: completion time, from which incremental queries go on; in table version 6, which has none,
            the requested time. None when there was nothing to do.
        operation: name of the operation.
        records_written: records in the new files, including those copied unchanged.
        inserts, updates, deletes: records inserted, updated and deleted. A log file of a merge-on-read table
            counts all its records as updates, including those that lose against the stored record by event
            time, unless it begins a file group; an update by condition writes none of these.
        files: files written.
        bytes_written: bytes of the files written.
        seconds: duration of the action.
        partitions_dropped, groups_dropped: number of partitions dropped, and of the file groups in them.
    """

    instant: str
    completed: str | None
    operation: str
    records_written: int = 0
    inserts: int = 0
    updates: int = 0
    deletes: int = 0
    files: int = 0
    bytes_written: int = 0
    seconds: float = 0.0
    partitions_dropped: int = 0
    groups_dropped: int = 0

    @property
    def changed(self) -> bool:
        """Whether there is a commit."""
        return bool(self.instant)

    @property
    def copied(self) -> int:
        """Records copied unchanged into a new base file; log files have none."""
        return max(0, self.records_written - self.inserts - self.updates)

    @staticmethod
    def nothing(operation: str, seconds: float = 0.0) -> CommitResult:
        """Return the result of an operation that had nothing to do."""
        return CommitResult("", None, operation, seconds=seconds)

    @staticmethod
    def of(instant: Instant, operation: str, stats: Sequence[WriteStat], seconds: float) -> CommitResult:
        """Return the result of a commit, with the sums of its write statistics."""
        return CommitResult(
            instant=instant.requested,
            completed=time_of(instant),
            operation=operation,
            records_written=sum(stat.num_writes for stat in stats),
            inserts=sum(stat.num_inserts for stat in stats),
            updates=sum(stat.num_updates for stat in stats),
            deletes=sum(stat.num_deletes for stat in stats),
            files=len(stats),
            bytes_written=sum(stat.size_bytes for stat in stats),
            seconds=round(seconds, 3),
        )


@dataclass(frozen=True, slots=True)
class ArchiveResult(Result):
    """The instants that an archiving moved from the active timeline into the archived one.

    Attributes:
        instants: number of instants moved; 0 when there was nothing to archive.
        first, last: requested times of the oldest and the newest of them; empty when there are none.
        seconds: duration.
    """

    instants: int = 0
    first: str = ""
    last: str = ""
    seconds: float = 0.0

    @property
    def changed(self) -> bool:
        """Whether an instant was moved."""
        return bool(self.instants)


@dataclass(frozen=True, slots=True)
class VersionResult(Result):
    """A completed change of the table version, or a table that had the requested version already.

    Attributes:
        old, new: table versions, equal if nothing had to change.
        compacted: requested time of the compaction that merged the log files, None if there were none.
        instants: number of instants of the active timeline that were rewritten.
        archived: number of instants of the archived timeline that were rewritten.
        seconds: duration.
    """

    old: int
    new: int
    compacted: str | None = None
    instants: int = 0
    archived: int = 0
    seconds: float = 0.0

    @property
    def changed(self) -> bool:
        """Whether the table has another version now, or leftovers of an interrupted change went."""
        return self.old != self.new or bool(self.instants)


@dataclass(frozen=True, slots=True)
class VersionPlan:
    """The changes that a new table version requires.

    Attributes:
        old, new: table versions.
        moves_timeline: whether the timeline changes its layout.
        properties: old and new value of each changed table property, by key; None for an absent one.
    """

    old: int
    new: int
    moves_timeline: bool
    properties: Mapping[str, tuple[str | None, str | None]]


@dataclass(frozen=True, slots=True)
class RestoreResult(Result):
    """A completed restore.

    Attributes:
        instant: requested time; empty when there was nothing to undo.
        completed: completion time; None in table version 6.
        restored_to: requested time of the write to which the table was restored.
        rolled_back: requested times of the instants that were rolled back, newest first.
        files: files deleted.
        seconds: duration.
    """

    instant: str = ""
    completed: str | None = None
    restored_to: str = ""
    rolled_back: tuple[str, ...] = ()
    files: int = 0
    seconds: float = 0.0

    @property
    def changed(self) -> bool:
        """Whether anything was undone."""
        return bool(self.instant)


@dataclass(frozen=True, slots=True)
class PlannedRollback:
    """The rollback of a pending action, before it runs.

    Attributes:
        instant: requested time of the action.
        action: its action.
        files: paths of the files to delete, and of log files whose blocks will be invalid.
    """

    instant: str
    action: str
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RollbackResult(Result):
    """A pending action that was rolled back.

    Attributes:
        instant: requested time of the action; empty when no write was pending.
        action: its action; empty when no write was pending.
        files: number of files deleted, and of log files whose blocks are invalid now.
        seconds: duration.
    """

    instant: str = ""
    action: str = ""
    files: int = 0
    seconds: float = 0.0

    @property
    def changed(self) -> bool:
        """Whether anything was rolled back."""
        return bool(self.instant)


@dataclass(frozen=True, slots=True)
class CleanResult(Result):
    """A completed clean.

    Attributes:
        instant: requested time; empty when there was nothing to clean.
        completed: completion time; None in table version 6.
        files: files deleted.
        partitions: partitions of these files.
        partitions_deleted: partitions deleted entirely.
        earliest_retained: requested time of the first write whose files are retained; empty under
            `KEEP_LATEST_FILE_VERSIONS`.
        seconds: duration.
    """

    instant: str = ""
    completed: str | None = None
    files: int = 0
    partitions: int = 0
    partitions_deleted: int = 0
    earliest_retained: str = ""
    seconds: float = 0.0

    @property
    def changed(self) -> bool:
        """Whether there is a commit of a clean."""
        return bool(self.instant)


@dataclass(frozen=True, slots=True)
class Event:
    """A completed write or table service.

    Attributes:
        table: root of the table.
        name: name of the table.
        operation: `upsert`, `compact`, `clean`, ...
        instant: requested time; of an archiving the newest archived instant.
        records: records in the new files, including those copied unchanged.
        inserts, updates, deletes: records inserted, updated and deleted.
        files: files written.
        bytes_written: bytes of the files written.
        files_deleted: files deleted.
        instants_archived: instants moved out of the active timeline.
        seconds: duration of the action.
        stages: seconds by stage: `plan` (wait for the lock, load the timeline), `write`, `commit`; empty
            for actions with one stage.
    """

    table: str
    name: str
    operation: str
    instant: str
    records: int = 0
    inserts: int = 0
    updates: int = 0
    deletes: int = 0
    files: int = 0
    bytes_written: int = 0
    files_deleted: int = 0
    instants_archived: int = 0
    seconds: float = 0.0
    stages: Mapping[str, float] = field(default_factory=dict, hash=False)

    def __str__(self) -> str:
        """Return the log line of the event."""
        counts = [
            f"{count:,} {what.format('' if count == 1 else 's')}"
            for count, what in (
                (self.records, "record{}"),
                (self.inserts, "inserted"),
                (self.updates, "updated"),
                (self.deletes, "deleted"),
                (self.files, "file{}"),
                (self.bytes_written, "byte{}"),
                (self.files_deleted, "file{} deleted"),
                (self.instants_archived, "instant{} archived"),
            )
            if count
        ]
        stages = ", ".join(f"{stage} {seconds:.3f}" for stage, seconds in self.stages.items())
        took = f"{self.seconds:.3f} s" + (f" ({stages})" if stages else "")
        return f"{self.operation} of {self.name} at {self.instant}: {', '.join((*counts, took))}"


PARTITIONS: Final = "partitions"
SLICES: Final = "file slices"
_UNIT_BYTES: Final = 1024


@dataclass(frozen=True, slots=True)
class Step:
    """What one step of a plan leaves out.

    Attributes:
        unit: `partitions` or `file slices`.
        by: what rules them out: `listed` for the first step, `path`, `bucket`, `record key`, or the
            name of an index in the metadata table.
        skipped: number left out by this step.
        kept: number left.
        note: why an index that could leave something out is not used, and what to do; empty if it is.
    """

    unit: str
    by: str
    skipped: int
    kept: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class Narrowing:
    """How a plan came to its file slices.

    Attributes:
        listing: where names of files came from: `storage` or `metadata table`.
        steps: what was left out, in order; file slices of skipped partitions are not counted.
        bytes_listed: size of all file slices in partitions that were not skipped.
        where: the condition; None for all rows.
    """

    listing: str
    steps: tuple[Step, ...]
    bytes_listed: int
    where: str | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a query reads, what it skips, and why. Shows itself as a table, in notebooks too.

    Attributes:
        table: root of the table.
        listing: where names of files came from: `storage` or `metadata table`.
        where: the condition; None for all rows.
        steps: what was left out, in order.
        file_slices, base_files, log_files: number to read.
        bytes_to_read: size of these files; columns and row groups that are not needed are not read from them.
        bytes_skipped: size of the skipped files in partitions that are read.
    """

    table: str
    listing: str
    where: str | None
    steps: tuple[Step, ...]
    file_slices: int
    base_files: int
    log_files: int
    bytes_to_read: int
    bytes_skipped: int

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, for JSON."""
        return asdict(self)

    def rows(self) -> Iterator[tuple[str, str, int, int]]:
        """Yield the rows of the table: unit, step, number skipped, number kept."""
        for step in self.steps:
            if not step.note:
                yield step.unit, step.by, step.skipped, step.kept
        yield "files", "base files", 0, self.base_files
        yield "files", "log files", 0, self.log_files

    @property
    def notes(self) -> tuple[str, ...]:
        """Which indexes are not used, why, and what to do."""
        return tuple(f"{step.by} is not used. {step.note}" for step in self.steps if step.note)

    @property
    def summary(self) -> str:
        """One line: what is read, of what, and where names of files come from."""
        listed = next((step.kept for step in self.steps if step.unit == SLICES), self.file_slices)
        read, skipped = size_text(self.bytes_to_read), size_text(self.bytes_to_read + self.bytes_skipped)
        condition = "" if self.where is None else f", where {self.where}"
        return (
            f"{self.file_slices:,} of {listed:,} file slices, {read} of {skipped}, listed by the"
            f" {self.listing}{condition}"
        )

    def __str__(self) -> str:
        """Return the table as text."""
        return "\n".join([f"{self.table}: {self.summary}", *aligned(_HEAD, self.rows()), *self.notes])

    def _repr_html_(self) -> str:
        lines = ((escape(str(value)) for value in row) for row in self.rows())
        cells = "".join(f"<tr><td>{'</td><td>'.join(line)}</td></tr>" for line in lines)
        head = "".join(f"<th>{name}</th>" for name in _HEAD)
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        summary = f"<p>{escape(self.table)}: {escape(self.summary)}</p>"
        return f"{summary}<table><tr>{head}</tr>{cells}</table>{notes}"


_HEAD: Final = ("", "step", "skipped", "kept")


def aligned(head: Sequence[str], rows: Iterator[tuple[str, str, int, int]]) -> list[str]:
    """Return lines of columns; a unit is shown in its first row only."""
    lines, before = [tuple(head)], ""
    for unit, by, skipped, kept in rows:
        lines.append(("" if unit == before else unit, by, f"{skipped:,}" if skipped else "", f"{kept:,}"))
        before = unit
    widths = [max(len(line[at]) for line in lines) for at in range(len(head))]
    return [
        f"  {line[0]:{widths[0]}}  {line[1]:{widths[1]}}  {line[2]:>{widths[2]}}  {line[3]:>{widths[3]}}"
        for line in lines
    ]


def size_text(size_bytes: int) -> str:
    """Return a size with its unit, as in `1.5 MiB`."""
    size = float(size_bytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < _UNIT_BYTES:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= _UNIT_BYTES
    return f"{size:.1f} TiB"


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


@dataclass(frozen=True, slots=True)
class LockState:
    """A lock on the whole table.

    Attributes:
        provider: value of `hoodie.write.lock.provider` that stands for it.
        holder: who holds it, as in messages; empty if it is free.
        waiters: the processes that wait for it, the next one first; None if waiters leave no trace.
    """

    provider: str
    holder: str
    waiters: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class PendingWork:
    """An instant that is requested or inflight.

    Attributes:
        instant: the instant.
        process: the process that works on it, or its engine; empty if no file tells.
        is_alive: whether a live process works on it; None for actions that are done under the table lock.
        heartbeat_age_ms: milliseconds since its last heartbeat; None without one.
        heartbeat_left_ms: milliseconds until that expires, negative since it did; None without one.
        reserves_table: whether it goes first in the whole table.
        reserved_partitions: the partitions where it goes first.
        file_groups: those that it has begun files for or has planned to rewrite, as `partition/file id`.
        advice: what to do about it.
    """

    instant: Instant
    process: str
    is_alive: bool | None
    heartbeat_age_ms: int | None
    heartbeat_left_ms: int | None
    reserves_table: bool
    reserved_partitions: tuple[str, ...]
    file_groups: tuple[str, ...]
    advice: str


@dataclass(frozen=True, slots=True)
class TableLocks(ShowsGrid):
    """Who works on a table. It shows itself as a table, in notebooks too.

    Attributes:
        locks: the locks on the whole table.
        pending: the instants that are requested or inflight, oldest first.
    """

    locks: tuple[LockState, ...]
    pending: tuple[PendingWork, ...]

    def _grid(self) -> Grid:
        held = [(f"lock ({each.provider})", each.holder or "free", "", "") for each in self.locks]
        work = [
            (f"{each.instant.action} {each.instant.requested}", each.process, each.is_alive, each.advice)
            for each in self.pending
        ]
        note = "" if work else "Nothing is pending."
        return Grid("Locks and pending work", ("what", "who", "is alive", "advice"), [*held, *work], note)
