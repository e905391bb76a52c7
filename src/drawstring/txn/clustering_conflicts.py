"""Writes to file groups in a pending clustering: refused, or let through at the cost of the clustering.

A clustering that nobody asked for, the merge of what appends left, always makes way.

Buckets that are being resized are a case of their own: `index.dual_write`.
"""

from __future__ import annotations

from drawstring.base.errors import ConflictError
from drawstring.config.options.write_options import WriteOptions
from drawstring.filegroups.view.lookup import SliceLookup
from drawstring.formats.metadata.base_file_compaction import gives_way
from drawstring.formats.metadata.clustering_plan import decode_clustering_plan
from drawstring.model.commit import CommitMetadata
from drawstring.model.hashing import is_resizing
from drawstring.model.instant import Action
from drawstring.timeline.timeline import Timeline
from drawstring.txn.rollback.withdrawal import cancel_clustering
from drawstring.txn.transaction import LockedTable


def write_lookup(
    session: LockedTable, timeline: Timeline, options: WriteOptions, *, writes_twice: bool = False
) -> SliceLookup:
    """Return the slices that a write builds on; those in a pending clustering are refused by default.

    Args:
        session: the table, locked.
        timeline: of it.
        options: of the write.
        writes_twice: whether its records go where the clustering brings those that it found, too.
    """
    lets_through = writes_twice or options.clustering.allows_updates
    yielding = frozenset(
        each.requested
        for each in timeline.pending_of(Action.CLUSTERING)
        if gives_way(decode_clustering_plan(session.store.read_requested(each)))
    )
    storage = session.state.storage.spec
    return SliceLookup(storage, session.config, timeline, lets_through=lets_through, yielding=yielding)


def cancel_conflicting_clusterings(
    session: LockedTable, timeline: Timeline, options: WriteOptions, metadata: CommitMetadata
) -> None:
    """Take the pending clusterings off the timeline whose file groups a write changed, if they give way.

    Others stay, and whoever runs one here finds out that it is out of date. A resizing of buckets that was
    let through goes: records of this write are in the old buckets only, and another engine would lose them.

    Args:
        session: the table, locked.
        timeline: of it, under this lock.
        options: of the write.
        metadata: what it is about to commit.
    """
    asked = options.clustering
    changed = metadata.touched
    for instant in timeline.pending_of(Action.CLUSTERING):
        plan = decode_clustering_plan(session.store.read_requested(instant))
        told = asked.allows_updates and (asked.rolls_back_on_conflict or is_resizing(plan))
        if not (changed & plan.inputs and (told or gives_way(plan))):
            continue
        if not cancel_clustering(session.rollback_context(), instant, options.failed_writes):
            raise ConflictError(
                "A clustering of file groups that this write changes completed meanwhile. Write again.",
                instant=instant.requested,
            )
