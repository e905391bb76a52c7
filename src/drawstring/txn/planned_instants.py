"""Transitions of planned instants by a process that may have stalled: plans of compactions and clusterings.

A stalled process loses the table lock without noticing, and others go on. So the lock is checked before each
transition, and after it: what was put on the timeline without the lock is taken off again.
"""

from __future__ import annotations

from drawstring.base.errors import ConflictError
from drawstring.model.instant import Action, Instant
from drawstring.timeline.claims import Fence
from drawstring.txn.locks.service_lease import service_lease
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
