"""Move the plans of compactions and clusterings through the timeline, safe against processes that stalled.

    request_plan     put the plan on the timeline: any process may run it
    start_plan       move it to inflight
    check_archived   find out why a plan is not on the timeline: completed and archived, or unscheduled by
                     another process

A stalled process loses the table lock without noticing, and others go on. So each transition checks the
lock before it and after it, and removes from the timeline what it put there without the lock.
"""

from __future__ import annotations

from typing import Final

from drawstring.base.errors import ConflictError, InvalidError
from drawstring.config.table_config import TableConfig
from drawstring.formats.metadata.rollback import decode_rollback
from drawstring.model.commit import WriteOperation
from drawstring.model.instant import Action, Instant
from drawstring.timeline.archive.reader import open_archive
from drawstring.timeline.claims import Fence
from drawstring.timeline.properties import load_config
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline
from drawstring.txn.locks.service_lease import service_lease
from drawstring.txn.rollback.rollback import table_root
from drawstring.txn.table_context import TableContext
from drawstring.txn.transaction import LockedTable


def request_plan(locked: LockedTable, action: Action, time: str, content: bytes) -> Instant:
    """Put the plan of a table service on the timeline, which any process may run from then on.

    A plan made before a stall may lack what other writers committed since: with a compaction of version 6
    their log files would be lost.

    Args:
        locked: the locked table.
        action: of the instant.
        time: requested time of the instant.
        content: of the plan.

    Raises:
        ConflictError: the lock was lost; the plan is not on the timeline.
    """
    locked.lock.check()
    requested = locked.store.request(action, time, content)
    try:
        locked.lock.check()
    except ConflictError:
        context = locked.context
        with service_lease(context.storage, context.clock, context.ids, time) as lease:
            if lease is not None and requested in locked.store.load().instants:
                locked.store.remove_pending(requested)
                lease.forget()
        raise
    return requested


def start_plan(locked: LockedTable, plan: Instant, fence: Fence) -> Instant:
    """Move a plan to inflight, unless another process may have run or removed it since it was claimed.

    Args:
        locked: the locked table.
        plan: requested.
        fence: the claim on the plan.

    Raises:
        ConflictError: the lock was lost; the plan is as others left it.
    """
    locked.lock.check()
    started = locked.store.start(plan)
    try:
        locked.lock.check()
    except ConflictError:
        is_unscheduled = not locked.context.storage.exists(locked.store.path(plan))
        if is_unscheduled or locked.store.has_fence(plan, fence):  # otherwise another process runs it
            locked.store.revert_to_requested(plan)
        raise
    return started


_OPERATIONS: Final = {
    "compaction": (WriteOperation.COMPACT, WriteOperation.LOG_COMPACT),
    "clustering": (WriteOperation.CLUSTER,),
}
"""The operations that a service writes into commit metadata."""


class NoPlanError(InvalidError):
    """No plan with that requested time is on the timeline; see `check_archived`."""

    @staticmethod
    def of(service: str, requested: str, timeline: Timeline) -> NoPlanError:
        """Return the error for a requested time at which a service has no plan; see `pending_plans`."""
        return NoPlanError(
            f"There is no {service} with this time on the timeline: it was unscheduled or never planned."
            f" {pending_plans(service, timeline)}",
            instant=requested,
        )


_CALLS: Final = {
    "compaction": ("compact", "schedule_compaction", (Action.COMPACTION, Action.LOG_COMPACTION)),
    "clustering": ("cluster", "schedule_clustering", (Action.CLUSTERING,)),
    "base-file compaction": ("compact_base_files", "schedule_base_file_compaction", (Action.CLUSTERING,)),
}
"""The calls that run and plan a service, and the actions of its plans."""


def pending_plans(service: str, timeline: Timeline) -> str:
    """Return which plans of a service are pending, and the next call.

    Args:
        service: `compaction`, `clustering` or `base-file compaction`.
        timeline: of the table.
    """
    run, plan, actions = _CALLS[service]
    pending = ", ".join(each.requested for each in timeline.pending_of(*actions))
    if not pending:
        return f"None is pending: table.services.{plan}() plans one."
    return f"Pending: {pending}. Run one of them with table.services.{run}(instant)."


def check_requested_time(requested: str) -> None:
    """Check the form of the requested time of a plan.

    Raises:
        InvalidError: it has other characters than digits.
    """
    if not (requested.isascii() and requested.isdigit()):
        raise InvalidError(
            f"{requested!r} is no requested time of a plan. It has digits only, as in 20260131235959999:"
            " table.timeline.pending() has those of the table."
        )


def check_archived(
    context: TableContext, service: str, requested: str, *, is_own: bool, error: NoPlanError
) -> None:
    """Find out what became of a plan that is not on the timeline; return if it was completed and archived.

    Args:
        context: the open table.
        service: `compaction` or `clustering`.
        requested: requested time of the plan.
        is_own: whether the caller planned it.
        error: raised if the table has no record of the plan.

    Raises:
        ConflictError: another process unscheduled the plan.
        NoPlanError: the table has no record of the plan.
    """
    config = load_config(context.storage)
    if _was_archived(context, config, service, requested):
        return
    if is_own or _was_rolled_back(context, config, requested):
        raise ConflictError(
            f"Another process unscheduled this {service} before it ran. Run the service again.",
            instant=requested,
        ) from None
    raise error


def _was_archived(context: TableContext, config: TableConfig, service: str, requested: str) -> bool:
    archive = open_archive(context.storage, config)
    start = requested if config.layout.has_completion_times else ""
    writes = (each for each in archive.completed(start) if each.is_write and each.requested == requested)
    return any(archive.commit_metadata(each).operation in _OPERATIONS[service] for each in writes)


def _was_rolled_back(context: TableContext, config: TableConfig, requested: str) -> bool:
    store = TimelineStore(context.storage, config, context.clock)
    root = table_root(context.storage)
    timeline = store.load()
    if requested in timeline.rolled_back:
        return True
    contents = map(store.read, timeline.completed_of(Action.ROLLBACK))
    return any(decode_rollback(data, root).instant == requested for data in contents if data)
