"""Wait before a commit of base files for the engines that have yet to read the timeline.

Real Hudi puts its instant on the timeline first, and reads the timeline without the lock after that. A commit
with a later requested time that completes in between is no conflict to it, and yet its base file in the same
file group is the older one by its name, and its rows are lost (seen with 1.2.0, also among its own writers).
So base files are not committed before such instants are inflight: Hudi has read the timeline
by then, and finds the commit in conflict.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from drawstring.base.clock import jitter
from drawstring.base.errors import LostRaceError
from drawstring.config.options.write_options import WriteOptions
from drawstring.model.commit import WriteStat
from drawstring.model.instant import Instant, State
from drawstring.timeline.properties_store import load_config
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline
from drawstring.txn.heartbeats import HEARTBEAT_FOLDER, alive_elsewhere
from drawstring.txn.table_context import TableContext
from drawstring.txn.transaction import flush_files
from drawstring.write.facts import WriteFacts

_PAUSE_SECONDS: Final = 0.05
_PAUSE_SECONDS_MAX: Final = 5.0


def flush_to_commit(facts: WriteFacts, stats: Sequence[WriteStat], options: WriteOptions) -> None:
    """Flush the files of a write, and wait until it may be committed beside other engines; see `await_begun`.

    Args:
        facts: the table when the write began.
        stats: of the files.
        options: of the write.
    """
    context = facts.locked.context
    flush_files(context, stats)
    if any(not stat.is_log for stat in stats):  # log files belong to a slice by their completion time
        await_begun(context, options, facts.timeline, facts.time)


def await_begun(
    context: TableContext,
    options: WriteOptions,
    timeline: Timeline | None = None,
    requested: str | None = None,
) -> None:
    """Wait until the writers that are about to read the timeline have read it, before committing base files.

    They need no lock for that, and those that come later find the instant of this process.

    Args:
        context: the open table.
        options: how long to wait in addition to the time after which a dead writer shows.
        timeline: as read when the instant was put on it, or later; None to read it now.
        requested: requested time of the instant that is about to be committed; None if it has none yet.

    Raises:
        LostRaceError: one of them still has not.
    """
    storage, clock, failed = context.storage, context.clock, options.failed_writes
    # Live writers are refused without several writers, and none lives without a heartbeat.
    if not failed.spares_writers or (timeline is None and not storage.list_files(HEARTBEAT_FOLDER)):
        return
    deadline_ms, pause = clock.now_ms() + options.locking.wait_ms + failed.alive_ms, _PAUSE_SECONDS
    while late := alive_elsewhere(storage, clock, _not_begun(timeline or _load(context), requested), failed):
        if clock.now_ms() > deadline_ms:
            raise LostRaceError(
                f"Another engine put the {late[0].action} {late[0].requested} on the timeline and still looks"
                " up where to write: it would not notice what is committed now, and rows would be lost."
                " Nothing was committed. Try again when it is done, or wait longer with"
                " hoodie.write.lock.wait_time_ms.",
                instant=late[0].requested,
            )
        clock.sleep(pause * jitter(context.ids))
        timeline, pause = None, min(2 * pause, _PAUSE_SECONDS_MAX)


def _load(context: TableContext) -> Timeline:
    return TimelineStore(context.storage, load_config(context.storage), context.clock).load()


def _not_begun(timeline: Timeline, requested: str | None) -> list[Instant]:
    pending = [each for each in timeline.pending_writes() if each.state is State.REQUESTED]
    return [each for each in pending if requested is None or each.requested < requested]
