"""A process takes its own write back, whether or not it still holds the table lock.

lock held                    roll the instant back, or delete what was written after others rolled it back
lost, single writer          delete the files if others rolled it back; else the next writer does
lost, beside other writers   take the lock again, then as if it had been held

Whether a write runs again after a failed commit depends on its instant, read under the lock: it does if
nothing is left of it, it is done if others completed it, and without certainty it fails
(`timeline.completion`).
"""

from __future__ import annotations

import logging

from drawstring.base.errors import ConflictError, DecidedError, DrawstringError, LostRaceError, TakenOverError
from drawstring.model.instant import Instant
from drawstring.txn.locks.table_lock import HeldLock
from drawstring.txn.rollback.dead_writes import delete_late_files
from drawstring.txn.rollback.rollback import RollbackContext, rollback_failed_write

_log = logging.getLogger("drawstring")


def abort_write(context: RollbackContext, lock: HeldLock, instant: Instant, *, beside_others: bool) -> None:
    """Roll this process's own instant back; if that fails, another writer does it.

    Args:
        context: of the table.
        lock: the table lock, which may be lost.
        instant: begun by this process.
        beside_others: whether others leave the instant alone until its heartbeat expires; then the lock is
            taken again if it is lost.
    """
    try:
        if not _is_held(lock):
            if not beside_others:
                _discard_rolled_back(context, instant)
                return
            lock.regain()
        timeline = context.store.load()
        current = timeline.find(instant.requested)
        if current is None and not timeline.is_archived(instant.requested):
            delete_late_files(context, timeline, instant.requested)
        elif current is not None and not current.is_completed:
            rollback_failed_write(context, current)
    except (DrawstringError, OSError) as error:
        _log.warning(
            "The failed write %s could not be rolled back; the next writer will do it: %s",
            instant.requested,
            error,
        )


def settle_write(context: RollbackContext, lock: HeldLock, instant: Instant, error: ConflictError) -> Instant:
    """Find out what became of an own write beside others that stood still before its commit.

    Args:
        context: of the table.
        lock: the table lock, which may be lost; it is taken again.
        instant: begun by this process.
        error: why this process could not complete it.

    Returns:
        The completed instant, if others completed it for this process.

    Raises:
        LostRaceError: the instant has left the timeline and never completed: the write can run again.
        ConflictError: the error, if that is not certain.
    """
    abort_write(context, lock, instant, beside_others=True)
    try:
        lock.check()
        timeline = context.store.load()
    except (DrawstringError, OSError):
        raise error from error.__cause__
    known = timeline.find(instant.requested)
    if known is None and not timeline.is_archived(instant.requested) and not isinstance(error, DecidedError):
        raise LostRaceError(error.message, instant=instant.requested) from error
    done = timeline.write_at(instant.requested)
    if done is None or not isinstance(error, TakenOverError):
        raise error
    return done


def _is_held(lock: HeldLock) -> bool:
    try:
        lock.check()
    except ConflictError:
        return False
    return True


def _discard_rolled_back(context: RollbackContext, instant: Instant) -> None:
    """Delete the files that this process wrote after another one had rolled its write back."""
    _log.warning("The write %s lost the table lock; the next writer will roll it back.", instant.requested)
    timeline = context.store.load()
    if instant.requested in timeline.rolled_back:
        delete_late_files(context, timeline, instant.requested)
