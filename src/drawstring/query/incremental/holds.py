"""Holds of readers: a hold keeps the files that a reader needs from cleaning and archiving.

    check that all files after the position exist ── write the hold ── check again

A clean that starts between the checks reads the holds again after it wrote its plan to the timeline. So
either the clean sees the hold, or the second check sees the plan of the clean.
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
from drawstring.timeline.change_detection import retry_on_archiving
from drawstring.timeline.instants import EARLIEST, as_instant_time
from drawstring.timeline.properties_store import load_config
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline
from drawstring.txn.holds import Holds
from drawstring.txn.table_context import TableContext

_SPARE_MS: Final = 60_000
"""Remaining lifetime, in milliseconds, that a hold needs to protect a new hold without further checks."""


def hold(context: TableContext, name: str, position: Any, hours: float) -> Hold:
    """Place a hold on the table as of a position, and on everything written after it.

    Args:
        context: the table.
        name: name of the reader; an existing hold of this name moves to the position.
        position: a stored position, a time, or None for now.
        hours: lifetime of the hold.

    Raises:
        InvalidError: an invalid name, time or position, or files that the reader needs were already deleted.
    """
    config = load_config(context.storage)
    store = TimelineStore(context.storage, config, context.clock)
    time = _time(store.load(), config, position)
    holds = Holds(context.storage, context.clock, context.ids)
    if any(active.position <= time for active in holds.active(_SPARE_MS)):
        return holds.put(name, time, hours)
    retry_on_archiving(store, lambda timeline: _check_complete(context, config, store, timeline, time))
    placed = holds.put(name, time, hours)
    try:
        retry_on_archiving(store, lambda timeline: _check_complete(context, config, store, timeline, time))
    except InvalidError:
        holds.release(name)
        raise
    return placed


def hold_for_scan(context: TableContext, hours: float) -> Hold:
    """Place a hold on the current files and timeline; this needs no check, as the newest files exist.

    Args:
        context: the table.
        hours: lifetime of the hold.

    Raises:
        InvalidError: an invalid number of hours.
    """
    config = load_config(context.storage)
    now = _time(TimelineStore(context.storage, config, context.clock).load(), config, None)
    return Holds(context.storage, context.clock, context.ids).put(
        f"scan-{context.ids.uuid()}", now, hours, is_scan=True
    )


class Keeper:
    """Keeps the hold of a following reader at the reader's position.

    It does not check whether files were already deleted: `OnCleaned` defines what the reader does then.

    Args:
        context: the table.
        name: name of the reader.
        hours: lifetime of the hold after its last renewal.
    """

    def __init__(self, context: TableContext, name: str, hours: float) -> None:
        self._holds = Holds(context.storage, context.clock, context.ids)
        self._clock = context.clock
        self._name = name
        self._hours = hours
        self._last: Hold | None = None
        self._position: Position | None = None

    @property
    def position(self) -> Position | None:
        """The position of the reader, None before the first call of `at`."""
        return self._position

    def at(self, position: Position) -> None:
        """Move the hold to a position."""
        self._position = position
        self._put()

    def _put(self) -> None:
        if self._position is not None:
            self._last = self._holds.put(self._name, self._position.time, self._hours)

    def renew(self) -> None:
        """Renew the hold once half of its lifetime has passed."""
        last = self._last
        if last is not None and self._clock.now_ms() > (last.held_ms + last.until_ms) // 2:
            self._put()


def _time(timeline: Timeline, config: TableConfig, position: Any) -> str:
    if position is None:
        return max(map(time_of, timeline.writes()), default=EARLIEST)
    if isinstance(position, str) and position.strip().startswith("{"):
        return stored_position(position).time
    return as_instant_time(position, config.timezone)


def _check_complete(
    context: TableContext, config: TableConfig, store: TimelineStore, timeline: Timeline, time: str
) -> None:
    first = timeline.first_after(time)
    if first is None:
        return
    if timeline.is_archived(time) and any(
        instant.is_write and timeline.write_at(instant.requested) is None
        for instant in open_archive(context.storage, config).completed(time)
    ):
        raise InvalidError(f"Writes after {time} were archived already. Choose a later position.")
    for clean in cleans_of(store, timeline):
        if (clean.earliest or clean.instant.requested) > first:
            raise InvalidError(
                f"Files that a reader from {time} on needs were cleaned away already. Choose a later"
                " position.",
                instant=clean.instant.requested,
            )
