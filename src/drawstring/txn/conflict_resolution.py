"""Find the conflicts of a write with instants of other writers, under optimistic concurrency control.

The write began with one timeline. It is about to commit on another timeline, which it reads under the table
lock. `refuse_conflicts` compares the two. An instant that completed or was planned in between is in
conflict, unless the write would have made the same table after it. The rules are those of Hudi's
`SimpleConcurrentFileWritesConflictResolutionStrategy` (by file group) and
`BucketIndexConcurrentFileWritesConflictResolutionStrategy` (by bucket), with these differences:

- Hudi finds candidates by requested times and by the instants that were pending when the write began. Here
  every instant that is completed now and was not when the write began is a candidate.
- Two writes that insert the same key conflict, since the table would have the key twice. Hudi lets both
  commit. Where their keys cannot be compared, inserts into one partition conflict.
- A write that read rows of the table (a merge, an update by condition) conflicts with every write of
  records where its condition or its keys may hold (`txn.read_set`). An overwrite conflicts with every write
  to its partitions, or to the table.
- A write that looked up keys conflicts with a clean together with a write to the same partitions. The clean
  may have deleted slices before the write found them.
- A clustering that was planned since gives way under `PreferWriterConflictResolutionStrategy`: before it
  completes, it looks for writes that completed since or are in progress (`services.clustering`). A table of
  version 6 has no completion times, so the write unschedules the clustering.
- In versions 8 and 9, a compaction that was planned since does not conflict with log files. By their
  completion time the log files belong to the file slice that the compaction creates.

Non-blocking concurrency control: log files of two writes in one file group do not conflict (RFC-66), unless
readers would disagree on the result. Readers merge the log files of a slice by requested time, and slices
by completion time. So where the order of log files counts (commit-time ordering, deletes), a write
conflicts with a write that was requested after it and completed before it. Hudi lets it commit.

Pending clusterings: by default, a write to a file group of a pending clustering is refused. Beside other
writers it waits until the clustering is done (`write.retry`). With the option that allows updates the write
goes on, and the clustering is cancelled or fails. A clustering that only merges small files of appends is
always cancelled in favour of the write. Dual writes handle the buckets that are being resized
(`index.consistent_bucket`).

Keys that two writes inserted: `may_share_key` decides whether one key may be among both.

    own files ── keys of this write ──> an array ─┐
    base files of the other write                 ├─> key range and bloom filter in the footer
    log files of the other write                  └─> keys, a batch at a time

Log files count too. A record whose deletion is still in a log file comes back by an update of its file
group, and with an index in log files new records go to log files. If the keys cannot be read, or are too
many, the answer is that the writes may share a key.

Messages name the instant of the other writer, the own instant, and the reason:

    The commit T2 of another writer was committed (upsert) while this write, T1, ran, and conflicts with it:
    both changed the same file groups: rome/8c1f... Nothing of this write was committed. Write again, ...
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base import limits
from drawstring.base.errors import DrawstringError, LostRaceError, OutrunError
from drawstring.base.java_compat import sorts_like_java
from drawstring.config.options.write_options import WriteOptions
from drawstring.config.table_config import TableConfig
from drawstring.filegroups.file_system_view import SliceLookup
from drawstring.filegroups.log_merge import SliceMerge
from drawstring.filegroups.read_task import InstantRange, ReadTask
from drawstring.formats.bloom_footer import StoredSummary
from drawstring.formats.data_file import Selection, key_summary, read_base
from drawstring.formats.metadata.commit import compacted_groups
from drawstring.formats.metadata.index_definitions import DEFINITIONS_KEY
from drawstring.formats.metadata.plans import decode_clustering_plan, is_cancelled_by_writes
from drawstring.metadata.table import FILES, PARTITIONS_KEY
from drawstring.model.commit import CommitMetadata, WriteStat
from drawstring.model.files import FileSlice, FileStatus, LogFile, bucket_of
from drawstring.model.instant import FILE_ACTIONS, PLANNED_ACTIONS, Action, Instant, State
from drawstring.model.plans import ClusteringPlan, is_resizing, nodes_of
from drawstring.schema.avro import avro_to_arrow
from drawstring.schema.fields import COMMIT_TIME, RECORD_KEY, with_meta_fields
from drawstring.storage.protocol import Storage
from drawstring.timeline.properties import PROPERTIES_PATH
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline
from drawstring.txn.heartbeat import another_writer, describe_commit, process_of
from drawstring.txn.read_set import NO_ROWS, Groups, Reads, shown
from drawstring.txn.rollback.recovery import unschedule_clustering
from drawstring.txn.rollback.restore import rollback_of
from drawstring.txn.transaction import LockedTable


@dataclass(frozen=True, slots=True)
class KeyRules:
    """Where keys are unique, and where new records are.

    Attributes:
        is_global: whether keys are unique in the table, rather than in their partition.
        fills_logs: whether new records go to log files.
    """

    is_global: bool
    fills_logs: bool


@dataclass(frozen=True, slots=True)
class Inserts:
    """The files of a write that may have inserted records.

    Attributes:
        time: requested time of the write.
        metadata: of the write.
    """

    time: str
    metadata: CommitMetadata

    def bases(self, place: str | None) -> list[WriteStat]:
        """Return the base files with inserts of a partition; None for the table."""
        return [stat for stat in self._of(place) if stat.num_inserts and not stat.is_log]

    def logs(self, place: str | None) -> list[WriteStat]:
        """Return the log files of a partition; None for the table."""
        return [stat for stat in self._of(place) if stat.is_log]

    def _of(self, place: str | None) -> Iterator[WriteStat]:
        return (stat for stat in self.metadata.stats if place is None or stat.partition == place)


def may_share_key(
    storage: Storage, config: TableConfig, own: Inserts, other: Inserts, rules: KeyRules
) -> bool:
    """Return whether two writes may have inserted the same key.

    Args:
        storage: the table's files.
        config: the table.
        own: a write whose files are there.
        other: a completed write, whose files may have been cleaned since.
        rules: where keys are unique, and where new records are.
    """
    own_paths, others_paths = ({stat.partition for stat in each.metadata.stats} for each in (own, other))
    places = {None} if rules.is_global else own_paths & others_paths
    read = _Keys(storage, config, own.metadata.schema_json or "")
    return any(_share_in(place, read, own, other, rules) for place in places)


def _share_in(place: str | None, read: _Keys, own: Inserts, other: Inserts, rules: KeyRules) -> bool:
    bases, logs = other.bases(place), other.logs(place)
    # Two writes that bring one record back by log files do so in one file group.
    to_compare = [
        (own.bases(place), [*bases, *logs]),
        (own.logs(place), [*bases, *logs] if rules.fills_logs else bases),
    ]
    for stats, others in to_compare:
        if not (stats and others):
            continue
        changed = sum(stat.num_inserts + stat.num_updates for stat in stats)
        if changed > limits.in_force.compared_keys_max or not read.config.populate_meta_fields:
            return True
        keys = read.of(stats, own.time)
        if any(read.has_any(stat, other.time, keys) for stat in others):
            return True
    return False


@dataclass(frozen=True, slots=True)
class _Keys:
    """Reads the keys of files.

    Attributes:
        storage: the table's files.
        config: the table.
        schema_json: the table schema.
    """

    storage: Storage
    config: TableConfig
    schema_json: str

    def of(self, stats: Sequence[WriteStat], time: str) -> pa.Array:
        """Return the keys that a write inserted or updated, without those that it only copied."""
        found: Iterable[pa.Array] = (
            each
            for stat in stats
            for each in ([self._of_log(stat, time)] if stat.is_log else self._of_base(stat.path, time))
        )
        return pa.chunked_array(found, pa.string()).combine_chunks()

    def has_any(self, stat: WriteStat, time: str, keys: pa.Array) -> bool:
        """Return whether a file has one of some keys.

        Those that a base file had before were not inserted anew. A file that cannot be read may have one.
        """
        try:
            if stat.is_log:
                found = iter([self._of_log(stat, time)])
            elif not _may_hold(key_summary(self.storage, stat.path), keys):
                return False
            else:
                found = self._of_base(stat.path)
            return any(pc.any(pc.is_in(each, value_set=keys)).as_py() for each in found)
        except (FileNotFoundError, DrawstringError):
            return True

    def _of_base(self, path: str, time: str | None = None) -> Iterator[pa.Array]:
        where = None if time is None else pc.field(COMMIT_TIME) == time
        for batch in read_base(self.storage, path, Selection([RECORD_KEY], where)):
            yield batch.column(RECORD_KEY).cast(pa.string())

    def _of_log(self, stat: WriteStat, time: str) -> pa.Array:
        log = LogFile.parse(FileStatus(stat.path, stat.size_bytes))
        file_slice = FileSlice(stat.partition, stat.file_id, time, None, (log,) if log else ())
        schema = avro_to_arrow(with_meta_fields(self.schema_json))
        visible = InstantRange(frozenset({time}))
        task = ReadTask(self.storage.spec, self.config, file_slice, schema, (RECORD_KEY,), instants=visible)
        return SliceMerge(task).log_keys


def _may_hold(summary: StoredSummary | None, keys: pa.Array) -> bool:
    """Return whether a file may have one of some keys, by its footer."""
    if summary is None:
        return True
    smallest, largest = summary.smallest, summary.largest
    if smallest and largest and sorts_like_java(pa.array([smallest, largest])) and sorts_like_java(keys):
        keys = keys.filter(pc.and_(pc.greater_equal(keys, smallest), pc.less_equal(keys, largest)))
    if not len(keys):
        return False
    bloom = summary.bloom_filter()
    return bloom is None or bloom.contains_any(keys)


_OF_WRITES: Final = frozenset((FILES, "record_index"))
"""Partitions of the metadata table that writes build."""

_SHOWN: Final = 5
"""How many instants a message names."""

_RETRIES: Final = "hoodie.write.num.retries.on.conflict.failures"
_ADVICE_WRITE_AGAIN: Final = f"Write again, or let writes run again more often with {_RETRIES}."
_AFTER_CLUSTERING: Final = (
    "Write again when the clustering is done: wait for the process that runs it, or run it if none does"
    f" (cluster). With {_RETRIES} a write waits for it."
)


@dataclass(frozen=True, slots=True)
class Conflict:
    """Why a write is in conflict with another one.

    Attributes:
        why: the reason; with file groups, an introduction to their names.
        groups: the file groups concerned.
        by_services: whether there would be none without a clean or an archiver.
    """

    why: str
    groups: Groups = frozenset()
    by_services: bool = False

    def __str__(self) -> str:
        return f"{self.why}: {shown(self.groups)}" if self.groups else self.why


def rolled_back_error(locked: LockedTable, now: Timeline, own: str) -> LostRaceError:
    """Return the error of a write whose instant is gone from the timeline.

    Args:
        locked: the table.
        now: its timeline.
        own: requested time of the write.
    """
    undo = rollback_of(locked.store, now, own)
    how = "which left no instant" if undo is None else f"by the {undo.action} {undo.requested}"
    return LostRaceError(
        f"Another process rolled this write back, {own}, while it ran ({how}). It found"
        " the heartbeat of this write expired, because this process stood still for too long or the clocks of"
        " the two machines differ by minutes, or it does not look at heartbeats, as hudi-rs. Nothing of this"
        " write was committed. Write again.",
        instant=own,
    )


def files_deleted(began: Timeline, now: Timeline, own: str) -> OutrunError:
    """Return the error of a write that did not find files which it was to read.

    Args:
        began: the timeline with which the write began.
        now: the current one.
        own: requested time of the write.
    """
    since = [each for each in now.instants if each not in began.instants and each.requested != own]
    names = ", ".join(f"the {each.action} {each.requested}" for each in since[-_SHOWN:])
    return OutrunError(
        f"Others deleted files that this write, {own}, was to read, as a clean does; since it began, others"
        f" put on the timeline: {names}. Nothing of this write was committed. Write again.",
        instant=own,
    )


def other_first_write(own: str, first: Instant, metadata: CommitMetadata, why: str) -> LostRaceError:
    """Return the error of a first write that does not fit the first write of somebody else.

    Args:
        own: requested time of the write.
        first: the one that was committed.
        metadata: of that one.
        why: what does not fit.
    """
    return LostRaceError(
        f"{describe_commit(first, metadata)} was committed while this write, {own}, ran, with files in"
        f" {shown(metadata.touched)}, and the table was empty before. They do not fit: {why} Nothing of"
        " this write was committed. Give all writers the same options, and write again.",
        instant=first.requested,
    )


def schema_race(own: str, other: Instant | None, metadata: CommitMetadata | None) -> OutrunError:
    """Return the error of a write that changes the schema as another one did meanwhile.

    Args:
        own: requested time of the write.
        other: the one that changed the schema; None if that is not known.
        metadata: of that one.
    """
    which, where = "Another writer", ""
    if other is not None and metadata is not None:
        which, where = describe_commit(other, metadata), f" It wrote to {shown(metadata.touched)}."
    return OutrunError(
        f"{which} changed the schema of the table while this write, {own}, which changes it too, ran.{where}"
        " Nothing of this write was committed. Write again.",
        instant=own if other is None else other.requested,
    )


def changed_properties(began: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return the keys of properties that changed in a way that matters to a write that is under way.

    Other writers build the metadata table, with the record index that a write asks for, or switch it off: a
    commit keeps what is there then.

    Args:
        began: the properties with which the write began.
        now: the current ones.
    """
    before, after = ({key: _significant(key, text) for key, text in each.items()} for each in (began, now))
    return sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))


