"""What rollbacks and restores took off the timeline, by their plans."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from drawstring.base.errors import CorruptTableError
from drawstring.formats.metadata.rollback import decode_rollback_plan
from drawstring.formats.metadata.savepoint import decode_restore_plan
from drawstring.model.instant import Action, Instant
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline

_Decoder = Callable[[bytes], tuple[str, ...]]


def _of_rollback(plan: bytes) -> tuple[str, ...]:
    return (decode_rollback_plan(plan, "").instant,)


def _of_restore(plan: bytes) -> tuple[str, ...]:
    return tuple(time for time, _ in decode_restore_plan(plan).instants)


_DECODERS: Final[dict[Action, _Decoder]] = {Action.ROLLBACK: _of_rollback, Action.RESTORE: _of_restore}


def undone_by(store: TimelineStore, instant: Instant) -> tuple[str, ...]:
    """Return the requested times of what a rollback or restore undoes or undid; none without a readable plan.

    Args:
        store: reads the plan.
        instant: of any action, pending or completed.
    """
    decode = _DECODERS.get(instant.action)
    if decode is None:
        return ()
    try:
        plan = store.read_requested(instant)
        return decode(plan) if plan else ()
    except (CorruptTableError, FileNotFoundError):
        return ()


def undoing(store: TimelineStore, timeline: Timeline, requested: str) -> Instant | None:
    """Return the newest rollback or restore that undoes or undid an instant; None if none is known.

    Args:
        store: reads the plans.
        timeline: of the table.
        requested: requested time of the instant.
    """
    later = (each for each in reversed(timeline.instants) if each.requested > requested)
    return next((each for each in later if requested in undone_by(store, each)), None)
