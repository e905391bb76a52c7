"""Writes to file groups in a pending clustering: refused, or let through at the cost of the clustering."""

from __future__ import annotations

from drawstring.config.options import WriteOptions
from drawstring.filegroups.lookup import SliceLookup
from drawstring.formats.clustering_plan import decode_clustering_plan
from drawstring.model.commit import CommitMetadata
from drawstring.model.instant import Action
from drawstring.services.rollback import cancel_clustering
from drawstring.services.transaction import Session
from drawstring.timeline.timeline import Timeline


def lookup_of(session: Session, timeline: Timeline, options: WriteOptions) -> SliceLookup:
    """Return the slices that a write builds on; those in a pending clustering are refused by default."""
    spec = session.state.storage.spec
    return SliceLookup(spec, session.config, timeline, lets_through=options.clustering.allows_updates)


def make_way(session: Session, options: WriteOptions, metadata: CommitMetadata) -> None:
    """Take the pending clusterings off the timeline whose file groups a write changed, if it was told to.

    Otherwise they stay, and whoever runs one here finds out that it is out of date.

    Args:
        session: the table, locked.
        options: of the write.
        metadata: what it is about to commit.
    """
    asked = options.clustering
    if not (asked.allows_updates and asked.rolls_back_on_conflict):
        return
    changed = metadata.touched
    for instant in session.store.load().pending_of(Action.CLUSTERING):
        plan = decode_clustering_plan(session.store.read_requested(instant))
        if changed & plan.inputs:
            cancel_clustering(session.rollback_context(), instant)