def _significant(key: str, text: str) -> object:
    """Return what of a property matters to a write; None for what does not count."""
    if key == DEFINITIONS_KEY:
        return None
    return frozenset(text.split(",")) - _OF_WRITES or None if key == PARTITIONS_KEY else text


def properties_race(own: str, began: Mapping[str, str], now: Mapping[str, str], who: str) -> OutrunError:
    """Return the error of a write while which the properties of the table changed.

    Args:
        own: requested time of the write.
        began: the properties with which it began.
        now: the current ones.
        who: the process that changed them; empty if the file does not tell.
    """
    names = ", ".join(changed_properties(began, now))
    return OutrunError(
        f"Another process{f' ({who})' if who else ''} changed the properties of the table ({names}) while"
        f" this write, {own}, ran. Nothing of this write was committed. Write again.",
        instant=own,
        path=PROPERTIES_PATH,
    )


def lost_race(
    own: str, other: Instant, what: str, clash: Conflict, metadata: CommitMetadata | None = None
) -> LostRaceError:
    """Return the error of a write that may not commit because of another instant.

    Args:
        own: requested time of the write.
        other: the instant of another writer.
        what: what became of that instant.
        clash: why that is a conflict.
        metadata: of that instant, if it was committed.
    """
    which = f"The {other.action} {other.requested} of another writer"
    return _lost(
        own,
        other,
        f"{describe_commit(other, metadata) if metadata else which} {what}",
        clash,
        _ADVICE_WRITE_AGAIN,
    )


