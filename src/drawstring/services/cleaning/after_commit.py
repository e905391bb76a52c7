"""Cleaning after a commit, where that is due."""

from __future__ import annotations

from drawstring.config.keys.failed_writes import FailedWritesPolicy
from drawstring.model.clean import CleanPolicy
from drawstring.model.instant import Action
from drawstring.services.cleaning.plan import earliest_retained
from drawstring.services.cleaning.run import clean_table, cutoff_of
from drawstring.txn.transaction import cleared, exclusive
from drawstring.write.committed import Committed


def clean_when_due(written: Committed) -> None:
    """Clean the table of a commit, under a table lock of its own, if `hoodie.clean.automatic` says so.

    Raises:
        ConflictError: another writer holds the table.
    """
    state, options = written.state, written.options
    if not (options.cleaning.automatic and _may_be_due(written)):
        return
    with exclusive(state, options.lock_wait_ms) as found:
        session, timeline = cleared(found, options.failed_writes)
        clean_table(session, options, timeline, only_if_due=True)


def _may_be_due(written: Committed) -> bool:
    """Tell from the timeline of a commit whether a clean could find anything; no file is read for that."""
    cleaning, timeline = written.options.cleaning, written.timeline
    if cleaning.policy == CleanPolicy.VERSIONS or timeline.pending_of(Action.CLEAN):
        return True
    if timeline.pending_writes() and written.options.failed_writes.policy == FailedWritesPolicy.LAZY:
        return True  # cleaning rolls back what dead writers left
    cutoff = cutoff_of(cleaning, written.state.clock, written.config)
    return earliest_retained(timeline, cleaning, cutoff) is not None
