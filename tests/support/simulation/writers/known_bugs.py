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
    reservations_ignored     the last attempt of a write loses against writers that it should go before
    retries_unchecked        a write that runs again after a conflict loses rows of other writers
    followed_by_request      a follower goes by requested times, and misses a write that completes late
    holds_ignored            a clean deletes, or an archiver moves, what a follower has not read yet
    savepoints_ignored       a clean deletes files of a savepoint
    restored_beside_writers  a restore takes back the pending writes of live processes
    restores_forgotten       nobody finishes the restore of a dead process
    logs_by_instant          a log file that completes after a compaction was planned belongs to the old slice
    overtaken_unchecked      a log file that completes last loses against one that was requested later
    buckets_unchecked        two writers begin a file group each for one new bucket
    clusterings_go_first     a clustering that is to give way to writers loses their rows
    last_gives_way           the last attempt of a write still gives way to writers that began before it
    global_keys_unchecked    two writers put one key into two partitions
    moves_leave_rows         a row that moves to another partition also stays in the old one
    cleans_unlisted          the metadata table names files that a clean has deleted
    moves_unindexed          the record index keeps the old location of a key that moved
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.errors import LostRaceError
from drawstring.filegroups.view import slicing
from drawstring.filegroups.write.changes import MOVED_AWAY
from drawstring.index.global_index import PairTagger
from drawstring.metadata.maintenance import MetadataMaintainer
from drawstring.metadata.partitions import record_index
from drawstring.model.commit import CommitMetadata
from drawstring.model.instant import Action, Instant
from drawstring.query import incremental, stream
from drawstring.services import clean, clustering, savepoint
from drawstring.timeline.claims import Claims
from drawstring.timeline.timeline import Timeline
from drawstring.txn import conflict_resolution, transaction
from drawstring.txn.conflict_resolution import Conflict, OwnChanges, refuse_conflicts
from drawstring.txn.holds import Holds
from drawstring.txn.locks.table_lock import HeldLock
from drawstring.txn.read_set import NO_ROWS
from drawstring.txn.rollback import recovery
from drawstring.write import executor, retry
from drawstring.write.retry import Turn
from tests.support.simulation.writers import history

Bug = Callable[[], AbstractContextManager[Any]]
_clash_with_completed = conflict_resolution._conflict_with_completed
_may_insert_same_key = conflict_resolution._may_insert_same_key
_moved = PairTagger._moved
_lookup = executor._Write._lookup
_change_of = MetadataMaintainer._change_of
_group_change = record_index._group_change


def _unchecked(*arguments: object) -> None:
    """Find no conflict."""


def _candidates_by_time(own: OwnChanges, began: Timeline, now: Timeline, *others: Any) -> None:
    """Look only at writes that were requested after this one began."""
    begun = began.latest_time() or ""

    def is_known(instant: Instant) -> bool:
        return not instant.is_write or began.write_at(instant.requested) is not None

    kept = (each for each in now.instants if is_known(each) or each.requested > begun)
    refuse_conflicts(own, began, now.with_instants(tuple(kept)), *others)


def _without(**changes: Any) -> Callable[..., Conflict | None]:
    """Look for conflicts as if a write had not done something."""

    def shared(
        own: OwnChanges, instant: Instant, other: CommitMetadata, *, spares_logs: bool
    ) -> Conflict | None:
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


_again = threading.local()
"""Whether the writer of a thread runs again."""


def _attempted(context: object, options: object, attempt: Callable[[Turn], Any]) -> Any:
    try:
        return attempt(Turn.BESIDE)
    except LostRaceError:
        _again.is_on = True
        try:
            return attempt(Turn.BESIDE)
        finally:
            _again.is_on = False


def _checked_once(*arguments: Any) -> None:
    if not getattr(_again, "is_on", False):
        refuse_conflicts(*arguments)


@contextmanager
def _retries_unchecked() -> Iterator[None]:
    """Look for conflicts in the first attempt of a write only."""
    checks = patch.object(retry, "refuse_conflicts", _checked_once)
    with patch.object(executor, "run_attempts", _attempted), checks:
        yield


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
        for module in (incremental, stream, stream, stream, history):
            stack.enter_context(patch.object(module, "time_of", _requested))
        yield