def lost_to_plan(own: str, plan: Instant, groups: Groups, who: str) -> LostRaceError:
    """Return the error of a write that may not commit because others are about to rewrite its file groups.

    Args:
        own: requested time of the write.
        plan: a pending compaction or clustering that was planned since the write began.
        groups: the file groups in the plan and the write.
        who: the process that runs the plan; empty if none does.
    """
    runner = f", which {who} runs," if who else ""
    which = f"The {plan.action} {plan.requested} of another writer{runner} was planned"
    clash = Conflict("it is going to rewrite file groups that this write changed", groups)
    # A compaction does not keep a new attempt from writing, as a clustering does.
    advice = _AFTER_CLUSTERING if plan.action is Action.CLUSTERING else _ADVICE_WRITE_AGAIN
    return _lost(own, plan, which, clash, advice)


def lost_to_clustering(locked: LockedTable, requested: str, groups: Groups) -> LostRaceError:
    """Return the error of a write that was to end a clustering, which has completed meanwhile.

    Args:
        locked: the table.
        requested: requested time of the clustering.
        groups: the file groups in its plan and the write.
    """
    done = locked.store.load().write_at(requested)
    who = another_writer(locked.store.commit_metadata(done)) if done else "another process"
    return LostRaceError(
        f"The clustering {requested} of {who} has completed meanwhile and replaced file groups that this"
        f" write changed: {shown(groups)}. Nothing of this write was committed. Write again.",
        instant=requested,
    )


