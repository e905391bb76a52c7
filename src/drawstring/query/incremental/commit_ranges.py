"""Ranges of commits: which writes a query of changes is about.

    (start, end]      completion times (versions 8 and 9) or requested times (version 6)
    start only        to the newest
    end only          the newest write up to the end; compaction and clustering are none
    neither           the newest write

A bound of a change query may also be the commit time of a row, which is the requested time of a write: as
start it leaves that write out, as end it takes it in (Hudi's change queries go by requested times alone).

In version 6 a write may complete after one that was requested later: a hole, which a query by requested
times would skip for good once it has passed it. What to do about holes is the caller's choice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from enum import StrEnum
from itertools import islice

from drawstring.base.errors import InvalidError, UnavailableError
from drawstring.model.instant import Instant, time_of
from drawstring.query.facts import TableFacts
from drawstring.timeline.archive.reader import open_archive
from drawstring.timeline.instants import EARLIEST, as_instant_time, instant_time
from drawstring.timeline.layout import file_name

Time = str | datetime | date


class Holes(StrEnum):
    """What a range of a version 6 table does about a pending write before a completed one."""

    FAIL = "FAIL"
    BLOCK = "BLOCK"
    USE_TRANSITION_TIME = "USE_TRANSITION_TIME"


@dataclass(frozen=True, slots=True)
class RangeSpec:
    """A range as a user asks for it.

    Attributes:
        start: None for the newest write only.
        end: inclusive; None for no end.
        include_start: whether writes of the very start are in the range.
        holes: what to do about holes.
        full_scan: whether the whole table may be read when files of the range are gone.
        names_commits: whether a bound that is the requested time of a write stands for that write.
    """

    start: Time | None = None
    end: Time | None = None
    include_start: bool = False
    holes: Holes = Holes.FAIL
    full_scan: bool = True
    names_commits: bool = False


@dataclass(frozen=True, slots=True)
class _Bounds:
    """Which writes a range takes.

    Attributes:
        start: exclusive.
        end: inclusive; None for no end.
        after: requested time of a write that is left out, though it completed after the start.
        until: requested time of a write that is taken in, though it completed after the end.
        time_of: the time of a write.
    """

    start: str
    end: str | None
    after: str | None
    until: str | None
    time_of: Callable[[Instant], str]

    def begin_before(self, write: Instant) -> bool:
        """Tell whether the range starts before a write."""
        return self.start < self.time_of(write) and write.requested != self.after

    def end_after(self, write: Instant) -> bool:
        """Tell whether the range ends with a write, or after it."""
        return self.end is None or self.time_of(write) <= self.end or write.requested == self.until


@dataclass(frozen=True, slots=True)
class CommitRange:
    """A range of times and the completed writes in it.

    Attributes:
        start: exclusive, unless `include_start`.
        end: inclusive; None for no end.
        writes: writes of the active timeline, by requested time.
        archived: archived writes, by requested time; empty in version 6, see `reaches_archive`.
        reaches_archive: whether archived writes are in the range.
        full_scan: whether the whole table may be read when files of the range are gone.
        skips_superseded: whether a file that is gone is left out when a later write of the range gave
            its file group another base file, or replaced the group: its records do not show anyway.
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


def find_range(facts: TableFacts, asked: RangeSpec) -> CommitRange:
    """Return the writes of a range.

    Raises:
        InvalidError: a time that cannot be read, or an end before the start.
        UnavailableError: a hole, and the range is to fail then.
    """
    zone = facts.config.timezone
    time_in = _times(facts, asked.holes)
    begin = EARLIEST if asked.start is None else as_instant_time(asked.start, zone)
    writes = [write for write in _without_holes(facts, asked.holes, begin) if write.is_write]
    stop = None if asked.end is None else as_instant_time(asked.end, zone)
    bounds = _bounds(begin, stop, asked, writes, time_in)
    if asked.start is None:
        until = sorted(filter(bounds.end_after, writes), key=time_in)
        changing = (each for each in reversed(until) if facts.store.commit_metadata(each).changes_records)
        last = tuple(islice(changing, 1))
        if not last and stop is not None:
            return _newest_archived(facts, stop, asked)
        return CommitRange(EARLIEST, max(map(time_in, last), default=stop), last, full_scan=asked.full_scan)
    if stop is not None and stop < begin:
        raise InvalidError(f"the range ends at {stop}, before it starts at {begin}: swap start and end")
    found = tuple(write for write in writes if bounds.begin_before(write) and bounds.end_after(write))
    return _with_archived(facts, CommitRange(bounds.start, stop, found, full_scan=asked.full_scan), bounds)


