"""When instants of layout 1 completed, for their names in layout 2. Pure.

Layout 1 has no completion times: the modification time of the completed file stands for it, as in Hudi. That
of the requested file tells whether these can be trusted, for it was put when its name says. In a table that
was copied all files are as old as the copy; log files, which layout 2 sorts by completion times, would come
to stand on base files that already have their records. There an instant is taken to have completed before the
next one was requested, which is the order that readers of layout 1 go by.

    requested  10 commit    20 commit    30 commit
    modified   99           99           99           all by a copy
    completed  19           29           99

Also where the times can be trusted nothing completes before it was requested, and in a MERGE_ON_READ table
nothing that was requested before a compaction completes after that one was planned: writers wait for that.

No completion time equals the requested time of another instant. A write can complete and the next one be
requested within one millisecond; layout 2 gives every time once, and a stored position of a reader, which is
one time, would not say whether it is when the one write completed or when the other one was requested. Such
an instant is taken to have completed one millisecond earlier.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence, Set
from typing import Final

from drawstring.model.instant import Action, State
from drawstring.timeline.archive.writer import StateFile
from drawstring.timeline.instants import epoch_ms_of, instant_time, time_before

InstantKey = tuple[str, Action]

_LATE_MS: Final = 10_000
"""How much later than its name says a requested file may have been put."""


def completion_times(
    files: Sequence[StateFile], timezone: str, *, is_merge_on_read: bool
) -> Mapping[InstantKey, str]:
    """Return the completion time of each completed instant.

    Args:
        files: of the active timeline.
        timezone: of its instant times.
        is_merge_on_read: of the table.
    """
    completed = [each for each in files if each.instant.is_completed]
    if _are_original(files, timezone):
        compactions = (
            each for each in completed if is_merge_on_read and each.instant.action is Action.COMMIT
        )
        bounds = sorted({each.instant.requested for each in compactions})
    else:
        bounds = sorted({each.instant.requested for each in files})
    requested = frozenset(each.instant.requested for each in files)
    return {each.key: _apart(_completion(each, timezone, bounds), each, requested) for each in completed}


def _are_original(files: Sequence[StateFile], timezone: str) -> bool:
    """Tell whether requested files are as old as their names say."""
    for each in files:
        if each.instant.state is State.REQUESTED:
            requested_ms = epoch_ms_of(each.instant.requested, timezone)
            if requested_ms is not None and abs(each.status.modified_ms - requested_ms) > _LATE_MS:
                return False
    return True


def _completion(file: StateFile, timezone: str, bounds: Sequence[str]) -> str:
    """Return the modification time, but not before the request, and before the next of some times."""
    requested = file.instant.requested
    time = max(instant_time(file.status.modified_ms, timezone), requested)
    later = bisect_right(bounds, requested)
    return time if later == len(bounds) else min(time, max(time_before(bounds[later]), requested))


def _apart(time: str, file: StateFile, requested: Set[str]) -> str:
    """Return the greatest time up to one that is no instant's requested time, but not before its own."""
    while time in requested and time > file.instant.requested:
        time = time_before(time)
    return time