def _lost(own: str, other: Instant, what: str, clash: Conflict, advice: str) -> LostRaceError:
    kind = OutrunError if clash.by_services else LostRaceError
    return kind(
        f"{what} while this write, {own}, ran, and conflicts with it: {clash}. Nothing of this write was"
        f" committed. {advice}",
        instant=other.requested,
    )


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


def preload_concurrent_commits(began: Timeline, store: TimelineStore) -> None:
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
    for instant in _rolled_back_writes(began, now):
        clash = Conflict("this write began with its rows, and may have built on them")
        raise lost_race(own.requested, instant, "was rolled back or restored", clash)
    for instant in _archived(began, now):
        clash = Conflict("its file groups cannot be compared any more", by_services=True)
        raise lost_race(own.requested, instant, "was completed and archived", clash)
    for instant in _unscheduled(own, began, now):
        clash = Conflict("log files or buckets of this write may belong to its plan")
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
            clash = Conflict("the table was empty, and both decided on the buckets of", other.touched)
        elif is_cleaned and _may_have_missed_slices(own, other):
            why = "a clean ran too, so that this write may not have found all rows of"
            clash = Conflict(why, other.touched, by_services=True)
        elif found := _conflict_with_completed(own, instant, other, spares_logs=spares_logs):
            clash = found
        elif not other.compacted and _may_insert_same_key(own, instant, other, locked):
            why = _SAME_BUCKETS if own.is_hashed else _SAME_KEYS
            clash = Conflict(why, _places_of_keys(own, other))
        else:
            continue
        what = f"was committed ({str(other.operation).lower()})"
        raise lost_race(own.requested, instant, what, clash, other)
    for instant, inputs in _planned_since(began, now, store):
        shared = inputs & _groups_barred_from_plan(own, instant, config)
        if shared and not _plan_yields(own, instant):
            raise lost_to_plan(own.requested, instant, shared, process_of(locked.context.storage, instant))


