"""When instants of layout 1 completed, for their names in layout 2. Pure.

Layout 1 has no completion times: the modification time of the completed file stands for it, as in Hudi. A
table that was copied has later ones, and then log files, which layout 2 sorts by them, would come to stand
on a base file that already has their records. What cannot have been is therefore put right: nothing
completes before it was requested, and in a MERGE_ON_READ table nothing that was requested before a
compaction completes after that one was planned.

    requested  10 delta    20 compaction    30 delta
    modified   99          99               99            all by a copy
    completed  19          99               99
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping

from drawstring.model.instant import Action
from drawstring.timeline.archive_writer import StateFile
from drawstring.timeline.instants import instant_time, time_before

InstantKey = tuple[str, Action]


def completion_times(
    files: Iterable[StateFile], timezone: str, *, is_merge_on_read: bool
) -> Mapping[InstantKey, str]:
    """Return the completion time of each completed instant.

    Args:
        files: of the active timeline.
        timezone: of its instant times.
        is_merge_on_read: of the table.
    """
    completed = [each for each in files if each.instant.is_completed]
    compactions = sorted(
        each.instant.requested
        for each in completed
        if is_merge_on_read and each.instant.action is Action.COMMIT
    )
    times = {}
    for each in completed:
        requested = each.instant.requested
        time = max(instant_time(each.status.modified_ms, timezone), requested)
        later = bisect_right(compactions, requested)
        if later < len(compactions):
            time = min(time, max(time_before(compactions[later]), requested))
        times[each.key] = time
    return times
