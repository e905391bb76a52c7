"""Positions of readers that follow a table: which commits were handed out.

    {"version": 1, "time": T}                    what completed up to T; version 6: was requested up to T
    {"version": 1, "time": T, "requested": R}    that, and what was requested up to R

A table whose version changes orders its commits by other times from then on. Versions 8 and 9 know when a
commit of version 6 completed, which is after it was requested: R says that it was handed out nevertheless.
Positions that were stored without R are known by the commit that they name. Version 6 orders by requested
times what versions 8 and 9 have ordered by completion times: what is requested after T was not handed out.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any, Final

from drawstring.base.errors import InvalidError
from drawstring.model.instant import Instant, time_of
from drawstring.query.facts import TableFacts
from drawstring.query.incremental.commit_ranges import CommitRange, Holes, RangeSpec, find_range
from drawstring.query.incremental.incremental_query import check_commit_times
from drawstring.timeline.archive.reader import open_archive
from drawstring.timeline.instants import EARLIEST, as_instant_time

POSITION_VERSION: Final = 1
"""Version of a stored position's form."""

LATEST: Final = "latest"


@dataclass(frozen=True, slots=True)
class Position:
    """Which commits were handed out.

    Attributes:
        time: those whose time (`time_of`) is not after it.
        requested: those, too, that were requested up to here; None for no others.
    """

    time: str
    requested: str | None = None

    @property
    def is_earliest(self) -> bool:
        """Whether nothing was handed out."""
        return self.time == EARLIEST

    def covers(self, write: Instant) -> bool:
        """Tell whether a commit was handed out."""
        by_request = self.requested is not None and write.requested <= self.requested
        return by_request or time_of(write) <= self.time

    def moved(self, facts: TableFacts, time: str) -> Position:
        """Return the position at a later time of the table.

        What was requested up to some time is forgotten once all of that is known by its completion, too.
        """
        if not _has_completion_times(facts):
            return Position(time, time)
        if self.requested is None or _has_later(facts, time, self.requested):
            return Position(time, self.requested)
        return Position(time)

    def fields(self) -> dict[str, Any]:
        """Return what the stored position consists of."""
        fields = {"version": POSITION_VERSION, "time": self.time}
        return fields if self.requested is None else {**fields, "requested": self.requested}

    def text(self) -> str:
        """Return the text that callers store."""
        return json.dumps(self.fields(), separators=(",", ":"))


START: Final = Position(EARLIEST)


def stored_position(stored: Any) -> Position:
    """Return what a stored position says.

    Args:
        stored: its text or its fields.

    Raises:
        InvalidError: it is none, or one of a later release.
    """
    try:
        fields = json.loads(stored) if isinstance(stored, str) else stored
        version, time, requested = fields["version"], fields["time"], fields.get("requested")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InvalidError(f"{stored!r} is no position: give what a batch said, or a time") from error
    if version != POSITION_VERSION:
        raise InvalidError(f"the position has version {version}: follow on with the release that made it")
    return Position(
        as_instant_time(str(time)), None if requested is None else as_instant_time(str(requested))
    )


def position_from(facts: TableFacts, stored: Any) -> Position:
    """Return a stored position as one of this table, whatever version the table had then.

    Raises:
        InvalidError: see `stored_position`.
    """
    found = stored_position(stored)
    is_plain = found.requested is None and not found.is_earliest
    if is_plain and _has_completion_times(facts) and _names_a_request(facts, found.time):
        return replace(found, requested=found.time)
    return found


def _has_completion_times(facts: TableFacts) -> bool:
    return facts.config.layout.has_completion_times


def _has_later(facts: TableFacts, time: str, requested: str) -> bool:
    """Tell whether anything that was requested up to one time completed after another, or may do so."""
    found = find_range(facts, RangeSpec(time, None, holes=Holes.BLOCK))
    return any(
        each.requested <= requested for each in (*found.writes, *found.archived, *facts.timeline.pending())
    )


def _names_a_request(facts: TableFacts, time: str) -> bool:
    """Tell whether a time is when a commit was requested, rather than when one completed."""
    writes = facts.timeline.writes()
    if any(each.completed == time for each in writes):
        return False
    if facts.timeline.write_at(time) is not None:
        return True
    if not facts.timeline.is_archived(time):
        return False
    archive = open_archive(facts.storage, facts.config)
    return any(each.requested == time and each.is_write for each in archive.completed(time))


def position_of(facts: TableFacts, start: Any) -> Position:
    """Return the position to follow from.

    Args:
        facts: the table.
        start: a position or what was stored of one, a time (exclusive), `earliest` (as None) or `latest`.

    Raises:
        InvalidError: it is none of these.
    """
    check_commit_times(facts)
    if start is None:
        return START
    if isinstance(start, Position):
        return start
    if isinstance(start, str) and start.strip().startswith("{"):
        return position_from(facts, start)
    if isinstance(start, str) and start.strip().lower() == LATEST:
        return newest(facts)
    return Position(as_instant_time(start, facts.config.timezone))


def newest(facts: TableFacts) -> Position:
    """Return the position after all that is committed."""
    last = max(map(time_of, commits_between(facts, START).writes), default=EARLIEST)
    return START.moved(facts, last) if last != EARLIEST else START


def commits_between(facts: TableFacts, start: Position, end: Position | None = None) -> CommitRange:
    """Return the commits that were handed out at one position and not at another, earlier one.

    Args:
        facts: the table.
        start: the earlier position.
        end: the later one; None for all commits.
    """
    stop = None if end is None or end.requested is not None else end.time
    found = find_range(facts, RangeSpec(start.time, stop, holes=Holes.BLOCK))
    if start.requested is None and (end is None or end.requested is None):
        return found

    def some(writes: tuple[Instant, ...]) -> tuple[Instant, ...]:
        return tuple(each for each in writes if not start.covers(each) and (end is None or end.covers(each)))

    writes, archived = some(found.writes), some(found.archived)
    until = None if end is None else max([end.time, *map(time_of, writes)])
    reaches = bool(archived) if _has_completion_times(facts) else found.reaches_archive
    return replace(found, end=until, writes=writes, archived=archived, reaches_archive=reaches)
