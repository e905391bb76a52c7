"""Archiving: moves old instants out of the active timeline, to keep it short.

plan   see `archiving.plan`
run    write the archive, then shorten the active timeline (`timeline.archive.writer`), then delete markers
"""

from __future__ import annotations

from dataclasses import dataclass

from drawstring.base.clock import Stopwatch
from drawstring.config.options.write_options import WriteOptions
from drawstring.config.table.config import TableConfig
from drawstring.filegroups.write.markers import MARKER_ROOT, Markers
from drawstring.metadata.partitions import FILES
from drawstring.model.files import FileStatus, LogFile
from drawstring.model.instant import WRITE_ACTIONS, Action, Instant
from drawstring.model.result import ArchiveResult
from drawstring.services.archiving.metadata_table import archivable, archive_metadata_table
from drawstring.services.archiving.plan import (
    ArchiveFacts,
    cleans_and_rollbacks_before,
    overlapping,
    plan_archive,
)
from drawstring.services.cleaning.plan import earliest_retained
from drawstring.services.cleaning.reader_needs import reader_needs
from drawstring.services.cleaning.run import cutoff_of, last_clean
from drawstring.storage.protocol import Storage
from drawstring.timeline.archive.reader import open_archive
from drawstring.timeline.archive.writer import Leaving, add_to_archive, archive_instants, shorten
from drawstring.timeline.properties_store import load_config
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline
from drawstring.txn.events import emit_archive
from drawstring.txn.rollback.rollback import forget_old_rollbacks
from drawstring.txn.table_context import TableContext
from drawstring.txn.transaction import LockedTable, lock_table, recover_and_load


def archive(context: TableContext, options: WriteOptions) -> ArchiveResult | None:
    """Move old instants into the archived timeline.

    Args:
        context: the open table.
        options: of writes: how many instants stay, what a clean keeps, lock wait.

    Returns:
        What was archived, None if the timeline was short enough.

    Raises:
        ConflictError: another writer holds the table.
    """
    with lock_table(context, options.locking) as locked:
        locked, timeline = recover_and_load(locked, options.failed_writes)
        return archive_table(locked, options, timeline)


def planned_instants(context: TableContext, options: WriteOptions) -> list[Instant]:
    """Return the instants that `archive` would move now, oldest first; the table is not changed."""
    config = load_config(context.storage)
    store = TimelineStore(context.storage, config, context.clock)
    chosen = _chosen(_Table(context, config, store), options, store.load())
    return archivable(context, chosen) if FILES in config.metadata_partitions else chosen


def archive_table(locked: LockedTable, options: WriteOptions, timeline: Timeline) -> ArchiveResult | None:
    """Archive instants of a locked table; see `archive`.

    Args:
        locked: the locked table.
        options: of writes.
        timeline: of the table, possibly slightly older than the current one.
    """
    watch = Stopwatch()
    storage, config = locked.context.storage, locked.config
    chosen = _chosen(_Table(locked.context, config, locked.store), options, timeline)
    leaving: list[Leaving] = []
    if FILES in config.metadata_partitions:
        chosen, leaving = archive_metadata_table(locked, options.archiving, timeline, chosen)
    if chosen:
        locked.lock.check()
        leaving.append(add_to_archive(storage, config, options.archiving, chosen, locked.lock.check))
    shorten(*leaving)
    if not chosen:
        return None
    _sweep_markers(storage, chosen)
    forget_old_rollbacks(locked.rollback_context())
    seconds = round(watch.seconds(), 3)
    result = ArchiveResult(len(chosen), chosen[0].requested, chosen[-1].requested, seconds)
    return emit_archive(locked.context, config, result)


def archive_stragglers(locked: LockedTable, options: WriteOptions) -> None:
    """Archive the cleans, rollbacks and restores that stayed when later writes were archived.

    Hudi leaves them behind in version 6, where that is harmless; in later versions it is not, see
    `archiving.plan`.

    Args:
        locked: the locked table.
        options: of writes: file sizes of the archive.
    """
    storage, timeline = locked.context.storage, locked.store.load()
    oldest = min(cleans_and_rollbacks_before(timeline, timeline.latest_time() or ""), default=None)
    if oldest is None:
        return
    archived = open_archive(storage, locked.config).completed(oldest.requested)
    last = max((each.requested for each in archived if each.action in WRITE_ACTIONS), default="")
    if chosen := sorted(cleans_and_rollbacks_before(timeline, last)):
        locked.lock.check()
        archive_instants(storage, locked.config, options.archiving, chosen, locked.lock.check)


@dataclass(frozen=True, slots=True)
class _Table:
    context: TableContext
    config: TableConfig
    store: TimelineStore


def _chosen(table: _Table, options: WriteOptions, timeline: Timeline) -> list[Instant]:
    if len(timeline.writes()) <= options.archiving.commits_max:
        return []
    cleaning = options.cleaning
    needed = reader_needs(table.context, table.config, timeline, cleaning)
    if needed.has_scan:
        return []
    cutoff = cutoff_of(cleaning, table.context.clock, table.config)
    retained = earliest_retained(timeline, cleaning, cutoff, needed.first)
    facts = ArchiveFacts(
        timeline=timeline,
        is_merge_on_read=table.config.is_merge_on_read,
        retained=retained.requested if retained else None,
        last=last_clean(table.store, timeline),
        saved={each.requested for each in timeline.completed_of(Action.SAVEPOINT)},
        deltas_kept=options.compaction.commits,
        needed=needed.first,
        overlapping=_first_overlapping(table, timeline) if table.config.is_merge_on_read else None,
    )
    return plan_archive(facts, options.archiving)


def _first_overlapping(table: _Table, timeline: Timeline) -> str | None:
    """Return the first overlapping write with existing log files."""
    for write in overlapping(timeline):
        stats = table.store.commit_metadata(write).stats
        logs = (stat.path for stat in stats if LogFile.parse(FileStatus(stat.path, 0)))
        if any(map(table.context.storage.exists, logs)):
            return write.requested
    return None


def _sweep_markers(storage: Storage, archived: list[Instant]) -> None:
    """Delete the markers that crashed writers left of instants that are archived now."""
    times = {each.requested for each in archived}
    for folder in storage.list_folders(MARKER_ROOT):
        if (time := folder.rpartition("/")[2]) in times:
            Markers(storage, time).remove()
