"""The instants of a table with what undid them and who works on them."""

from __future__ import annotations

from drawstring.base.errors import InvalidError
from drawstring.model.instant import FILE_ACTIONS
from drawstring.model.instant_status import InstantStatus
from drawstring.timeline.properties_store import load_config
from drawstring.timeline.store import TimelineStore
from drawstring.txn.live_work import worked_on
from drawstring.txn.table_context import TableContext
from drawstring.txn.undone import undone_by


def instant_states(context: TableContext, last: int | None = None) -> tuple[InstantStatus, ...]:
    """Return the instants of the active timeline, oldest first; writes nothing.

    Args:
        context: the open table.
        last: how many of the newest ones; None for all.

    Raises:
        InvalidError: `last` is no number of at least 0.
    """
    asked: object = last
    if not (asked is None or (isinstance(asked, int) and asked >= 0)):
        raise InvalidError(f"last is {last!r}. Give the number of instants, or None for all.")
    store = TimelineStore(context.storage, load_config(context.storage), context.clock)
    instants = store.load().instants
    if last is not None:
        instants = instants[max(0, len(instants) - last) :]
    pending = [each for each in instants if not each.is_completed and each.action in FILE_ACTIONS]
    live = worked_on(context, pending)
    return tuple(
        InstantStatus(each, undone_by(store, each), each.requested in live if each in pending else None)
        for each in instants
    )
