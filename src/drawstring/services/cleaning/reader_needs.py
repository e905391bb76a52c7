"""What cleaning and archiving leave alone because readers need it: holds, and the window of queries."""

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
        first: requested time of the first write whose files and instant stay for them; None for none.
        is_asked: whether anything was asked for, by a hold that is over too.
        over: holds that are over.
        has_scan: whether a scan needs the timeline as it is.
    """

    first: str | None = None
    is_asked: bool = False
    over: tuple[HoldFile, ...] = ()
    has_scan: bool = False

    def reaches_before(self, other: ReaderNeeds) -> bool:
        """Tell whether more is needed than another look found."""
        return self.first is not None and (other.first is None or self.first < other.first)


def reader_needs(
    state: TableContext, config: TableConfig, timeline: Timeline, cleaning: Cleaning
) -> ReaderNeeds:
    """Look at what readers need of a table.

    Args:
        state: the table.
        config: of the table.
        timeline: as it is.
        cleaning: how long queries may take.
    """
    now_ms = state.clock.now_ms()
    found = Holds(state.storage, state.clock, state.ids).files()
    over = tuple(each for each in found if each.hold.is_over(now_ms))
    lasting = [each.hold for each in found if each not in over]
    positions = [each.position for each in lasting]
    if cleaning.window_minutes:
        positions.append(instant_time(now_ms - cleaning.window_minutes * _MINUTE_MS, config.timezone))
    firsts = [first for position in positions if (first := timeline.first_after(position)) is not None]
    has_scan = any(each.is_scan for each in lasting)
    return ReaderNeeds(min(firsts, default=None), bool(positions or over), over, has_scan)


def drop_expired_holds(state: TableContext, needed: ReaderNeeds) -> None:
    """Delete holds that are over, once a clean has looked at what they had kept."""
    for each in needed.over:
        if not each.hold.released:
            _log.warning(
                "nothing is kept for the hold %s at %s any more: its reader did not come back in time",
                each.hold.name,
                each.hold.position,
            )
    Holds(state.storage, state.clock, state.ids).clear(needed.over)
