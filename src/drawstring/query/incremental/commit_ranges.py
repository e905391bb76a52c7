"""Commit ranges: the writes that an incremental or change query reads.

    (start, end]      completion times (versions 8 and 9) or requested times (version 6)
    start only        up to the newest write
    end only          the newest write up to the end; compaction and clustering do not count
    neither           the newest write

A bound of a change query may also be the commit time of a row, which is the requested time of a write. As
start it excludes that write, as end it includes it (Hudi's change queries use requested times only).

In version 6 a write may complete after a write that was requested later. Such a pending write is a hole: a
query by requested times that passes it would never read it. The caller chooses how to treat holes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from itertools import islice

from drawstring.base.errors import InvalidError, UnavailableError
from drawstring.model.instant import Instant, time_of
from drawstring.query.facts import TableFacts
from drawstring.query.policies import Holes
from drawstring.timeline.archive.reader import open_archive
from drawstring.timeline.instants import EARLIEST, as_instant_time, file_name, instant_time

Time = str | datetime | date


@dataclass(frozen=True, slots=True)
class RangeSpec:
    """A range as the user gives it.

    Attributes:
        start: exclusive; None for the newest write only.
        end: inclusive; None for no end.
        include_start: whether the range includes writes at its start.
        holes: treatment of holes.
        full_scan: whether the query may read the whole table when files of the range were deleted.
        names_commits: whether a bound that equals the requested time of a write denotes that write.
        path_glob: pattern of the paths of files to read; empty for all.
    """

    start: Time | None = None
    end: Time | None = None
    include_start: bool = False
    holes: Holes = Holes.FAIL
    full_scan: bool = True
    names_commits: bool = False
    path_glob: str = ""


@dataclass(frozen=True, slots=True)
class _Bounds:
    """Bounds of a range.

    Attributes:
        start: exclusive.
        end: inclusive; None for no end.
        after: requested time of a write that is excluded although it completed after the start.
        until: requested time of a write that is included although it completed after the end.
        time_of: returns the time of a write that the bounds are compared with.
    """

    start: str
    end: str | None
    after: str | None
    until: str | None
    time_of: Callable[[Instant], str]

    def begin_before(self, write: Instant) -> bool:
        """Return whether the range starts before a write."""
        return self.start < self.time_of(write) and write.requested != self.after

    def end_after(self, write: Instant) -> bool:
        """Return whether the range ends with a write, or after it."""
        return self.end is None or self.time_of(write) <= self.end or write.requested == self.until


@dataclass(frozen=True, slots=True)
class CommitRange:
    """A range of times with its completed writes.

    Attributes:
        start: exclusive, unless `include_start`.
        end: inclusive; None for no end.
        writes: writes of the active timeline, sorted by requested time.
        archived: archived writes, sorted by requested time; empty in version 6, see `reaches_archive`.
        reaches_archive: whether the range contains archived writes.
        full_scan: whether the query may read the whole table when files of the range were deleted.
        skips_superseded: whether the query skips a deleted file if a later write of the range wrote a base
            file to its file group or replaced the group, so that none of its records is visible.
    """

    start: str
    end: str | None
    writes: tuple[Instant, ...]
    archived: tuple[Instant, ...] = ()
    reaches_archive: bool = False
    full_scan: bool = True
    skips_superseded: bool = False

    @property
    def commit_times(self) -> tuple[str, ...]:
        """Requested times of the writes."""
        return tuple(instant.requested for instant in (*self.archived, *self.writes))


def find_range(facts: TableFacts, spec: RangeSpec) -> CommitRange:
    """Return the writes of a range.

    Args:
        facts: the table.
        spec: the range, as the user gives it.

    Raises:
        InvalidError: a bound that is not a time, or an end before the start.
        UnavailableError: the range has a hole, and `spec.holes` is FAIL.
    """
    zone = facts.config.timezone
    time_in = _times(facts, spec.holes)
    begin = EARLIEST if spec.start is None else as_instant_time(spec.start, zone)
    writes = [write for write in _before_holes(facts, spec.holes, begin) if write.is_write]
    stop = None if spec.end is None else as_instant_time(spec.end, zone)
    bounds = _bounds(begin, stop, spec, writes, time_in)
    if spec.start is None:
        up_to_end = sorted(filter(bounds.end_after, writes), key=time_in)
        newest_first = reversed(up_to_end)
        changing = (write for write in newest_first if facts.store.commit_metadata(write).changes_records)
        newest = tuple(islice(changing, 1))
        if not newest and stop is not None:
            return _newest_archived(facts, stop, spec)
        end = max(map(time_in, newest), default=stop)
        return CommitRange(EARLIEST, end, newest, full_scan=spec.full_scan)
    if stop is not None and stop < begin:
        raise InvalidError(f"The range ends at {stop}, before its start {begin}. Swap start and end.")
    selected = tuple(write for write in writes if bounds.begin_before(write) and bounds.end_after(write))
    commit_range = CommitRange(bounds.start, stop, selected, full_scan=spec.full_scan)
    return _with_archived(facts, commit_range, bounds)


def _bounds(
    begin: str,
    stop: str | None,
    spec: RangeSpec,
    writes: Sequence[Instant],
    time_in: Callable[[Instant], str],
) -> _Bounds:
    """Return the bounds of a range; a bound at which a write completed is a completion time."""
    completed = {time_in(write) for write in writes}
    after = begin if spec.names_commits and begin not in completed else None
    until = stop if spec.names_commits and stop not in completed else None
    if spec.include_start:
        return _Bounds(_before(begin), stop, None, until, time_in)
    return _Bounds(begin, stop, after, until, time_in)


def _newest_archived(facts: TableFacts, stop: str, spec: RangeSpec) -> CommitRange:
    """Return a range with the newest archived write up to a time that changes records, if any."""
    archive = open_archive(facts.storage, facts.config)
    writes = (instant for instant in archive.completed(EARLIEST, stop) if instant.is_write)
    newest_first = sorted(writes, key=time_of, reverse=True)
    changing = (write for write in newest_first if archive.commit_metadata(write).changes_records)
    newest = tuple(islice(changing, 1))
    return CommitRange(EARLIEST, stop, (), newest, reaches_archive=bool(newest), full_scan=spec.full_scan)


def _with_archived(facts: TableFacts, commit_range: CommitRange, bounds: _Bounds) -> CommitRange:
    """Add the archived writes of a range.

    In timeline layout 1 the commit times of the records identify the records of archived writes, so the
    archive, which can be large, is not read.
    """
    archive = open_archive(facts.storage, facts.config)
    first = facts.timeline.start
    if not facts.config.layout.has_completion_times:
        reaches = (first is None or commit_range.start < first) and not archive.is_empty()
        return replace(commit_range, reaches_archive=reaches)
    # The write that the end denotes completed after the end.
    reads_past_end = bounds.until is not None and (first is None or bounds.until < first)
    archived = tuple(
        instant
        for instant in archive.completed(commit_range.start, None if reads_past_end else commit_range.end)
        if instant.is_write and facts.timeline.write_at(instant.requested) is None
        if bounds.begin_before(instant) and bounds.end_after(instant)
    )
    return replace(commit_range, archived=archived, reaches_archive=bool(archived))


def same_range(facts: TableFacts, commit_range: CommitRange) -> CommitRange:
    """Update a range for a table that was loaded again: writes may have been archived or rolled back.

    Args:
        facts: the table as it is now.
        commit_range: the range as of the first load.
    """
    timeline = facts.timeline
    active = tuple(write for write in commit_range.writes if timeline.write_at(write.requested) is not None)
    archived = tuple(
        write
        for write in commit_range.writes
        if write not in active and timeline.is_archived(write.requested)
    )
    if not archived:
        return replace(commit_range, writes=active)
    if commit_range.reaches_archive and not commit_range.archived:
        # Layout 1: commit times of records select the archived writes, up to the original end of the range.
        end = commit_range.end or max(write.requested for write in commit_range.writes)
        return replace(commit_range, end=end, writes=active)
    return replace(
        commit_range, writes=active, archived=(*commit_range.archived, *archived), reaches_archive=True
    )


def archived_writes(facts: TableFacts, commit_range: CommitRange) -> tuple[Instant, ...]:
    """Return the archived writes of a range, in every timeline layout."""
    if not commit_range.reaches_archive or commit_range.archived:
        return commit_range.archived
    first = facts.timeline.start
    return tuple(
        instant
        for instant in open_archive(facts.storage, facts.config).completed(
            commit_range.start, commit_range.end
        )
        if instant.is_write and (first is None or instant.requested < first)
    )


def _times(facts: TableFacts, holes: Holes) -> Callable[[Instant], str]:
    if facts.config.layout.has_completion_times or holes is not Holes.USE_TRANSITION_TIME:
        return time_of
    listed = facts.storage.list_files(facts.config.timeline_folder)
    layout = facts.config.layout
    modified = {status.name: instant_time(status.modified_ms, facts.config.timezone) for status in listed}
    return lambda instant: modified.get(file_name(instant, layout), instant.requested)


def _before_holes(facts: TableFacts, holes: Holes, begin: str) -> tuple[Instant, ...]:
    """Return the writes before the first hole; as in Hudi, a range without writes has no holes."""
    writes = facts.timeline.writes()
    if facts.config.layout.has_completion_times or holes is Holes.USE_TRANSITION_TIME:
        return writes
    pending = min((instant.requested for instant in facts.timeline.pending_writes()), default=None)
    if pending is None or not writes or writes[-1].requested < pending:
        return writes
    if holes is Holes.FAIL:
        if writes[-1].requested <= begin:
            return writes
        raise UnavailableError(
            "A write is pending although writes that were requested later have completed, so a range of"
            " requested times would skip it. Wait for it, roll it back, or set"
            " hoodie.read.timeline.holes.resolution.policy to BLOCK or USE_TRANSITION_TIME.",
            table=facts.storage.spec.uri,
            instant=pending,
        )
    return tuple(write for write in writes if write.requested < pending)


def _before(time: str) -> str:
    """Return a string that sorts before an instant time and after all earlier ones."""
    if not time.isdigit() or not int(time):
        return EARLIEST
    return f"{int(time) - 1:0{len(time)}d}~"


def check_scannable(commit_range: CommitRange, why: str) -> None:
    """Check that the query may read the whole table instead of deleted files.

    Args:
        commit_range: the range.
        why: sentence for the error that says why the files cannot be read.

    Raises:
        InvalidError: it may not.
    """
    if not commit_range.full_scan:
        raise InvalidError(
            f"{why} Start later, or set hoodie.datasource.read.incr.fallback.fulltablescan.enable to read the"
            " whole table by commit times."
        )
