"""Requested times of what a metadata table does by itself, rather than for an instant of the table.

            builds of partitions                              services              rollbacks
layout 1    last instant of the table, 010 or a later number  last delta commit,    that of the table, 006
                                                              001 to 005
layout 2    14 zeros and a number                             new times             that of the table

In layout 1 file groups go by the names of files: a base file has to come after all delta commits in it, and
before all that will come. So the suffixes are part of the format (Apache Hudi 1.2.0).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Final

from drawstring.model.instant import BUILD_TIME_PREFIX, Action
from drawstring.model.table_version import TimelineLayout
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline

_NUMBER_DIGITS: Final = 3
_FIRST_NUMBER: Final = {True: 10, False: 0}
"""By whether times have suffixes."""


class Suffix(StrEnum):
    """What follows the time of an instant in that of what a metadata table does by itself in layout 1."""

    COMPACTION = "001"
    CLEAN = "002"
    LOG_COMPACTION = "005"
    ROLLBACK = "006"


def next_build(known: Iterable[str], layout: TimelineLayout, timeline: Callable[[], Timeline]) -> str:
    """Return the requested time of a build of a partition.

    Args:
        known: times of builds that were there; others are ignored.
        layout: of the timelines.
        timeline: loads that of the table.
    """
    after = _last_completed(timeline()) if layout.suffixes_times else BUILD_TIME_PREFIX
    size = len(after) + _NUMBER_DIGITS
    numbers = (each[len(after) :] for each in known if each.startswith(after) and len(each) == size)
    taken = [int(each) for each in numbers if each.isdecimal()]
    return f"{after}{max([_FIRST_NUMBER[layout.suffixes_times] - 1, *taken]) + 1:0{_NUMBER_DIGITS}}"


def _last_completed(timeline: Timeline) -> str:
    return max((each.requested for each in timeline.instants if each.is_completed), default=BUILD_TIME_PREFIX)


def service_time(store: TimelineStore, layout: TimelineLayout, suffix: Suffix) -> str:
    """Return the requested time of a service of a metadata table.

    Args:
        store: the timeline of the metadata table.
        layout: of the timeline.
        suffix: of the service.
    """
    own = store.load()
    return last_delta_commit(own) + suffix if layout.suffixes_times else store.new_time(own)


def last_delta_commit(own: Timeline) -> str:
    """Return the greatest requested time of the delta commits of a metadata table; empty without any."""
    return max((each.requested for each in own.completed_of(Action.DELTA_COMMIT)), default="")
