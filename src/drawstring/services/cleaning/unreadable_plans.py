"""Pending cleans whose plans cannot be read: they leave the timeline, since nothing depends on them."""

from __future__ import annotations

import logging
from typing import Final

from drawstring.base.errors import CorruptTableError
from drawstring.config.options.write_options import WriteOptions
from drawstring.formats.metadata.clean import decode_clean_plan
from drawstring.model.clean import CleanPlan
from drawstring.model.instant import Action, Instant
from drawstring.txn.table_context import TableContext
from drawstring.txn.transaction import LockedTable, lock_table

_log: Final = logging.getLogger("drawstring")


def readable_plan(locked: LockedTable, pending: Instant) -> CleanPlan | None:
    """Return the plan of a pending clean; None, and it is off the timeline, if it cannot be read."""
    try:
        return decode_clean_plan(locked.store.read_requested(pending))
    except CorruptTableError as error:
        _log.warning("Dropping the clean %s, which has no readable plan: %s", pending.requested, error)
        locked.store.remove_pending(pending)
        return None


def drop_unreadable_plans(context: TableContext, options: WriteOptions) -> tuple[str, ...]:
    """Take the pending cleans whose plans cannot be read off the timeline.

    Args:
        context: the open table.
        options: of writes: lock wait.

    Returns:
        The requested times of these cleans.

    Raises:
        ConflictError: another writer holds the table.
    """
    with lock_table(context, options.locking) as locked:
        pending = locked.store.load().pending_of(Action.CLEAN)
        return tuple(each.requested for each in pending if readable_plan(locked, each) is None)
