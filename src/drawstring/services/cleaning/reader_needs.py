"""What readers need to be kept from cleaning and archiving: holds, and the time window of running queries."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Final

from drawstring.config.keys.clean import Cleaning
from drawstring.config.table.config import TableConfig
from drawstring.timeline.instants import instant_time
from drawstring.timeline.timeline import Timeline
from drawstring.txn.holds import HoldFile, Holds
from drawstring.txn.table_context import TableContext

_MINUTE_MS: Final = 60_000
_log = logging.getLogger("drawstring")


@dataclass(frozen=True, slots=True)
class ReaderNeeds:
    """What readers need.

    Attributes:
        first: requested time of the first write whose files and instant must stay; None for none.
        is_asked: whether there is any hold, including those that are over, or a window.
        over: holds that are over.
        has_scan: whether a scan needs the timeline unchanged.
    """

    first: str | None = None
    is_asked: bool = False
    over: tuple[HoldFile, ...] = ()
    has_scan: bool = False

    def reaches_before(self, other: ReaderNeeds) -> bool:
        """Return whether readers need an earlier write than in another result."""
        return self.first is not None and (other.first is None or self.first < other.first)


def reader_needs(
    context: TableContext, config: TableConfig, timeline: Timeline, cleaning: Cleaning
) -> ReaderNeeds:
    """Return what readers of a table need.

    Args:
        context: the open table.
        config: the table's settings.
        timeline: the current timeline.
        cleaning: options with the greatest duration of queries.
    """
    now_ms = context.clock.now_ms()
    files = Holds(context.storage, context.clock, context.ids).files()
    over = tuple(each for each in files if each.hold.is_over(now_ms))
    active = [each.hold for each in files if each not in over]
    positions = [each.position for each in active]
    if cleaning.window_minutes:
        positions.append(instant_time(now_ms - cleaning.window_minutes * _MINUTE_MS, config.timezone))
    firsts = [first for position in positions if (first := timeline.first_after(position)) is not None]
    has_scan = any(each.is_scan for each in active)
    return ReaderNeeds(min(firsts, default=None), bool(positions or over), over, has_scan)


def drop_expired_holds(context: TableContext, needed: ReaderNeeds) -> None:
    """Delete holds that are over, after a clean has taken account of them."""
    for hold_file in needed.over:
        if not hold_file.hold.released:
            _log.warning(
                "The hold %s at %s has expired, and its files are no longer kept: its reader did not renew it"
                " in time.",
                hold_file.hold.name,
                hold_file.hold.position,
            )
    Holds(context.storage, context.clock, context.ids).clear(needed.over)
