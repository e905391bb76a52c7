"""Conflicts of a write under optimistic concurrency control with instants of other writers.

The write began with one timeline and is about to commit with another one, read under the table lock. What
completed in between, or was planned in between, conflicts unless the write would have given the same table
after it. The rules are those of Hudi's `SimpleConcurrentFileWritesConflictResolutionStrategy` (by file
group) and `BucketIndexConcurrentFileWritesConflictResolutionStrategy` (by bucket), with these differences:

- Hudi finds candidates by requested times and by the instants that were pending when the write began. Here
  every instant that is completed now and was not when the write began is a candidate.
- Two writes that insert the same key conflict, since the key would be in the table twice. Hudi lets both
  commit. Where their keys cannot be compared (`txn.inserted_keys`), inserts into one partition conflict.
- A write that read rows of the table (a merge, an update by condition) conflicts with every write of
  records where its condition or its keys may hold (`txn.reach`), and an overwrite with every write to its
  partitions, or in the table.
- A write that looked up keys conflicts with a clean together with a write to the same partitions: the clean
  may have deleted slices that the write was to find.
- A clustering that was planned since gives way under `PreferWriterConflictResolutionStrategy`: it looks for
  writes that completed since, and for those in progress, before it completes (`services.clustering.attempt`).
  In version 6 nothing tells when a write completed, so the write unschedules the clustering.
- In versions 8 and 9, a compaction that was planned since does not conflict with log files: they belong to
  the file slice that it creates, by their completion time.

Under non-blocking concurrency control, log files of two writes in one file group do not conflict (RFC-66),
unless readers would not agree on the result: they merge the log files of a slice by requested time, and
slices by completion time. So where the order of log files counts (commit-time ordering, deletes), a write
conflicts with one that was requested later and completed earlier. Hudi lets it commit.

Pending clusterings: a write to a file group in one is refused by default; beside other writers it waits until
the clustering is done (`write.attempts`). With the option that allows updates it goes on, and the clustering
is cancelled or fails. A clustering that only merges small files of appends is always cancelled in favour of
the write. Buckets that are being resized are handled by `index.dual_write`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from drawstring.base.errors import DrawstringError
from drawstring.config.options.write_options import WriteOptions
from drawstring.config.table.config import TableConfig
from drawstring.filegroups.view.lookup import SliceLookup
from drawstring.formats.metadata.base_file_compaction import is_cancelled_by_writes
from drawstring.formats.metadata.clustering_plan import decode_clustering_plan
from drawstring.formats.metadata.commit import compacted_groups
from drawstring.index.existing_writes import bucket_of
from drawstring.model.clustering import ClusteringPlan
from drawstring.model.commit import CommitMetadata
from drawstring.model.hashing import is_resizing, nodes_of
from drawstring.model.instant import FILE_ACTIONS, PLANNED_ACTIONS, Action, Instant, State
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline
from drawstring.txn.inserted_keys import Inserts, KeyRules, may_share_key
from drawstring.txn.lost_races import Clash, lost_race, lost_to_clustering, lost_to_plan
from drawstring.txn.reach import NO_ROWS, Groups, Reads
from drawstring.txn.rollback.unschedule import unschedule_clustering
from drawstring.txn.told import process_of
from drawstring.txn.transaction import LockedTable

_SAME_GROUPS: Final = "both changed the same file groups"
_SAME_BUCKETS: Final = "both filled the same new buckets; it wrote to"
_SAME_KEYS: Final = "both may have inserted the same new keys; it wrote to"


@dataclass(frozen=True, slots=True)
class OwnChanges:
    """What a write read and changed, as far as other writers may conflict with it.

    Attributes:
        metadata: the commit metadata of the write.
        tags: whether the write looked its keys up, so that no key may be in the table twice.
        is_hashed: whether the index finds the file group of a key by hashing.
        is_global: whether keys are unique in the whole table.
        fills_logs: whether new records may be in log files although the index does not hash.
        reads: which rows of the table the write read.
        overwrites: whether the write replaces everything in its partitions.
        overwrites_table: whether it replaces everything in the table.
        non_blocking: whether log files in a file group to which others wrote log files are no conflict.
        requested: requested time of the write.
        by_commit_time: whether the order of log files decides which version of a record is the newest.
        precedes_clusterings: whether clusterings that were planned since the write began give way to it.
    """

    metadata: CommitMetadata
    tags: bool = False
    is_hashed: bool = False
    is_global: bool = False
    fills_logs: bool = False
    reads: Reads = NO_ROWS
    overwrites: bool = False
    overwrites_table: bool = False
    non_blocking: bool = False
    requested: str = ""
    by_commit_time: bool = False
    precedes_clusterings: bool = False


def look_ahead(began: Timeline, store: TimelineStore) -> None:
    """Read what others have committed since a write began, so that less is read under the table lock.

    Args:
        began: the timeline with which the write began.
        store: keeps what it reads.
    """
    if not began.pending_writes():
        return  # nobody else was at work, so there is hardly anything to read
    with suppress(DrawstringError, OSError):  # what is wrong there is dealt with under the lock
        for write in store.load().writes():
            if began.write_at(write.requested) is None:
                store.commit_metadata(write)


def refuse_conflicts(own: OwnChanges, began: Timeline, now: Timeline, locked: LockedTable) -> None:
    """Check a write that is about to commit against what other writers did since it began.

    Args:
        own: what the write read and changed.
        began: the timeline with which the write began.
        now: the timeline under the table lock.
        locked: the table, locked.

    Raises:
        LostRaceError: an instant of another writer conflicts.
    """
    if tuple(each for each in now.instants if each.requested != own.requested) == began.instants:
        return
    store, config = locked.store, locked.config
    for instant in _undone(began, now):
        clash = Clash("this write began with its rows, and may have built on them")
        raise lost_race(own.requested, instant, "was rolled back or restored", clash)
    for instant in _archived(began, now):
        clash = Clash("its file groups cannot be compared any more", by_services=True)
        raise lost_race(own.requested, instant, "was completed and archived", clash)
    for instant in _unscheduled(own, began, now):
        clash = Clash("log files or buckets of this write may belong to its plan")
        raise lost_race(own.requested, instant, "was unscheduled", clash)
    is_first = began.latest_write() is None
    is_cleaned = any(each not in began.instants for each in now.completed_of(Action.CLEAN))
    for instant in now.writes():
        if began.write_at(instant.requested) is not None:
            continue
        other = store.commit_metadata(instant)
        # Log files of a write that knows a compaction belong to the slice that it creates.
        spares_logs = not config.rules.names_logs_by_slice or began.find(instant.requested) is not None
        if is_first and _may_have_other_buckets(own, other, config):
            clash = Clash("the table was empty, and both decided on the buckets of", other.touched)
        elif is_cleaned and _may_have_missed_slices(own, other):
            why = "a clean ran too, so that this write may not have found all rows of"
            clash = Clash(why, other.touched, by_services=True)
        elif found := _clash_with_completed(own, instant, other, spares_logs=spares_logs):
            clash = found
        elif not other.compacted and _may_insert_same_key(own, instant, other, locked):
            why = _SAME_BUCKETS if own.is_hashed else _SAME_KEYS
            clash = Clash(why, _places_of_keys(own, other))
        else:
            continue
        what = f"was committed ({str(other.operation).lower()})"
        raise lost_race(own.requested, instant, what, clash, other)
    for instant, inputs in _planned_since(began, now, store):
        if not _gives_way(own, instant) and (shared := inputs & _in_danger(own, instant, config)):
            raise lost_to_plan(own.requested, instant, shared, process_of(locked.context.storage, instant))


def _undone(began: Timeline, now: Timeline) -> Iterator[Instant]:
    """Yield the writes that were completed when the write began, and are gone without being archived."""
    for instant in began.writes():
        if now.write_at(instant.requested) is None and not now.is_archived(instant.requested):
            yield instant


def _archived(began: Timeline, now: Timeline) -> Iterator[Instant]:
    """Yield the instants that were pending when the write began, and have completed and left the timeline."""
    for instant in began.pending_of(*FILE_ACTIONS):
        if now.find(instant.requested) is None and now.is_archived(instant.requested):
            yield instant


def _unscheduled(own: OwnChanges, began: Timeline, now: Timeline) -> Iterator[Instant]:
    """Yield the plans that were pending when the write began, and were taken off the timeline.

    In version 6 a log file that is named after such a compaction belongs to no slice. The same goes for one
    that was written for buckets that are being resized.
    """
    for instant in began.pending_of(*PLANNED_ACTIONS):
        is_apart = instant.action is Action.CLUSTERING and not own.is_hashed
        if now.find(instant.requested) is None and not is_apart:
            yield instant


def _may_have_missed_slices(own: OwnChanges, other: CommitMetadata) -> bool:
    """Return whether a clean may have deleted slices that another write replaced, before they were read."""
    if not (own.tags or own.overwrites):
        return False
    rewritten = {(stat.partition, stat.file_id) for stat in other.stats if not (stat.created or stat.is_log)}
    return own.reads.looked_at(other.superseded | rewritten)


def _may_have_other_buckets(own: OwnChanges, other: CommitMetadata, config: TableConfig) -> bool:
    """Return whether two first writes may have divided one partition into different numbers of buckets."""
    is_open = own.is_hashed and config.bucket_count is None
    return is_open and not _partitions(own.metadata).isdisjoint(_partitions(other))


def _clash_with_completed(
    own: OwnChanges, instant: Instant, other: CommitMetadata, *, spares_logs: bool
) -> Clash | None:
    """Return why a write conflicts with a completed one, other than over new keys; None without a conflict.

    Args:
        own: the write.
        instant: the completed one.
        other: its metadata.
        spares_logs: whether a compaction leaves the log files of the write valid.
    """
    if other.compacted and spares_logs:
        # Once the overwrite is archived, a later compaction of what it replaced would look like a loss.
        is_later = instant.requested > own.requested
        replaced = own.metadata.superseded if is_later else frozenset()
        shared = other.touched & (own.metadata.based | replaced)
        return Clash(_SAME_GROUPS, shared) if shared else None
    if shared := _disputed(own, instant, other):
        return Clash(_SAME_GROUPS, shared)
    if other.changes_records and (own.overwrites_table or own.reads.depends_on(other.touched)):
        return Clash("it changed or added rows where this write reads them, in", other.touched)
    paths = _partitions(own.metadata)
    if own.overwrites and (beside := frozenset(each for each in other.touched if each[0] in paths)):
        return Clash("this write replaces all rows of partitions in which it wrote to", beside)
    return None


def _disputed(own: OwnChanges, instant: Instant, other: CommitMetadata) -> Groups:
    """Return the file groups that two writes changed in a way that depends on their order."""
    shared = own.metadata.touched & other.touched
    if not own.non_blocking:
        return shared
    order_counts = own.by_commit_time or _has_deletes(own.metadata) or _has_deletes(other)
    if order_counts and instant.requested > own.requested:
        return shared
    rewritten = own.metadata.based | own.metadata.superseded | other.based | other.superseded
    return shared & rewritten


def _has_deletes(metadata: CommitMetadata) -> bool:
    return any(stat.num_deletes for stat in metadata.stats)


def _may_insert_same_key(
    own: OwnChanges, instant: Instant, other: CommitMetadata, locked: LockedTable
) -> bool:
    if own.is_hashed:
        # An overwrite gives its partitions new buckets of consistent hashing.
        has_new_rings = not _partitions(own.metadata).isdisjoint(other.replaced)
        own_buckets, others = _new_buckets(own.metadata), _new_buckets(other)
        # Two new file groups of one bucket with the same id are one file group.
        has_second = any(others.get(bucket, file_id) != file_id for bucket, file_id in own_buckets.items())
        return has_new_rings or has_second
    if not own.tags or not other.changes_records:
        return False
    inserts, by_other = Inserts(own.requested, own.metadata), Inserts(instant.requested, other)
    rules = KeyRules(own.is_global, own.fills_logs)
    return may_share_key(locked.context.storage, locked.config, inserts, by_other, rules)


def _places_of_keys(own: OwnChanges, other: CommitMetadata) -> Groups:
    """Return the file groups of another write that may have a key which both inserted."""
    paths = _partitions(own.metadata)
    return frozenset(each for each in other.touched if own.is_global or each[0] in paths)


def _new_buckets(metadata: CommitMetadata) -> dict[tuple[str, int | str], str]:
    """Return the file id of each new file group by partition and bucket.

    With consistent hashing the file id is the bucket.
    """
    new = (stat for stat in metadata.stats if stat.created or stat.begins_log_group)
    buckets = ((stat.partition, stat.file_id, bucket_of(stat.file_id)) for stat in new)
    return {(path, file_id if bucket is None else bucket): file_id for path, file_id, bucket in buckets}


def _partitions(metadata: CommitMetadata) -> frozenset[str]:
    return frozenset(partition for partition, _ in metadata.touched)


def _planned_since(began: Timeline, now: Timeline, store: TimelineStore) -> Iterator[tuple[Instant, Groups]]:
    """Yield the plans that were made since a write began, with the file groups that they read."""
    for instant in now.pending_of(*PLANNED_ACTIONS):
        if began.find(instant.requested) is not None:
            continue
        content = store.read_requested(instant)
        if instant.action is not Action.CLUSTERING:
            yield instant, frozenset(compacted_groups(content))
        elif not is_cancelled_by_writes(plan := decode_clustering_plan(content)):
            yield instant, frozenset(plan.inputs)


def _gives_way(own: OwnChanges, plan: Instant) -> bool:
    """Return whether whoever runs a plan finds the write and gives up, or the write unschedules the plan."""
    return plan.action is Action.CLUSTERING and own.precedes_clusterings


def _in_danger(own: OwnChanges, plan: Instant, config: TableConfig) -> Groups:
    """Return the file groups of a write that must not be in a plan that was made since it began."""
    if plan.action is Action.CLUSTERING or config.rules.names_logs_by_slice:
        return own.metadata.touched
    return own.metadata.based | own.metadata.superseded


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
    context = locked.context
    pending = timeline.pending_of(Action.CLUSTERING)
    if not pending:
        return context.lookup(locked.config, timeline, rivals=rivals)
    allows_updates = has_dual_write or options.clustering.allows_updates
    cancellable = frozenset(
        instant.requested
        for instant in pending
        if is_cancelled_by_writes(decode_clustering_plan(locked.store.read_requested(instant)))
    )
    return SliceLookup(
        context.storage.spec,
        locked.config,
        timeline,
        allows_updates=allows_updates,
        cancellable=cancellable,
        rivals=rivals,
        listing=context.listing(locked.config, timeline),
    )


def cancel_conflicting_clusterings(
    locked: LockedTable, timeline: Timeline, options: WriteOptions, metadata: CommitMetadata
) -> None:
    """Cancel the pending clusterings that conflict with a write and that it is allowed to cancel.

    Other clusterings stay pending, and fail when they are run here. One that runs has looked for such writes
    already if its process stands still just before it completes, and lost the table lock: it cannot complete
    any more. Those that the write was allowed to ignore are cancelled where another engine that completed
    them would do harm: a resizing of buckets would lose the records of this write, which are in the old
    buckets only; any clustering of file groups that the write replaces would bring their records back.

    Args:
        locked: the locked table.
        timeline: of the table, as read under this lock.
        options: of the write.
        metadata: the commit metadata that the write is about to commit.

    Raises:
        LostRaceError: such a clustering has completed.
    """
    clustering = options.clustering
    changed, replaced = metadata.touched, metadata.superseded
    # Who runs the clustering finds no write that was requested before it, without completion times.
    is_preferred = options.concurrency.prefers_writers and not locked.config.layout.has_completion_times
    for instant in timeline.pending_of(Action.CLUSTERING):
        plan = decode_clustering_plan(locked.store.read_requested(instant))
        if not (shared := changed & plan.inputs):
            continue
        is_void = clustering.rolls_back_on_conflict or is_resizing(plan) or bool(replaced & plan.inputs)
        is_allowed = clustering.allows_updates and is_void
        is_copied = _is_written_twice(changed, plan)
        if is_allowed or (is_preferred and not is_copied) or is_cancelled_by_writes(plan):
            context = locked.rollback_context()
            is_completed = not unschedule_clustering(context, instant, options.failed_writes)
        else:
            is_outdated = instant.state is State.INFLIGHT and not is_copied
            is_completed = is_outdated and isinstance(locked.store.fence(instant), Instant)
        if is_completed:
            raise lost_to_clustering(locked, instant.requested, shared)


def _is_written_twice(changed: Groups, plan: ClusteringPlan) -> bool:
    """Return whether a write also has its records in the buckets that a resizing makes."""
    nodes = ((group, node) for group in plan.groups if is_resizing(plan) for node in nodes_of(group))
    return any((group.partition, node.file_id) in changed for group, node in nodes)