def _keys_of_partitions(own: OwnChanges, *others: Any) -> bool:
    return _may_insert_same_key(replace(own, is_global=False), *others)


def _left_behind(tagger: PairTagger, *arguments: Any) -> pa.RecordBatch:
    """Tag rows without those that delete the old version of a row that moves."""
    tagged = _moved(tagger, *arguments)
    return tagged.filter(pc.invert(tagged.column(MOVED_AWAY)))


def _always_gives_way(write: Any, facts: Any, plan: Any, turn: Turn) -> Any:
    return _lookup(write, facts, plan, Turn.BESIDE)


def _change_without_cleans(keeper: MetadataMaintainer, config: Any, instant: Instant, *others: Any) -> Any:
    return None if instant.action is Action.CLEAN else _change_of(keeper, config, instant, *others)


def _without_moves(file_id: str, rows: pa.Table) -> Any:
    """Index the keys that came or went, but not those that did both."""
    keys, went = rows.column(record_index.KEY), rows.column(record_index.IS_REMOVED)
    both = [
        pc.is_in(keys, value_set=rows.filter(each).column(record_index.KEY).combine_chunks())
        for each in (went, pc.invert(went))
    ]
    return _group_change(file_id, rows.filter(pc.invert(pc.and_(*both))))


BUGS: dict[str, Bug] = {
    "candidates_by_time": lambda: patch.object(retry, "refuse_conflicts", _candidates_by_time),
    "no_check": lambda: patch.object(retry, "refuse_conflicts", _unchecked),
    "stalled_writers_commit": lambda: patch.object(Claims, "bar_stalled", _none),
    "live_writers_rolled_back": lambda: patch.object(recovery, "expired", _all_dead),
    "inserts_unchecked": lambda: patch.object(conflict_resolution, "_may_insert_same_key", _never),
    "readers_unchecked": lambda: patch.object(
        conflict_resolution, "_conflict_with_completed", _without(reads=NO_ROWS)
    ),
    "overwrites_unchecked": lambda: patch.object(
        conflict_resolution, "_conflict_with_completed", _without(overwrites=False, overwrites_table=False)
    ),
    "plans_unchecked": lambda: patch.object(conflict_resolution, "_planned_since", _none),
    "no_lock_at_commit": lambda: patch.object(HeldLock, "released", _released_for_good),
    "dead_writers_stay": lambda: patch.object(recovery, "expired", lambda *arguments: []),
    "reservations_ignored": lambda: patch.object(retry, "refuse_reserved", _unchecked),
    "retries_unchecked": _retries_unchecked,
    "followed_by_request": _by_requested_times,
    "holds_ignored": lambda: patch.object(Holds, "files", lambda holds: []),
    "savepoints_ignored": lambda: patch.object(clean, "savepoints", lambda *arguments: {}),
    "restored_beside_writers": lambda: patch.object(savepoint, "refuse_live_work", _none),
    "restores_forgotten": lambda: patch.object(transaction, "finish_restores", lambda *arguments: []),
    "logs_by_instant": lambda: patch.object(slicing, "_completion_of", lambda log, *others: log.instant),
    "overtaken_unchecked": lambda: patch.object(
        conflict_resolution, "_conflict_with_completed", _without(by_commit_time=False)
    ),
    "buckets_unchecked": lambda: patch.object(conflict_resolution, "_new_buckets", lambda metadata: {}),
    "clusterings_go_first": lambda: patch.object(clustering, "conflicting_writes", lambda *arguments: ""),
    "last_gives_way": lambda: patch.object(executor._Write, "_lookup", _always_gives_way),
    "global_keys_unchecked": lambda: patch.object(
        conflict_resolution, "_may_insert_same_key", _keys_of_partitions
    ),
    "moves_leave_rows": lambda: patch.object(PairTagger, "_moved", _left_behind),
    "cleans_unlisted": lambda: patch.object(MetadataMaintainer, "_change_of", _change_without_cleans),
    "moves_unindexed": lambda: patch.object(record_index, "_group_change", _without_moves),
}
