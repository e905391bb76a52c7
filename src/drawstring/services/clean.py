"""Plan and run cleans: delete file versions that no reader needs (specification: Cleaning).

    plan   list the files that may be deleted (pure); put the plan on the timeline as requested
    run    inflight -> delete the files -> completed

An interrupted clean runs again from its plan, since deleting is idempotent. No other action on the table
waits for it. A pending clean whose plan cannot be read leaves the timeline, since nothing depends on it.

The policies:

    commits, hours   the earliest instant retained, E: the n-th newest write, or the first one of the last
                     hours, but not after the first pending instant
                       slices:   s1 < s2 < E <= s3      s1 is deleted: a reader as of E needs s2
                       replaced file groups are deleted as a whole once the replacing commit lies before E
    versions         the newest n slices of a file group stay; replaced file groups are deleted as a whole

The settings may limit the number of commits that a clean covers: E is then so many writes after the E of
the clean before. Partitions that the settings leave out keep all files. The plan notes the first write that
replaced file groups there, since its metadata is needed until they are deleted (`uncleaned_from`).

Files that stay:

- What readers hold (`ReaderNeeds`: holds, and the time window of running queries). E is not after the first
  write that they need, and with `versions` the file versions that they need are not deleted.
- Files of savepoints.
- Inputs of a pending compaction or clustering. E is not after it, and with `versions` its file groups are
  skipped.

Incremental plans: between two cleans, files become old only in partitions where a write of [previous E, E)
replaced something, and the metadata of most writes lists these partitions.

Plans without deletions usually leave no trace on storage. The process remembers the plan in memory, and its
next plan begins after the writes that this one covered. Two cases note a clean without deletions on the
timeline, for other processes: a plan that began without such memory, and archiving that waits for the
clean. No reader needs such a clean, and it costs twelve flushes, which a loop of small commits would pay
again and again.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from drawstring.base.clock import Clock, Stopwatch
from drawstring.base.errors import CorruptTableError
from drawstring.config.keys.services import CLEAN_WINDOW, Cleaning
from drawstring.config.options.write_options import WriteOptions
from drawstring.config.table_config import TableConfig
from drawstring.filegroups.file_system_view import FileGroupView
from drawstring.formats.metadata.plans import decode_clean, decode_clean_plan, encode_clean, encode_clean_plan
from drawstring.formats.metadata.rollback import decode_savepoint
from drawstring.metadata.partitions.files import cleaned_files
from drawstring.model.commit import CommitMetadata
from drawstring.model.files import PARTITION_METADATA, BaseFile, FileGroup, FileSlice, FileStatus
from drawstring.model.instant import FILE_ACTIONS, Action, Instant, State, time_of
from drawstring.model.plans import (
    CleanedPartition,
    CleanMetadata,
    CleanPlan,
    CleanPolicy,
    EarliestRetained,
    Savepoint,
)
from drawstring.model.result import CleanResult
from drawstring.storage import open_spec
from drawstring.storage.protocol import Storage, StorageSpec, folders_above
from drawstring.timeline.archive.reader import open_archive
from drawstring.timeline.claims import Fence
from drawstring.timeline.properties import load_config
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline, instant_time
from drawstring.txn.events import emit_clean
from drawstring.txn.heartbeat import expired
from drawstring.txn.holds import HoldFile, Holds
from drawstring.txn.rollback.recovery import rollback_expired
from drawstring.txn.rollback.rollback import own_folders, sweep_leftovers
from drawstring.txn.table_context import TableContext
from drawstring.txn.transaction import LockedTable, lock_table, recover_and_load
from drawstring.write.write_outcome import WriteOutcome


@dataclass(frozen=True, slots=True)
class _EmptyPlan:
    """A plan that found nothing to delete.

    Attributes:
        cleaning: what was retained.
        newest: the newest write then: a restored table, or another one at the address, does not have it.
        clean: requested time of the last clean then; empty for none.
        found: the clean that would have noted it.
    """

    cleaning: Cleaning
    newest: Instant
    clean: str
    found: CleanMetadata


_EMPTY_PLANS: Final[dict[str, _EmptyPlan]] = {}
_EMPTY_PLANS_MAX: Final = 1024


def last_empty_plan(
    uri: str, timeline: Timeline, cleaning: Cleaning, last: CleanMetadata | None
) -> CleanMetadata | None:
    """Return what the last plan of this process found, as a clean; None if it is of no use any more.

    Args:
        uri: address of the table.
        timeline: of the table.
        cleaning: what is retained.
        last: the last clean on the timeline, which may have been archived since the plan.
    """
    look = _EMPTY_PLANS.get(uri)
    if look is None or look.cleaning != cleaning or timeline.write_at(look.newest.requested) != look.newest:
        return None
    return look.found if last is None or last.started == look.clean else None


def remember_empty_plan(
    uri: str, timeline: Timeline, cleaning: Cleaning, last: CleanMetadata | None, plan: CleanPlan
) -> None:
    """Remember a plan that would delete nothing.

    Args:
        uri: address of the table.
        timeline: of the table.
        cleaning: what is retained.
        last: the last clean on the timeline.
        plan: the plan.
    """
    newest = timeline.latest_write()
    by_versions = plan.earliest is None
    if newest is None or (by_versions and newest.completed is None and timeline.pending()):
        return  # without completion times a pending write will look as old as it is
    if uri not in _EMPTY_PLANS and len(_EMPTY_PLANS) >= _EMPTY_PLANS_MAX:
        _EMPTY_PLANS.clear()
    found = CleanMetadata(
        started=timeline.latest_time() or "",
        millis=0,
        policy=plan.policy,
        earliest=plan.earliest.requested if plan.earliest else "",
        last_completed=plan.last_completed,
        savepoints=plan.savepoints,
        versions_retained=plan.versions_retained,
        uncleaned_from=plan.uncleaned_from,
        is_filtered=plan.is_filtered,
    )
    _EMPTY_PLANS[uri] = _EmptyPlan(cleaning, newest, last.started if last else "", found)


_MINUTE_MS: Final = 60_000
_log = logging.getLogger("drawstring")


@dataclass(frozen=True, slots=True)
class ReaderNeeds:
    """What readers need.

    Attributes:
        by_reader: the requested time of the first write that a reader needs, and the name of its hold, or of
            the option that keeps a window.
        is_asked: whether there is any hold, including those that are over, or a window.
        over: holds that are over.
        has_scan: whether a scan needs the timeline unchanged.
    """

    by_reader: tuple[tuple[str, str], ...] = ()
    is_asked: bool = False
    over: tuple[HoldFile, ...] = ()
    has_scan: bool = False

    @property
    def first(self) -> str | None:
        """The requested time of the first write whose files and instant must stay; None for none."""
        return min((first for first, _ in self.by_reader), default=None)

    def needs_earlier_than(self, other: ReaderNeeds) -> bool:
        """Return whether readers need an earlier write than in another result."""
        return self.first is not None and (other.first is None or self.first < other.first)


def reader_needs(
    context: TableContext, config: TableConfig, timeline: Timeline, cleaning: Cleaning
) -> ReaderNeeds:
    """Return what readers of a table need.

    Args:
        context: the open table.
        config: the table's settings.
        timeline: the current timeline.
        cleaning: options with the greatest duration of queries.
    """
    now_ms = context.clock.now_ms()
    files = Holds(context.storage, context.clock, context.ids).files()
    over = tuple(each for each in files if each.hold.is_over(now_ms))
    active = [each.hold for each in files if each not in over]
    readers = [(each.position, each.name) for each in active]
    if cleaning.window_minutes:
        since = instant_time(now_ms - cleaning.window_minutes * _MINUTE_MS, config.timezone)
        readers.append((since, CLEAN_WINDOW))
    firsts = ((timeline.first_after(position), name) for position, name in readers)
    by_reader = tuple((first, name) for first, name in firsts if first is not None)
    has_scan = any(each.is_scan for each in active)
    return ReaderNeeds(by_reader, bool(readers or over), over, has_scan)


def drop_expired_holds(context: TableContext, needed: ReaderNeeds) -> None:
    """Delete holds that are over, after a clean has taken account of them."""
    for hold_file in needed.over:
        if not hold_file.hold.released:
            _log.warning(
                "The hold %s at %s has expired, and its files are no longer kept: its reader did not renew it"
                " in time.",
                hold_file.hold.name,
                hold_file.hold.position,
            )
    Holds(context.storage, context.clock, context.ids).clear(needed.over)


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


@dataclass(frozen=True, slots=True)
class CleanFacts:
    """The facts about a table that a clean is planned from.

    Attributes:
        timeline: the active timeline.
        last: the last completed clean on it.
        look: what a plan of this process found to be clean since, as a clean; None for nothing.
        saved: savepoints by requested time.
        is_whole: whether nothing was archived.
        commit_of: reads the commit metadata of a write.
    """

    timeline: Timeline
    last: CleanMetadata | None
    saved: Mapping[str, Savepoint]
    is_whole: bool
    commit_of: Callable[[Instant], CommitMetadata]
    look: CleanMetadata | None = None

    @property
    def since(self) -> CleanMetadata | None:
        """The clean that the next one begins after."""
        return self.look or self.last


@dataclass(frozen=True, slots=True)
class Retention:
    """What stays in a partition.

    Attributes:
        earliest: requested time of the earliest instant retained; None under the policy by versions.
        needed: requested time of the first write that readers need, under the policy by versions; None for
            none.
        versions: number of the newest slices of a file group that stay, under the policy by versions.
        saved: names of files in savepoints.
        replaced: replacement times of the replaced file groups of the partition, by file id.
        planned: ids of file groups that a pending table service may be reading.
    """

    earliest: str | None
    needed: str | None = None
    versions: int = 0
    saved: Collection[str] = field(default_factory=frozenset)
    replaced: Mapping[str, str] = field(default_factory=dict)
    planned: Collection[str] = field(default_factory=frozenset)


def is_due(facts: CleanFacts, cleaning: Cleaning) -> bool:
    """Return whether enough commits were made since the last clean."""
    last_completed = facts.last.last_completed if facts.last else ""
    return (
        sum(write.requested > last_completed for write in facts.timeline.writes())
        >= cleaning.due_after_commits
    )


def earliest_retained(
    timeline: Timeline, cleaning: Cleaning, cutoff: str, needed: str | None = None
) -> Instant | None:
    """Return the earliest instant whose files stay, None if there is none or versions are counted.

    Args:
        timeline: the active timeline.
        cleaning: the policy.
        cutoff: instant time of the number of hours ago that are retained.
        needed: requested time of the first write that readers need.
    """
    earliest = earliest_by_policy(timeline, cleaning, cutoff)
    if earliest is None:
        return None
    held_write = timeline.write_at(needed) if needed is not None else None
    bounds = (each for each in (earliest, first_pending(timeline), held_write) if each is not None)
    return min(bounds, key=lambda each: each.requested)


def earliest_by_policy(timeline: Timeline, cleaning: Cleaning, cutoff: str) -> Instant | None:
    """Return the earliest instant that the policy retains, whatever else retains; see `earliest_retained`."""
    writes = timeline.writes()
    if cleaning.policy == CleanPolicy.COMMITS:
        older = len(writes) - cleaning.commits_retained
        return writes[older] if older > 0 else None
    if cleaning.policy == CleanPolicy.HOURS:
        return next((write for write in writes if write.requested >= cutoff), None)
    return None


def first_pending(timeline: Timeline) -> Instant | None:
    """Return the first pending instant, which may come to need files of the time before it; None for none."""
    return next(iter(timeline.pending_of(*FILE_ACTIONS)), None)


def capped(facts: CleanFacts, cleaning: Cleaning, earliest: Instant | None) -> Instant | None:
    """Return the earliest instant retained by a clean that covers no more commits than it may.

    Args:
        facts: the table.
        cleaning: the policy.
        earliest: the earliest instant that the policy retains.
    """
    since = facts.since
    if earliest is None or cleaning.commits_max is None or since is None or not since.earliest:
        return earliest
    covered = writes_between(facts, earliest)
    return covered[cleaning.commits_max] if len(covered) > cleaning.commits_max else earliest


def uncleaned_from(
    replaced: Mapping[tuple[str, str], str], cleaning: Cleaning, earliest: Instant | None
) -> str | None:
    """Return the first write that replaced file groups of partitions which a clean leaves out, None for none.

    Args:
        replaced: replacement times by partition and file id.
        cleaning: the partitions that the clean looks at.
        earliest: the earliest instant retained; None under the policy by versions.
    """
    times = (time for (partition, _), time in replaced.items() if not cleaning.covers(partition))
    return min((time for time in times if earliest is None or time < earliest.requested), default=None)


def changed_partitions(facts: CleanFacts, cleaning: Cleaning, earliest: Instant | None) -> set[str] | None:
    """Return the partitions where files may have become old since the last clean; None for all."""
    last = facts.since
    saved_then = set(last.savepoints if last else ())
    if not cleaning.incremental or cleaning.has_filter or saved_then - set(facts.saved):
        return None
    if last is not None and last.is_filtered:
        return None
    if facts.last is not None and facts.last.uncleaned_from is not None:
        return None
    by_versions = earliest is None
    if last is not None and by_versions != (not last.earliest):
        return None
    if last is not None and by_versions and _retained_more(last, cleaning):
        return None
    if last is None and not facts.is_whole:
        return None
    if last is not None and not by_versions and facts.timeline.is_archived(last.earliest):
        return None
    return {
        partition
        for write in writes_between(facts, earliest)
        for partition in _partitions_with_superseded_files(facts.commit_of(write))
    }


def _retained_more(last: CleanMetadata, cleaning: Cleaning) -> bool:
    """Return whether the last clean may have kept file versions that are old now."""
    return last.versions_retained is None or last.versions_retained > cleaning.versions_retained


def writes_between(facts: CleanFacts, earliest: Instant | None) -> list[Instant]:
    """Return the writes that may have made files old since the last clean.

    Args:
        facts: the table.
        earliest: the earliest instant retained now; None under the policy by versions.
    """
    last, writes = facts.since, facts.timeline.writes()
    if earliest is None:
        since = last.started if last else ""
        return [write for write in writes if time_of(write) >= since]
    since = last.earliest if last else ""
    return [write for write in writes if since <= write.requested < earliest.requested]


def blocks_archiving(facts: CleanFacts, earliest: Instant | None) -> bool:
    """Return whether writes stay on the timeline until a clean comes, even one that deletes nothing.

    Archiving keeps writes that replaced file groups until these are cleaned, and goes by the last clean.

    Args:
        facts: the table.
        earliest: the earliest instant retained now; None under the policy by versions.
    """
    last, timeline = facts.last, facts.timeline
    if earliest is None and timeline.pending():
        return False  # replaced file groups may have stayed for the sake of a pending service
    if last is not None and {*last.savepoints} - {*facts.saved}:
        return True
    since, until = (last.earliest or last.started) if last else "", earliest.requested if earliest else None
    replacing = (each.requested for each in timeline.writes() if each.action is Action.REPLACE_COMMIT)
    return any(since <= each and (until is None or each < until) for each in replacing)


def _partitions_with_superseded_files(commit: CommitMetadata) -> set[str]:
    """Return the partitions where a write replaced file groups, or gave one a newer base file."""
    partitions = {
        stat.partition
        for stat in commit.stats
        if not _is_new_group(stat.prev_commit) and BaseFile.parse(FileStatus(stat.path, 0))
    }
    return partitions | set(commit.replaced)


def _is_new_group(prev_commit: str) -> bool:
    return prev_commit in ("", "null")


def files_to_delete(groups: Iterable[FileGroup], retention: Retention) -> list[str]:
    """Return the paths of the files of a partition that may be deleted, sorted.

    Args:
        groups: its file groups with all slices and change logs, including replaced ones.
        retention: what stays.
    """
    paths_to_delete: list[str] = []
    for group in groups:
        for old in _old_slices(group, retention):
            paths = _paths(old)
            if not any(path.rpartition("/")[2] in retention.saved for path in paths):
                paths_to_delete += paths
    return sorted(paths_to_delete)


def _old_slices(group: FileGroup, retention: Retention) -> Sequence[FileSlice]:
    if retention.earliest is None and group.file_id in retention.planned:
        return ()
    replaced_at = retention.replaced.get(group.file_id)
    if retention.earliest is not None:
        return slices_before(retention.earliest, group, replaced_at)
    old = group.slices if replaced_at is not None else group.slices[: -retention.versions]
    if retention.needed is None:
        return old
    unneeded = slices_before(retention.needed, group, replaced_at)
    return [each for each in old if each in unneeded]


def slices_before(earliest: str, group: FileGroup, replaced_at: str | None) -> Sequence[FileSlice]:
    """Return the slices that no reader as of an instant, or a later one, needs.

    Args:
        earliest: requested time of the instant.
        group: the file group.
        replaced_at: when it was replaced; None if it was not.
    """
    if replaced_at is not None and replaced_at < earliest:
        return group.slices
    return [each for each in group.slices if each.base_instant < earliest][:-1]


def is_empty_after(listed: Iterable[FileStatus], to_delete: Collection[str]) -> bool:
    """Return whether a partition has no other files than its own metadata once some are deleted.

    Hadoop's checksum files (`.<name>.crc`) do not count.
    """
    return all(
        status.path in to_delete or status.name.startswith(PARTITION_METADATA) or status.name.endswith(".crc")
        for status in listed
    )


def _paths(file_slice: FileSlice) -> list[str]:
    base = [file_slice.base.status.path] if file_slice.base else []
    return base + [log.status.path for log in file_slice.logs]


_HOUR_MS: Final = 3_600_000
_WRITES_REREAD_MAX: Final = 8
"""After so many writes without anything to delete, an empty clean lets other processes begin after them."""


@dataclass(frozen=True, slots=True)
class CleanPlanner:
    """Plans cleans of a table as of one timeline."""

    context: TableContext
    config: TableConfig
    store: TimelineStore
    timeline: Timeline
    cleaning: Cleaning

    @property
    def _counts_versions(self) -> bool:
        return self.cleaning.policy == CleanPolicy.VERSIONS

    def needed(self) -> ReaderNeeds:
        """Return what readers need now."""
        return reader_needs(self.context, self.config, self.timeline, self.cleaning)

    def plan(self, facts: CleanFacts, needed: ReaderNeeds) -> CleanPlan | None:
        """Return the plan of a clean; None if it would delete nothing and is not worth noting."""
        earliest = capped(facts, self.cleaning, self._earliest(needed.first))
        if self._counts_versions and needed.is_asked:
            # Files that readers kept from an earlier clean may be in partitions without writes since.
            plan = self._plan(facts, earliest, None, needed.first)
            return plan if plan.files else None
        partitions = changed_partitions(facts, self.cleaning, earliest)
        plan = self._plan(facts, earliest, partitions)
        noted = facts.last.uncleaned_from if facts.last else None
        if plan.files or noted != plan.uncleaned_from or self._is_worth_noting(facts, earliest, partitions):
            return plan
        remember_empty_plan(self.context.storage.spec.uri, self.timeline, self.cleaning, facts.last, plan)
        return None

    def _earliest(self, needed: str | None = None) -> Instant | None:
        cutoff = cutoff_of(self.cleaning, self.context.clock, self.config)
        return earliest_retained(self.timeline, self.cleaning, cutoff, needed)

    def facts(self) -> CleanFacts | None:
        """Return the facts for a plan; None if no file can be old."""
        if not self.timeline.writes() or not (self._counts_versions or self._earliest()):
            return None
        last = last_clean(self.store, self.timeline)
        look = last_empty_plan(self.context.storage.spec.uri, self.timeline, self.cleaning, last)
        is_known = last is not None or look is not None
        return CleanFacts(
            timeline=self.timeline,
            last=last,
            look=look,
            saved=savepoints(self.store, self.timeline),
            is_whole=is_known or open_archive(self.context.storage, self.config).is_empty(),
            commit_of=self.store.commit_metadata,
        )

    def _plan(
        self,
        facts: CleanFacts,
        earliest: Instant | None,
        partitions: set[str] | None,
        needed: str | None = None,
    ) -> CleanPlan:
        view = self.context.view(self.config, self.timeline, self.store)
        places = view.listing.partitions() if partitions is None else sorted(partitions)
        if self.cleaning.has_filter:
            places = [place for place in places if self.cleaning.covers(place)]
        earliest_time = earliest.requested if earliest else None
        base = Retention(earliest_time, needed, self.cleaning.versions_retained)
        retentions = _retention_by_partition(base, view, facts) if places else {}
        files: dict[str, tuple[str, ...]] = {}
        empty: list[str] = []
        for place in places:
            paths = files_to_delete(view.stored_groups(place), retentions.get(place, base))
            if paths:
                files[place] = tuple(paths)
                if place and is_empty_after(self.context.storage.list_files(place), set(paths)):
                    empty.append(place)
        writes = self.timeline.writes()
        return CleanPlan(
            policy=self.cleaning.policy,
            earliest=_earliest_retained(earliest),
            last_completed=writes[-1].requested,
            files=files,
            partitions_to_delete=tuple(empty),
            savepoints=tuple(sorted(facts.saved)),
            versions_retained=self.cleaning.versions_retained if self._counts_versions else None,
            uncleaned_from=self._uncleaned_from(view, earliest),
            is_filtered=self.cleaning.has_filter,
        )

    def _uncleaned_from(self, view: FileGroupView, earliest: Instant | None) -> str | None:
        if not self.cleaning.has_filter:
            return None
        return uncleaned_from(view.replaced_groups(), self.cleaning, earliest)

    def _is_worth_noting(
        self, facts: CleanFacts, earliest: Instant | None, partitions: set[str] | None
    ) -> bool:
        """Return whether a clean that deletes nothing is put on the timeline all the same.

        It spares other processes reading many writes again, which this one remembers; and archiving waits for
        cleans that come after a write that replaced file groups.
        """
        if blocks_archiving(facts, earliest):
            return True
        if not self.cleaning.incremental or self.cleaning.has_filter or facts.look is not None:
            return False
        return partitions is None or len(writes_between(facts, earliest)) >= _WRITES_REREAD_MAX


def _retention_by_partition(base: Retention, view: FileGroupView, facts: CleanFacts) -> dict[str, Retention]:
    """Return what stays, for the partitions with replaced, savepointed or planned file groups."""
    replaced: dict[str, dict[str, str]] = defaultdict(dict)
    for (partition, file_id), time in view.replaced_groups().items():
        replaced[partition][file_id] = time
    saved: dict[str, set[str]] = defaultdict(set)
    for each in facts.saved.values():
        for partition, names in each.files.items():
            saved[partition].update(names)
    planned: dict[str, set[str]] = defaultdict(set)
    for partition, file_id in (*view.pending_compactions(), *view.pending_clusterings()):
        planned[partition].add(file_id)
    return {
        place: replace(base, saved=saved[place], replaced=replaced[place], planned=planned[place])
        for place in {*replaced, *saved, *planned}
    }


def _earliest_retained(earliest: Instant | None) -> EarliestRetained | None:
    if earliest is None:
        return None
    return EarliestRetained(earliest.requested, earliest.action, earliest.state.name)


def cutoff_of(cleaning: Cleaning, clock: Clock, config: TableConfig) -> str:
    """Return the instant time of the number of hours ago that are retained."""
    return instant_time(clock.now_ms() - cleaning.hours_retained * _HOUR_MS, config.timezone)


def last_clean(store: TimelineStore, timeline: Timeline) -> CleanMetadata | None:
    """Return the metadata of the last completed clean; empty files of crashed writers are skipped."""
    cleans = reversed(timeline.completed_of(Action.CLEAN))
    return next((decode_clean(data) for each in cleans if (data := store.read(each))), None)


def savepoints(store: TimelineStore, timeline: Timeline) -> dict[str, Savepoint]:
    """Return the savepoints of a table by the requested times of their commits."""
    return {
        instant.requested: decode_savepoint(store.read(instant))
        for instant in timeline.completed_of(Action.SAVEPOINT)
    }


_FILES_PER_TASK: Final = 512

_Planned = tuple[CleanPlan | None, ReaderNeeds]


def clean(context: TableContext, options: WriteOptions) -> CleanResult | None:
    """Finish interrupted cleans, then delete old files.

    Args:
        context: the open table.
        options: of writes: what is retained, lock wait.

    Returns:
        The result of the last clean, None if there was nothing to delete.

    Raises:
        ConflictError: another writer holds the table.
    """
    with lock_table(context, options.locking) as locked:
        locked, timeline = recover_and_load(locked, options.failed_writes)
        return clean_table(locked, options, timeline)


def clean_after_commit(written: WriteOutcome) -> None:
    """Clean the table of a commit if enough was written since the last clean; see `clean`.

    The table lock is taken only if there is something to do, and what to do is planned before.
    """
    finds_work, planned = _check_for_clean(written)
    if not finds_work:
        return
    with ExitStack() as ends:
        if planned is not None and planned[0] is not None:
            content = _encoded_plan(written.context, planned[0])
            ends.callback(written.context.storage.stage([(written.config.timeline_folder, content)]))
        locked = ends.enter_context(lock_table(written.context, written.options.locking))
        locked, timeline = recover_and_load(locked, written.options.failed_writes)
        if not _is_plan_valid(written.timeline, timeline):
            planned = None
        clean_table(locked, written.options, timeline, only_if_due=True, planned=planned)


def _check_for_clean(written: WriteOutcome) -> tuple[bool, _Planned | None]:
    """Return whether a clean that takes the table lock now is likely to do something; if known, its plan."""
    context, options, timeline = written.context, written.options, written.timeline
    pending = timeline.pending_writes()
    if timeline.pending_of(Action.CLEAN) or (
        pending and expired(context.storage, context.clock, pending, options.failed_writes)
    ):
        return True, None
    if options.failed_writes.expires_clusterings and timeline.pending_of(Action.CLUSTERING):
        return True, None
    planner = CleanPlanner(context, written.config, written.store, timeline, options.cleaning)
    try:
        facts = planner.facts()
        if facts is None or not is_due(facts, options.cleaning):
            return False, None
        needed = planner.needed()
        plan = planner.plan(facts, needed)
    except (CorruptTableError, FileNotFoundError):  # others may be cleaning or archiving
        return True, None
    return plan is not None or bool(needed.over), (plan, needed)


def _is_plan_valid(then: Timeline, now: Timeline) -> bool:
    """Return whether a plan still holds: all that came since are writes, and services that will write.

    Whatever they read and keep is newer than what the plan deletes. Nothing has left the timeline, and what
    deletes files or keeps them is as it was.
    """
    are_there = {*now.instants}.issuperset(each for each in then.instants if each.is_completed)
    return are_there and _others(then) == _others(now)


def _others(timeline: Timeline) -> list[Instant]:
    return [each for each in timeline.instants if each.action not in FILE_ACTIONS]


def plan_clean(context: TableContext, options: WriteOptions) -> CleanPlan | None:
    """Return the plan of a clean now, None if there is nothing to delete; the table is not changed."""
    config = load_config(context.storage)
    store = TimelineStore(context.storage, config, context.clock)
    planner = CleanPlanner(context, config, store, store.load(), options.cleaning)
    facts = planner.facts()
    return None if facts is None else planner.plan(facts, planner.needed())


def clean_table(
    locked: LockedTable,
    options: WriteOptions,
    timeline: Timeline,
    *,
    only_if_due: bool = False,
    planned: _Planned | None = None,
) -> CleanResult | None:
    """Clean a locked table; see `clean`.

    Args:
        locked: the locked table.
        options: of writes: what is retained, and the policy for failed writes.
        timeline: the current timeline.
        only_if_due: whether to clean only if enough commits were made since the last clean.
        planned: what was planned for this timeline before the lock was taken.
    """
    undone = rollback_expired(locked.rollback_context(), timeline, options.failed_writes)
    result = finish_cleans(locked, timeline)
    timeline = locked.store.load() if result or undone else timeline
    planner = CleanPlanner(locked.context, locked.config, locked.store, timeline, options.cleaning)
    if planned is None or undone or result:
        facts = planner.facts()
        if facts is None or (only_if_due and not is_due(facts, options.cleaning)):
            return result
        needed = planner.needed()
        planned = planner.plan(facts, needed), needed
    plan, needed = planned
    done = None if plan is None else _carry_out(locked, planner, plan, needed)
    drop_expired_holds(locked.context, needed)
    return done or result


def finish_cleans(locked: LockedTable, timeline: Timeline) -> CleanResult | None:
    """Run the pending cleans of any process."""
    result = None
    for pending in timeline.pending_of(Action.CLEAN):
        plan = readable_plan(locked, pending)
        if plan is None:
            continue
        fence = locked.store.fence(pending)
        if isinstance(fence, Fence):
            result = _run(locked, pending, plan, fence)
    return result


def _carry_out(
    locked: LockedTable, planner: CleanPlanner, plan: CleanPlan, needed: ReaderNeeds
) -> CleanResult | None:
    """Put a plan on the timeline and run it, unless readers need more than when it was made."""
    store = locked.store
    content = _encoded_plan(locked.context, plan)
    requested = store.request(Action.CLEAN, store.new_time(planner.timeline), content)
    if planner.needed().needs_earlier_than(needed):
        _log.info("Dropping the clean %s: a reader needs files that it would delete.", requested.requested)
        store.remove_pending(requested)
        return None
    done = _run(locked, requested, plan)
    return done if plan.files else None


def _run(locked: LockedTable, instant: Instant, plan: CleanPlan, fence: Fence | None = None) -> CleanResult:
    watch = Stopwatch()
    store, context = locked.store, locked.context
    inflight = instant if instant.state is State.INFLIGHT else store.start(instant, is_flushed=False)
    locked.lock.check()
    deleted = [path for paths in plan.files.values() for path in paths]
    _delete(context, deleted)
    sweep_leftovers(context.storage, context.clock, (*own_folders(locked.config), *plan.files))
    dropped = {each for each in plan.partitions_to_delete if _drop_partition(context.storage, each)}
    metadata = _metadata_of(instant, plan, dropped, watch)
    content = encode_clean(metadata)
    if not plan.partitions_to_delete:
        locked.lock.afterwards(locked.guard.stage(inflight, content, partial(cleaned_files, metadata)))
    # A replaced file that came back after its write was archived would count again.
    folders = {path.rpartition("/")[0] for path in deleted}
    context.storage.sync(folders_above(deleted) if plan.partitions_to_delete else folders)
    later = locked.lock.in_order_afterwards()
    completed = store.complete(inflight, content, fence, defer=later.append)
    result = CleanResult(
        instant=completed.requested,
        completed=completed.completed,
        files=plan.file_count,
        partitions=sum(bool(paths) for paths in plan.files.values()),
        partitions_deleted=len(dropped),
        earliest_retained=metadata.earliest,
        seconds=round(watch.seconds(), 3),
    )
    return emit_clean(context, locked.config, result)


def _metadata_of(
    instant: Instant, plan: CleanPlan, dropped: Collection[str], watch: Stopwatch
) -> CleanMetadata:
    return CleanMetadata(
        started=instant.requested,
        millis=round(watch.seconds() * 1000),
        policy=plan.policy,
        earliest=plan.earliest.requested if plan.earliest else "",
        last_completed=plan.last_completed,
        partitions={
            partition: CleanedPartition(
                tuple(path.rpartition("/")[2] for path in plan.files.get(partition, ())),
                is_gone=partition in dropped,
            )
            for partition in sorted({*plan.files, *plan.partitions_to_delete})
        },
        savepoints=plan.savepoints,
        versions_retained=plan.versions_retained,
        uncleaned_from=plan.uncleaned_from,
        is_filtered=plan.is_filtered,
    )


def _delete(context: TableContext, paths: list[str]) -> None:
    """Delete files, in tasks of the engine if there are many."""
    if len(paths) <= _FILES_PER_TASK:
        context.storage.delete(paths)
    else:
        starts = range(0, len(paths), _FILES_PER_TASK)
        parts = [tuple(paths[start : start + _FILES_PER_TASK]) for start in starts]
        context.engine.map(DeleteFiles(context.storage.spec), parts)


@dataclass(frozen=True, slots=True)
class DeleteFiles:
    """A task that deletes files."""

    storage: StorageSpec

    def __call__(self, paths: tuple[str, ...]) -> int:
        """Delete some files and return how many."""
        open_spec(self.storage).delete(paths)
        return len(paths)


def _drop_partition(storage: Storage, partition: str) -> bool:
    """Delete the metadata of a partition that has no other files; return False if it has by now."""
    listed = storage.list_files(partition)
    if not partition or not is_empty_after(listed, ()):
        return False
    metadata_files = {each.path: storage.read(each.path) for each in listed}
    storage.delete(metadata_files)
    is_free = is_empty_after(storage.list_files(partition), ())
    if is_free and (storage.list_folders(partition) or storage.delete_folder(partition)):
        return True
    # Another process writes to the partition, or wrote while this one stalled, so it needs its metadata.
    for path, data in metadata_files.items():
        storage.put_if_absent(path, data)
    return False


def _encoded_plan(context: TableContext, plan: CleanPlan) -> bytes:
    """Return a plan with addresses for Hudi, which takes a plain path to be on its default file system."""
    local = context.storage.local_path("")
    return encode_clean_plan(plan, f"file:{local}" if local else context.storage.full_uri(""))