def _rolled_back_writes(began: Timeline, now: Timeline) -> Iterator[Instant]:
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


def _conflict_with_completed(
    own: OwnChanges, instant: Instant, other: CommitMetadata, *, spares_logs: bool
) -> Conflict | None:
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
        return Conflict(_SAME_GROUPS, shared) if shared else None
    if shared := _order_dependent_groups(own, instant, other):
        return Conflict(_SAME_GROUPS, shared)
    if other.changes_records and (own.overwrites_table or own.reads.depends_on(other.touched)):
        return Conflict("it changed or added rows where this write reads them, in", other.touched)
    paths = _partitions(own.metadata)
    if own.overwrites and (beside := frozenset(each for each in other.touched if each[0] in paths)):
        return Conflict("this write replaces all rows of partitions in which it wrote to", beside)
    return None


def _order_dependent_groups(own: OwnChanges, instant: Instant, other: CommitMetadata) -> Groups:
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


def _plan_yields(own: OwnChanges, plan: Instant) -> bool:
    """Return whether whoever runs a plan finds the write and gives up, or the write unschedules the plan."""
    return plan.action is Action.CLUSTERING and own.precedes_clusterings


def _groups_barred_from_plan(own: OwnChanges, plan: Instant, config: TableConfig) -> Groups:
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
