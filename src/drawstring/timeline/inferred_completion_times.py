"""Completion times for the instants of layout 1, needed for their names in layout 2 (pure functions).

Layout 1 has no completion times: the modification time of the completed file is used instead, as in Hudi. The
modification times of requested files show whether it can be trusted, since their names tell when they were
put. In a copied table all files are as old as the copy. Layout 2 assigns log files to file slices by
completion time, so log files would follow base files that already contain their records. There, an instant is
taken to have completed before the next one was requested, which is the order that readers of layout 1 use.

    requested  10 commit    20 commit    30 commit
    modified   99           99           99           all by a copy
    completed  19           29           99

Where the times can be trusted, too, no instant completes before it was requested, and in a MERGE_ON_READ
table no instant that was requested before a compaction completes after that compaction was planned: the
compaction waits for such writers.

No completion time equals the requested time of another instant. A write can complete and the next one be
requested within one millisecond; layout 2 uses every time once, and the stored position of a reader, which is
one time, would be ambiguous. Such an instant is taken to have completed one millisecond earlier.
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
"""How much later than the time in its name a requested file may have been put."""


def completion_times(
    files: Sequence[StateFile], timezone: str, *, is_merge_on_read: bool
) -> Mapping[InstantKey, str]:
    """Return the completion time of each completed instant.

    Args:
        files: of the active timeline.
        timezone: of the instant times.
        is_merge_on_read: whether the table is MERGE_ON_READ.
    """
    completed = [file for file in files if file.instant.is_completed]
    if _are_times_original(files, timezone):
        compactions = (
            file for file in completed if is_merge_on_read and file.instant.action is Action.COMMIT
        )
        bounds = sorted({file.instant.requested for file in compactions})
    else:
        bounds = sorted({file.instant.requested for file in files})
    requested = frozenset(file.instant.requested for file in files)
    return {file.key: _distinct(_completion(file, timezone, bounds), file, requested) for file in completed}


def _are_times_original(files: Sequence[StateFile], timezone: str) -> bool:
    """Return whether the requested files are as old as their names say."""
    for file in files:
        if file.instant.state is State.REQUESTED:
            requested_ms = epoch_ms_of(file.instant.requested, timezone)
            if requested_ms is not None and abs(file.status.modified_ms - requested_ms) > _LATE_MS:
                return False
    return True


def _completion(file: StateFile, timezone: str, bounds: Sequence[str]) -> str:
    """Return the modification time, bounded by the requested time and the next of the given bounds."""
    requested = file.instant.requested
    time = max(instant_time(file.status.modified_ms, timezone), requested)
    later = bisect_right(bounds, requested)
    return time if later == len(bounds) else min(time, max(time_before(bounds[later]), requested))


def _distinct(time: str, file: StateFile, requested: Set[str]) -> str:
    """Move a completion time back, up to its own request, until no instant was requested at it."""
    while time in requested and time > file.instant.requested:
        time = time_before(time)
    return time
