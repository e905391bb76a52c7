"""Positions of readers that follow a table: the commits that were already returned.

    {"version": 1, "time": T}                    commits completed up to T; in version 6: requested up to T
    {"version": 1, "time": T, "requested": R}    these, and commits requested up to R

When a table changes its version, the order of its commits changes too. Versions 8 and 9 store the completion
time of a commit of version 6, which is later than its requested time: R marks that it was returned already. A
position that was stored without R is recognized by the requested time that it contains. After a downgrade,
version 6 orders by requested times the commits that versions 8 and 9 ordered by completion times: a commit
that was requested after T was not returned.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any, Final

from drawstring.base.errors import InvalidError
from drawstring.model.instant import Instant, time_of
from drawstring.query.facts import TableFacts
from drawstring.query.incremental.commit_ranges import CommitRange, RangeSpec, find_range
from drawstring.query.incremental.incremental_query import check_commit_times
from drawstring.query.policies import Holes
from drawstring.timeline.archive.reader import open_archive
from drawstring.timeline.instants import EARLIEST, as_instant_time

POSITION_VERSION: Final = 1
"""Version of the format of a stored position."""

LATEST: Final = "latest"


@dataclass(frozen=True, slots=True)
class Position:
    """The commits that were already returned.

    Attributes:
        time: commits whose time (`time_of`) is not later were returned.
        requested: commits requested up to this time were returned as well; None for no others.
    """

    time: str
    requested: str | None = None

    @property
    def is_earliest(self) -> bool:
        """Whether no commit was returned."""
        return self.time == EARLIEST

    def covers(self, write: Instant) -> bool:
        """Return whether a commit was returned."""
        by_requested_time = self.requested is not None and write.requested <= self.requested
        return by_requested_time or time_of(write) <= self.time

    def moved(self, facts: TableFacts, time: str) -> Position:
        """Return the position at a later time.

        The requested time is dropped once every commit up to it is also covered by its completion time.
        """
        if not _has_completion_times(facts):
            return Position(time, time)
        if self.requested is None or _has_later(facts, time, self.requested):
            return Position(time, self.requested)
        return Position(time)

    def fields(self) -> dict[str, Any]:
        """Return the fields of the stored position."""
        fields = {"version": POSITION_VERSION, "time": self.time}
        return fields if self.requested is None else {**fields, "requested": self.requested}

    def text(self) -> str:
        """Return the stored position as JSON text."""
        return json.dumps(self.fields(), separators=(",", ":"))


START: Final = Position(EARLIEST)


def stored_position(stored: Any) -> Position:
    """Parse a stored position.

    Args:
        stored: its JSON text or its fields.

    Raises:
        InvalidError: it is not a position, or a later release stored it.
    """
    try:
        fields = json.loads(stored) if isinstance(stored, str) else stored
        version, time, requested = fields["version"], fields["time"], fields.get("requested")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InvalidError(
            f"{stored!r} is not a position. Pass the position of a batch, or a time."
        ) from error
    if version != POSITION_VERSION:
        raise InvalidError(
            f"The position has version {version}, which this release cannot read. Continue with the release"
            " that stored it."
        )
    return Position(
        as_instant_time(str(time)), None if requested is None else as_instant_time(str(requested))
    )


def position_from(facts: TableFacts, stored: Any) -> Position:
    """Parse a stored position and adapt it to the current table version.

    Raises:
        InvalidError: see `stored_position`.
    """
    position = stored_position(stored)
    is_plain = position.requested is None and not position.is_earliest
    if is_plain and _has_completion_times(facts) and _is_requested_time(facts, position.time):
        return replace(position, requested=position.time)
    return position


def _has_completion_times(facts: TableFacts) -> bool:
    return facts.config.layout.has_completion_times


def _has_later(facts: TableFacts, time: str, requested: str) -> bool:
    """Return whether a write requested up to `requested` completed after `time`, or is pending."""
    later = find_range(facts, RangeSpec(time, None, holes=Holes.BLOCK))
    return any(
        instant.requested <= requested
        for instant in (*later.writes, *later.archived, *facts.timeline.pending())
    )


def _is_requested_time(facts: TableFacts, time: str) -> bool:
    """Return whether a time is the requested time of a commit rather than a completion time."""
    writes = facts.timeline.writes()
    if any(write.completed == time for write in writes):
        return False
    if facts.timeline.write_at(time) is not None:
        return True
    if not facts.timeline.is_archived(time):
        return False
    archive = open_archive(facts.storage, facts.config)
    return any(instant.requested == time and instant.is_write for instant in archive.completed(time))


def position_of(facts: TableFacts, start: Any) -> Position:
    """Return the position to follow from.

    Args:
        facts: the table.
        start: a position, also as stored text, a time (exclusive), `earliest` (same as None) or `latest`.

    Raises:
        InvalidError: `start` is none of these.
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
    """Return the position after all commits."""
    last = max(map(time_of, commits_between(facts, START).writes), default=EARLIEST)
    return START.moved(facts, last) if last != EARLIEST else START


def commits_between(facts: TableFacts, start: Position, end: Position | None = None) -> CommitRange:
    """Return the commits after one position and up to another.

    Args:
        facts: the table.
        start: the earlier position.
        end: the later position; None for no bound.
    """
    stop = None if end is None or end.requested is not None else end.time
    commit_range = find_range(facts, RangeSpec(start.time, stop, holes=Holes.BLOCK))
    if start.requested is None and (end is None or end.requested is None):
        return commit_range

    def between(writes: tuple[Instant, ...]) -> tuple[Instant, ...]:
        return tuple(
            write for write in writes if not start.covers(write) and (end is None or end.covers(write))
        )

    writes, archived = between(commit_range.writes), between(commit_range.archived)
    until = None if end is None else max([end.time, *map(time_of, writes)])
    reaches_archive = bool(archived) if _has_completion_times(facts) else commit_range.reaches_archive
    return replace(commit_range, end=until, writes=writes, archived=archived, reaches_archive=reaches_archive)