def _bounds(
    begin: str,
    stop: str | None,
    asked: RangeSpec,
    writes: Sequence[Instant],
    time_in: Callable[[Instant], str],
) -> _Bounds:
    """Return the bounds of a range; a time at which a write completed is no commit time."""
    completed = {time_in(write) for write in writes}
    after = begin if asked.names_commits and begin not in completed else None
    until = stop if asked.names_commits and stop not in completed else None
    if asked.include_start:
        return _Bounds(_before(begin), stop, None, until, time_in)
    return _Bounds(begin, stop, after, until, time_in)


def _newest_archived(facts: TableFacts, stop: str, asked: RangeSpec) -> CommitRange:
    """Return the range of the newest archived write up to a time that changed something, if there is one."""
    archive = open_archive(facts.storage, facts.config)
    writes = (each for each in archive.completed(EARLIEST, stop) if each.is_write)
    newest_first = sorted(writes, key=time_of, reverse=True)
    changing = (each for each in newest_first if archive.commit_metadata(each).changes_records)
    last = tuple(islice(changing, 1))
    return CommitRange(EARLIEST, stop, (), last, reaches_archive=bool(last), full_scan=asked.full_scan)


def _with_archived(facts: TableFacts, found: CommitRange, bounds: _Bounds) -> CommitRange:
    """Add what the archive has of a range.

    In layout 1 records tell by their commit times which of them archived writes made, so the archive,
    which can be large, is not read.
    """
    archive = open_archive(facts.storage, facts.config)
    first = facts.timeline.start
    if not facts.config.layout.has_completion_times:
        reaches = (first is None or found.start < first) and not archive.is_empty()
        return replace(found, reaches_archive=reaches)
    # A write that the end names completed after it.
    reads_on = bounds.until is not None and (first is None or bounds.until < first)
    archived = tuple(
        instant
        for instant in archive.completed(found.start, None if reads_on else found.end)
        if instant.is_write and facts.timeline.write_at(instant.requested) is None
        if bounds.begin_before(instant) and bounds.end_after(instant)
    )
    return replace(found, archived=archived, reaches_archive=bool(archived))


def same_range(facts: TableFacts, found: CommitRange) -> CommitRange:
    """Return the writes of a range as a later look at the table finds them: some may be archived, or undone.

    Args:
        facts: the later look.
        found: the range.
    """
    timeline = facts.timeline
    here = tuple(each for each in found.writes if timeline.write_at(each.requested) is not None)
    archived = tuple(
        each for each in found.writes if each not in here and timeline.is_archived(each.requested)
    )
    if not archived:
        return replace(found, writes=here)
    if found.reaches_archive and not found.archived:
        # Layout 1: the records tell which archived writes are in the range, up to the end that it had.
        end = found.end or max(each.requested for each in found.writes)
        return replace(found, end=end, writes=here)
    return replace(found, writes=here, archived=(*found.archived, *archived), reaches_archive=True)


def archived_writes(facts: TableFacts, found: CommitRange) -> tuple[Instant, ...]:
    """Return the archived writes of a range, for every layout."""
    if not found.reaches_archive or found.archived:
        return found.archived
    first = facts.timeline.start
    return tuple(
        instant
        for instant in open_archive(facts.storage, facts.config).completed(found.start, found.end)
        if instant.is_write and (first is None or instant.requested < first)
    )


def _times(facts: TableFacts, holes: Holes) -> Callable[[Instant], str]:
    if facts.config.layout.has_completion_times or holes is not Holes.USE_TRANSITION_TIME:
        return time_of
    listed = facts.storage.list_files(facts.config.timeline_folder)
    layout = facts.config.layout
    modified = {status.name: instant_time(status.modified_ms, facts.config.timezone) for status in listed}
    return lambda instant: modified.get(file_name(instant, layout), instant.requested)


def _without_holes(facts: TableFacts, holes: Holes, begin: str) -> tuple[Instant, ...]:
    """Return the writes that count; as in Hudi, a range that nothing was written in has no holes."""
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
            "a write is pending that was requested before others that are completed, and a range by requested"
            " times would miss it: wait for it, roll it back, or set"
            " hoodie.read.timeline.holes.resolution.policy to BLOCK or USE_TRANSITION_TIME",
            table=facts.storage.spec.uri,
            instant=pending,
        )
    return tuple(write for write in writes if write.requested < pending)


def _before(time: str) -> str:
    """Return the greatest text that is smaller than all instant times from this one on."""
    if not time.isdigit() or not int(time):
        return EARLIEST
    return f"{int(time) - 1:0{len(time)}d}~"


def check_scannable(found: CommitRange, why: str) -> None:
    """Check that the whole table may be read in place of files that are gone.

    Raises:
        InvalidError: it may not.
    """
    if not found.full_scan:
        raise InvalidError(
            f"{why}: start later, or set hoodie.datasource.read.incr.fallback.fulltablescan.enable to read"
            " the whole table by commit times instead"
        )
