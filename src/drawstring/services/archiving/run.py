"""Archiving: moves old instants out of the active timeline, to keep it short.

no lock    plan (`archiving.plan`), read the instants, make the files of the archive, stage them
lock       plan again: if that is still to be archived, publish the archive
no lock    shorten the active timeline (`timeline.archive.writer`), delete markers
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

from drawstring.base.clock import Stopwatch
from drawstring.base.errors import DrawstringError
from drawstring.config.options.write_options import WriteOptions
from drawstring.config.table.config import TableConfig
from drawstring.filegroups.write.markers import MARKER_ROOT, Markers
from drawstring.metadata.partitions import FILES, METADATA_FOLDER
from drawstring.model.files import FileStatus, LogFile
from drawstring.model.instant import WRITE_ACTIONS, Action, Instant
from drawstring.model.result import ArchiveResult
from drawstring.services.archiving.metadata_table import Choice, choice_with_metadata
from drawstring.services.archiving.plan import (
    ArchiveFacts,
    cleans_and_rollbacks_before,
    overlapping,
    plan_archive,
)
from drawstring.services.cleaning.plan import earliest_retained
from drawstring.services.cleaning.planner import cutoff_of, last_clean
from drawstring.services.cleaning.reader_needs import reader_needs
from drawstring.storage.protocol import Storage
from drawstring.storage.subfolder import Subfolder
from drawstring.timeline.archive.reader import open_archive
from drawstring.timeline.archive.writer import Prepared, archive_instants, prepare, publish, shorten
from drawstring.timeline.change_detection import retry_on_archiving
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
    with lock_table(context, options.locking) as locked:  # failed writes hold archiving up
        recover_and_load(locked, options.failed_writes)
    return archive_recovered(context, options)


def archive_recovered(context: TableContext, options: WriteOptions) -> ArchiveResult | None:
    """Archive instants of a table whose failed writes were dealt with; see `archive`.

    The table lock is held while the archive is published, and not taken where there is nothing to archive.
    """
    watch = Stopwatch()
    with ExitStack() as staged:
        ready = _ready_beside_others(context, options)
        if ready is not None and not ready.timelines:
            return None
        _drop_at_the_end(staged, ready)
        with lock_table(context, options.locking) as locked:
            ready = _published(locked, options, ready, staged)
        shorten(*ready.timelines)
    if not (chosen := ready.choice.instants):
        return None
    _sweep_markers(context.storage, chosen)
    seconds = round(watch.seconds(), 3)
    result = ArchiveResult(len(chosen), chosen[0].requested, chosen[-1].requested, seconds)
    return emit_archive(context, ready.config, result)


def planned_instants(context: TableContext, options: WriteOptions) -> Sequence[Instant]:
    """Return the instants that `archive` would move now, oldest first; the table is not changed."""
    table = _Table.of(context)
    return retry_on_archiving(table.store, partial(_choice, table, options)).instants


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

    @staticmethod
    def of(context: TableContext) -> _Table:
        config = load_config(context.storage)
        return _Table(context, config, TimelineStore(context.storage, config, context.clock))


@dataclass(frozen=True, slots=True)
class _Ready:
    """What is about to be archived, read and encoded.

    Attributes:
        config: the table's settings.
        choice: the instants.
        timelines: their files, of the metadata table first; none if there is nothing to archive.
    """

    config: TableConfig
    choice: Choice
    timelines: tuple[Prepared, ...]


def _ready_beside_others(context: TableContext, options: WriteOptions) -> _Ready | None:
    """Prepare without the table lock what is to be archived; None if what others do stands in the way.

    Others may archive, change the version, or switch the metadata table off meanwhile. What else is wrong is
    found again under the lock.
    """
    try:
        table = _Table.of(context)
        choice = retry_on_archiving(table.store, partial(_choice, table, options))
        return _ready(table, options, choice)
    except DrawstringError:
        return None


def _ready(table: _Table, options: WriteOptions, choice: Choice) -> _Ready:
    storage, config, timelines = table.context.storage, table.config, []
    if choice.own:
        own = Subfolder(storage, METADATA_FOLDER)
        timelines.append(prepare(own, load_config(own), options.archiving, choice.own))
    if choice.instants:
        timelines.append(prepare(storage, config, options.archiving, choice.instants))
    return _Ready(config, choice, tuple(timelines))


def _drop_at_the_end(staged: ExitStack, ready: _Ready | None) -> None:
    for each in ready.timelines if ready else ():
        staged.callback(each.drop)


def _published(locked: LockedTable, options: WriteOptions, ready: _Ready | None, staged: ExitStack) -> _Ready:
    """Publish under the table lock what was prepared, and prepare it again if others made it out of date.

    Those who archived before may still take instants off the timeline, for which they need no lock.
    """
    table = _Table(locked.context, locked.config, locked.store)
    choice = retry_on_archiving(locked.store, partial(_choice, table, options))
    if ready is None or not _holds(ready, table, choice):
        ready = _ready(table, options, choice)
        _drop_at_the_end(staged, ready)
    publish(locked.lock.check, *ready.timelines)
    if choice.instants:
        forget_old_rollbacks(locked.rollback_context())
    return ready


def _holds(ready: _Ready, table: _Table, choice: Choice) -> bool:
    """Return whether what was prepared is still to be archived, and nobody else has archived since."""
    is_same = ready.config == table.config and choice.has(ready.choice)
    return is_same and all(each.is_current() for each in ready.timelines)


def _choice(table: _Table, options: WriteOptions, timeline: Timeline) -> Choice:
    """Return what may be archived now."""
    chosen = _chosen(table, options, timeline)
    if FILES not in table.config.metadata_partitions:
        return Choice(chosen)
    return choice_with_metadata(table.context, options.archiving, timeline, chosen)


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


def _sweep_markers(storage: Storage, archived: Sequence[Instant]) -> None:
    """Delete the markers that crashed writers left of instants that are archived now."""
    times = {each.requested for each in archived}
    for folder in storage.list_folders(MARKER_ROOT):
        if (time := folder.rpartition("/")[2]) in times:
            Markers(storage, time).remove()
