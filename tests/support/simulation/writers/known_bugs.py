"""Bugs that writers beside each other could have, to be put back into the product.

What the simulation has to notice of them, each at a seed that passes without it:

    candidates_by_time       a commit loses rows of one that was pending when it began
    no_check                 the second of two commits over a file group loses the rows of the first
    stalled_writers_commit   a dead or stalled writer commits after others, who did not see its changes
    live_writers_rolled_back somebody rolls back a write whose heartbeat is young
    inserts_unchecked        two writers insert one key, which the table then has twice
    readers_unchecked        an update by condition misses rows that were inserted meanwhile
    overwrites_unchecked     an overwrite leaves rows of its partition that were inserted meanwhile
    plans_unchecked          a clustering loses rows that were written between its plan and its commit
    no_lock_at_commit        two writers check for conflicts at once, and both commit
    dead_writers_stay        pending writes of dead processes are never rolled back
    retries_unchecked        a write that runs again after a conflict loses rows of other writers
    followed_by_request      a follower goes by requested times, and misses a write that completes late
    holds_ignored            a clean deletes, or an archiver moves, what a follower has not read yet
    savepoints_ignored       a clean deletes files of a savepoint
    restored_beside_writers  a restore takes back the pending writes of live processes
    restores_forgotten       nobody finishes the restore of a dead process
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from drawstring.base.errors import LostRaceError
from drawstring.model.commit import CommitMetadata
from drawstring.model.instant import Instant
from drawstring.query.incremental import batch_ends, commit_ranges, follow, positions
from drawstring.services.cleaning import run as clean
from drawstring.services.savepoints import restore
from drawstring.timeline.claims import Claims
from drawstring.timeline.timeline import Timeline
from drawstring.txn import transaction, write_conflicts
from drawstring.txn.holds import Holds
from drawstring.txn.locks.table_lock import HeldLock
from drawstring.txn.lost_races import Clash
from drawstring.txn.reach import NO_ROWS
from drawstring.txn.rollback import dead_writes
from drawstring.txn.write_conflicts import OwnChanges, refuse_conflicts
from drawstring.write import attempts, run
from tests.support.simulation.writers import history

Bug = Callable[[], AbstractContextManager[Any]]
_clash_with_completed = write_conflicts._clash_with_completed


def _unchecked(*arguments: object) -> None:
    """Find no conflict."""


def _candidates_by_time(own: OwnChanges, began: Timeline, now: Timeline, *others: Any) -> None:
    """Look only at writes that were requested after this one began."""
    begun = began.latest_time() or ""

    def is_known(instant: Instant) -> bool:
        return not instant.is_write or began.write_at(instant.requested) is not None

    kept = (each for each in now.instants if is_known(each) or each.requested > begun)
    refuse_conflicts(own, began, now.with_instants(tuple(kept)), *others)


def _without(**changes: Any) -> Callable[..., Clash | None]:
    """Look for conflicts as if a write had not done something."""

    def shared(
        own: OwnChanges, instant: Instant, other: CommitMetadata, *, spares_logs: bool
    ) -> Clash | None:
        changed = replace(own, **changes)
        return _clash_with_completed(changed, instant, other, spares_logs=spares_logs)

    return shared


class _Unlocked:
    """A lock that nobody holds."""

    def check(self) -> None:
        pass


@contextmanager
def _released_for_good(lock: HeldLock) -> Iterator[None]:
    lock._release()
    yield
    lock._lock = _Unlocked()


def _attempted(context: object, options: object, attempt: Callable[[bool], Any]) -> Any:
    try:
        return attempt(False)
    except LostRaceError:
        with patch.object(attempts, "refuse_conflicts", _unchecked):
            return attempt(False)


def _all_dead(storage: object, clock: object, pending: Sequence[Instant], failed: object) -> list[Instant]:
    return list(pending)


def _none(*arguments: object, **named: object) -> Iterator[Any]:
    return iter(())


def _never(*arguments: object, **named: object) -> bool:
    return False


def _requested(instant: Instant) -> str:
    return instant.requested


@contextmanager
def _by_requested_times() -> Iterator[None]:
    """Follow by requested times; what the table held at one is put the same way."""
    with ExitStack() as stack:
        for module in (commit_ranges, batch_ends, follow, positions, history):
            stack.enter_context(patch.object(module, "time_of", _requested))
        yield


BUGS: dict[str, Bug] = {
    "candidates_by_time": lambda: patch.object(attempts, "refuse_conflicts", _candidates_by_time),
    "no_check": lambda: patch.object(attempts, "refuse_conflicts", _unchecked),
    "stalled_writers_commit": lambda: patch.object(Claims, "bar_stalled", _none),
    "live_writers_rolled_back": lambda: patch.object(dead_writes, "expired", _all_dead),
    "inserts_unchecked": lambda: patch.object(write_conflicts, "_may_insert_same_key", _never),
    "readers_unchecked": lambda: patch.object(
        write_conflicts, "_clash_with_completed", _without(reads=NO_ROWS)
    ),
    "overwrites_unchecked": lambda: patch.object(
        write_conflicts, "_clash_with_completed", _without(overwrites=False, overwrites_table=False)
    ),
    "plans_unchecked": lambda: patch.object(write_conflicts, "_planned_since", _none),
    "no_lock_at_commit": lambda: patch.object(HeldLock, "released", _released_for_good),
    "dead_writers_stay": lambda: patch.object(dead_writes, "expired", lambda *arguments: []),
    "reservations_ignored": lambda: patch.object(attempts, "refuse_reserved", _unchecked),
    "retries_unchecked": lambda: patch.object(run, "attempted", _attempted),
    "followed_by_request": _by_requested_times,
    "holds_ignored": lambda: patch.object(Holds, "files", lambda holds: []),
    "savepoints_ignored": lambda: patch.object(clean, "savepoints", lambda *arguments: {}),
    "restored_beside_writers": lambda: patch.object(restore, "refuse_live_work", _none),
    "restores_forgotten": lambda: patch.object(transaction, "finish_restores", lambda *arguments: []),
}
