"""Conflicts of writes with pending clusterings of the same file groups.

A write to a file group in a pending clustering is refused by default: beside other writers it waits until the
clustering is done (`write.attempts`). With the option that allows updates it
goes on, and the clustering is cancelled or fails. A clustering that only merges small files of appends is
always cancelled in favour of the write.

Buckets that are being resized are handled by `index.dual_write`.
"""

from __future__ import annotations

from drawstring.base.errors import LostRaceError
from drawstring.config.options.write_options import WriteOptions
from drawstring.filegroups.view.lookup import SliceLookup
from drawstring.formats.metadata.base_file_compaction import is_cancelled_by_writes
from drawstring.formats.metadata.clustering_plan import decode_clustering_plan
from drawstring.model.commit import CommitMetadata
from drawstring.model.hashing import is_resizing
from drawstring.model.instant import Action
from drawstring.timeline.timeline import Timeline
from drawstring.txn.rollback.unschedule import unschedule_clustering
from drawstring.txn.transaction import LockedTable


def write_lookup(
    locked: LockedTable,
    timeline: Timeline,
    options: WriteOptions,
    *,
    has_dual_write: bool = False,
    rivals: tuple[str, ...] = (),
) -> SliceLookup:
    """Return the file slices that a write may build on; by default those in a pending clustering are refused.

    Args:
        locked: the locked table.
        timeline: of the table.
        options: of the write.
        has_dual_write: whether the write also puts its records into the file groups that a pending resizing
            creates (dual write), so that the slices may be used.
        rivals: requested times of writes to whose file groups the write gives way.
    """
    storage = locked.context.storage.spec
    pending = timeline.pending_of(Action.CLUSTERING)
    if not pending:
        return SliceLookup(storage, locked.config, timeline, rivals=rivals)
    allows_updates = has_dual_write or options.clustering.allows_updates
    cancellable = frozenset(
        instant.requested
        for instant in pending
        if is_cancelled_by_writes(decode_clustering_plan(locked.store.read_requested(instant)))
    )
    return SliceLookup(
        storage,
        locked.config,
        timeline,
        allows_updates=allows_updates,
        cancellable=cancellable,
        rivals=rivals,
    )


def cancel_conflicting_clusterings(
    locked: LockedTable, timeline: Timeline, options: WriteOptions, metadata: CommitMetadata
) -> None:
    """Cancel the pending clusterings that conflict with a write and that it is allowed to cancel.

    Other clusterings stay pending, and fail when they are run here. A resizing of buckets that the write was
    allowed to ignore is cancelled: the records of this write are in the old buckets only, and another engine
    that completed the resizing would lose them.

    Args:
        locked: the locked table.
        timeline: of the table, as read under this lock.
        options: of the write.
        metadata: the commit metadata that the write is about to commit.

    Raises:
        LostRaceError: such a clustering has completed.
    """
    clustering = options.clustering
    changed = metadata.touched
    for instant in timeline.pending_of(Action.CLUSTERING):
        plan = decode_clustering_plan(locked.store.read_requested(instant))
        is_cancelled = clustering.allows_updates and (clustering.rolls_back_on_conflict or is_resizing(plan))
        if not (changed & plan.inputs and (is_cancelled or is_cancelled_by_writes(plan))):
            continue
        if not unschedule_clustering(locked.rollback_context(), instant, options.failed_writes):
            raise LostRaceError(
                "A clustering of file groups that this write changes has completed meanwhile. Write again.",
                instant=instant.requested,
            )
