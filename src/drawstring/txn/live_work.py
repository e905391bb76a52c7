"""Who works on the pending instants of a table at this moment.

    write of drawstring or Hudi    its heartbeat is young, and on local files its process holds its lock
    service of drawstring          its process holds the lease of the plan; its heartbeat is for Hudi
    service of Hudi                its heartbeat is young

Cleans, archiving and all else that the table lock covers need no sign of life.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from drawstring.base.clock import Clock
from drawstring.base.errors import ConflictError
from drawstring.config.keys.failed_writes import DEFAULT_FAILED_WRITES, FailedWrites
from drawstring.model.instant import FILE_ACTIONS, PLANNED_ACTIONS, Instant
from drawstring.storage.protocol import Storage
from drawstring.timeline.timeline import Timeline
from drawstring.txn.heartbeats import HEARTBEAT_FOLDER, alive_elsewhere
from drawstring.txn.locks.lease_lock import LEASE_PATH
from drawstring.txn.locks.service_lease import LEASE_FILE, is_leased, runner_of
from drawstring.txn.locks.table_lock import FILE_LOCK_PATH, lock_at
from drawstring.txn.table_context import TableContext
from drawstring.txn.told import told, told_groups

_WAIT: Final = "Wait until it is done, or end that process."


def leased(context: TableContext, pending: Collection[Instant]) -> list[Instant]:
    """Return the plans among some pending instants that a process of drawstring runs; writes nothing."""
    storage, clock, ids = context.storage, context.clock, context.ids
    return [
        each
        for each in pending
        if each.action in PLANNED_ACTIONS and is_leased(storage, clock, ids, each.requested)
    ]


def worked_on(
    context: TableContext,
    pending: Collection[Instant],
    failed: FailedWrites = DEFAULT_FAILED_WRITES,
    *,
    holds_lock: bool = False,
) -> frozenset[str]:
    """Return the requested times of the pending instants that a live process works on; writes nothing.

    Args:
        context: the open table.
        pending: pending instants.
        failed: the greatest age of a live heartbeat.
        holds_lock: whether the caller holds the table lock, so that no single writer is at work.
    """
    storage, clock = context.storage, context.clock
    beating = alive_elsewhere(storage, clock, pending, failed, only_reads=True)
    alive = {*leased(context, pending), *beating}
    if not holds_lock and (silent := [each for each in pending if _is_silent(context, each)]):
        path = LEASE_PATH if context.storage.local_path("") is None else FILE_LOCK_PATH
        if lock_at(context.storage, context.clock, context.ids, path).is_held():
            alive.update(silent)
    return frozenset(each.requested for each in alive)


def _is_silent(context: TableContext, instant: Instant) -> bool:
    """Return whether an instant is one of a single writer, whose sign of life is the table lock."""
    paths = f"{HEARTBEAT_FOLDER}/{instant.requested}", LEASE_FILE.format(instant.requested)
    return instant.action not in PLANNED_ACTIONS and not any(map(context.storage.exists, paths))


def refuse_live_writers(
    storage: Storage,
    clock: Clock,
    pending: Collection[Instant],
    failed: FailedWrites = DEFAULT_FAILED_WRITES,
    advice: str = _WAIT,
    *,
    only_reads: bool = False,
) -> None:
    """Refuse to go on while writers that do not hold the table lock are alive.

    Args:
        storage: the table's files.
        clock: the current time, for the age of heartbeats.
        pending: pending instants.
        failed: the policy for failed writes, with the greatest age of a live heartbeat.
        advice: what to do, as the last sentences of the message.
        only_reads: whether nothing may be written to find out.

    Raises:
        ConflictError: another process or engine is writing one of the instants.
    """
    for instant in alive_elsewhere(storage, clock, pending, failed, only_reads=only_reads):
        raise ConflictError(
            "Another process or engine is writing to this table: the heartbeat of"
            f" {told(storage, clock, instant)} is younger than {failed.alive_ms // 1000} s. {advice}",
            table=storage.spec.uri,
            instant=instant.requested,
        )


def runs_elsewhere(
    context: TableContext, what: str, requested: str, work: Instant | None, advice: str = _WAIT
) -> ConflictError:
    """Return the error of a service whose instant another process has leased.

    Args:
        context: where the table is.
        what: the service, for the message.
        requested: requested time of the instant.
        work: the instant, for its file groups; None to name none.
        advice: what to do, as the last sentences of the message.
    """
    who = runner_of(context.storage, context.clock, context.ids, requested)
    where = "" if work is None else told_groups(context.storage, context.clock, work)
    return ConflictError(
        f"Another process runs this {what} ({who}){where}. {advice}",
        table=context.storage.spec.uri,
        instant=requested,
    )


def refuse_live_work(context: TableContext, timeline: Timeline, failed: FailedWrites, purpose: str) -> None:
    """Leave what live processes are at work on alone: refuse to do something that needs the table for itself.

    A writer of another engine that does not know of claims would complete a write whose files are gone, and a
    service would find that the files it reads are gone.

    Args:
        context: the open table, locked.
        timeline: as read under the lock.
        failed: the greatest age of a live heartbeat.
        purpose: what the caller is about to do, as in `restore the table`.

    Raises:
        ConflictError: a process runs a service, or another process or engine writes.
    """
    pending = timeline.pending_of(*FILE_ACTIONS)
    storage, clock = context.storage, context.clock
    for each in leased(context, pending):
        raise ConflictError(
            f"Another process runs {told(storage, clock, each)}. End that process, or {purpose}"
            " when it is done.",
            table=storage.spec.uri,
            instant=each.requested,
        )
    refuse_live_writers(storage, clock, pending, failed, f"Stop it, or {purpose} when it is done.")
