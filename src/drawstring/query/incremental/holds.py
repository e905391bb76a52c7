"""Declaring what a reader needs: a hold at its position, placed while it can still be kept.

    look: is everything after the position there? ── put ── look again

A clean that began between the looks either saw the hold, since it looks at the holds again once its plan is
on the timeline, or its plan is there for the second look.
"""

from __future__ import annotations

from typing import Any, Final

from drawstring.base.errors import InvalidError
from drawstring.config.table.config import TableConfig
from drawstring.model.hold import Hold
from drawstring.model.instant import time_of
from drawstring.query.cleaned_files import cleans_of
from drawstring.query.incremental.positions import Position, stored_position
from drawstring.timeline.archive.reader import open_archive
from drawstring.timeline.change_detection import read_settled
from drawstring.timeline.instants import EARLIEST, as_instant_time
from drawstring.timeline.properties_store import load_config
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline
from drawstring.txn.holds import Holds
from drawstring.txn.table_context import TableContext

HOLD_HOURS: Final = 24.0
"""How long a hold lasts when nobody says how long."""

_SPARE_MS: Final = 60_000
"""How much longer a hold has to last for another one to be placed under its protection."""


def hold(state: TableContext, name: str, position: Any, hours: float) -> Hold:
    """Keep what was written after a position, and the table as it was then.

    Args:
        state: the table.
        name: of the reader; a hold of that name moves on.
        position: a stored position, a time, or None for now.
        hours: after which it ends by itself.

    Raises:
        InvalidError: a name, a time or a position that is none, or what is needed is gone already.
    """
    config = load_config(state.storage)
    store = TimelineStore(state.storage, config, state.clock)
    time = _time(store.load(), config, position)
    holds = Holds(state.storage, state.clock, state.ids)
    if any(each.position <= time for each in holds.active(_SPARE_MS)):
        return holds.put(name, time, hours)
    read_settled(store, lambda timeline: _check_there(state, config, store, timeline, time))
    placed = holds.put(name, time, hours)
    try:
        read_settled(store, lambda timeline: _check_there(state, config, store, timeline, time))
    except InvalidError:
        holds.release(name)
        raise
    return placed


def hold_for_scan(state: TableContext, hours: float) -> Hold:
    """Keep the table as it is now, with its timeline; the newest files are always there to be kept.

    Args:
        state: the table.
        hours: after which it ends by itself.

    Raises:
        InvalidError: a time that is none.
    """
    config = load_config(state.storage)
    now = _time(TimelineStore(state.storage, config, state.clock).load(), config, None)
    return Holds(state.storage, state.clock, state.ids).put(
        f"scan-{state.ids.uuid()}", now, hours, is_scan=True
    )


class Keeper:
    """The hold of a reader that follows a table, which moves on with it.

    What is gone already is not its business: whoever follows has said what happens then.

    Args:
        state: the table.
        name: of the reader.
        hours: after which the hold ends if the reader does not come back.
    """

    def __init__(self, state: TableContext, name: str, hours: float) -> None:
        self._holds = Holds(state.storage, state.clock, state.ids)
        self._clock = state.clock
        self._name = name
        self._hours = hours
        self._last: Hold | None = None
        self._position: Position | None = None

    @property
    def position(self) -> Position | None:
        """Where the reader stands, None before it stood anywhere."""
        return self._position

    def at(self, position: Position) -> None:
        """Keep what was written after a position."""
        self._position = position
        self._put()

    def _put(self) -> None:
        if self._position is not None:
            self._last = self._holds.put(self._name, self._position.time, self._hours)

    def renew(self) -> None:
        """Let the hold last on once half of its time is over."""
        last = self._last
        if last is not None and self._clock.now_ms() > (last.held_ms + last.until_ms) // 2:
            self._put()


def _time(timeline: Timeline, config: TableConfig, position: Any) -> str:
    if position is None:
        return max(map(time_of, timeline.writes()), default=EARLIEST)
    if isinstance(position, str) and position.strip().startswith("{"):
        return stored_position(position).time
    return as_instant_time(position, config.timezone)


def _check_there(
    state: TableContext, config: TableConfig, store: TimelineStore, timeline: Timeline, time: str
) -> None:
    first = timeline.first_after(time)
    if first is None:
        return
    if timeline.is_archived(time) and any(
        each.is_write and timeline.write_at(each.requested) is None
        for each in open_archive(state.storage, config).completed(time)
    ):
        raise InvalidError(f"writes after {time} were archived already: take a later position")
    for clean in cleans_of(store, timeline):
        if (clean.earliest or clean.instant.requested) > first:
            raise InvalidError(
                f"files that a reader from {time} on needs were cleaned away already: take a later position",
                instant=clean.instant.requested,
            )
