"""Archive old instants, to keep the active timeline short (specification: Timeline).

    no lock    plan, read the instants, make the files of the archive, stage them
    lock       plan again: if the same instants are still to be archived, publish the archive
    no lock    shorten the active timeline (`timeline.archive.writer`), delete markers

The plan lists the instants that may leave the active timeline (pure):

    oldest                                                                       newest
    w1  c1  w2  w3  r1  w4 | w5 ...          ... the newest that stay in any case
    <-- archived --------> ^ the bound: this instant and all later ones stay

Once a write is archived, all its files count as committed, and readers no longer read the rest of its
metadata. So writes stay while their metadata is still needed: see `_bounds`.

All cleans, rollbacks and restores before an archived write are archived with it. Otherwise Hudi would
misread the timeline. It takes a write for pending if the write is newer than the first active instant, of
any action, and not on the timeline. Then it reads the write's log files after newer base files.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

from drawstring.base.clock import Stopwatch
from drawstring.base.errors import DrawstringError
from drawstring.config.keys.services import Archiving
from drawstring.config.options.write_options import WriteOptions
from drawstring.config.table_config import TableConfig
from drawstring.filegroups.write.markers import MARKER_ROOT, Markers
from drawstring.metadata.table import FILES, METADATA_FOLDER
from drawstring.model.files import FileStatus, LogFile
from drawstring.model.instant import WRITE_ACTIONS, Action, Instant, time_of
from drawstring.model.plans import CleanMetadata
from drawstring.model.result import ArchiveResult
from drawstring.services.archiving.metadata_table import Choice, choice_with_metadata
from drawstring.services.clean import cutoff_of, earliest_retained, last_clean, reader_needs
from drawstring.storage.protocol import Storage, Subfolder
from drawstring.timeline.archive.reader import open_archive
from drawstring.timeline.archive.writer import Prepared, archive_instants, prepare, publish, shorten
from drawstring.timeline.change_detection import retry_on_archiving
from drawstring.timeline.properties import load_config
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline
from drawstring.txn.events import emit_archive
from drawstring.txn.rollback.rollback import forget_old_rollbacks
from drawstring.txn.table_context import TableContext
from drawstring.txn.transaction import LockedTable, lock_table, recover_and_load

_READERS_OF_THE_RETAINED = 2
_ARCHIVED_WITH_WRITES = frozenset({Action.CLEAN, Action.ROLLBACK, Action.RESTORE})


@dataclass(frozen=True, slots=True)
class ArchiveFacts:
    """The facts about a table that the plan is made from.

    Attributes:
        timeline: the active timeline.
        is_merge_on_read: whether there are log files.
        retained: requested time of the first write whose files a clean would keep now, None for none.
        last: the last completed clean on the timeline.
        saved: requested times of savepoints.
        deltas_kept: number of delta commits that trigger a compaction: so many of the newest ones since the
            last compaction stay.
        needed: requested time of the first write that readers need, None for none.
        overlapping: requested time of the first write whose log files follow the base files of a compaction
            that was requested later, None for none.
    """

    timeline: Timeline
    is_merge_on_read: bool
    retained: str | None
    last: CleanMetadata | None
    saved: Collection[str]
    deltas_kept: int
    needed: str | None = None
    overlapping: str | None = None


def plan_archive(facts: ArchiveFacts, archiving: Archiving) -> list[Instant]:
    """Return the instants to archive, oldest first; none while the timeline is short enough."""
    writes = facts.timeline.writes()
    min_writes, max_writes = _sizes(facts, archiving)
    if len(writes) <= max_writes:
        return []
    bound = min(_bounds(facts, archiving), default=None)
    archived = [
        write
        for write in writes
        if (bound is None or write.requested < bound) and write.requested not in facts.saved
    ][: len(writes) - min_writes]
    if not archived:
        return []
    return sorted([*archived, *cleans_and_rollbacks_before(facts.timeline, archived[-1].requested)])


def cleans_and_rollbacks_before(timeline: Timeline, last: str) -> list[Instant]:
    """Return the cleans, rollbacks and restores that are archived with a write: those before it."""
    return [each for each in timeline.completed_of(*_ARCHIVED_WITH_WRITES) if each.requested < last]


def _sizes(facts: ArchiveFacts, archiving: Archiving) -> tuple[int, int]:
    """Return the least and greatest number of writes that stay; writes whose files are kept stay."""
    min_writes, max_writes = archiving.commits_min, archiving.commits_max
    if facts.retained is not None:
        needed = sum(write.requested >= facts.retained for write in facts.timeline.writes())
        needed += _READERS_OF_THE_RETAINED
        if needed > min_writes:
            return needed, max_writes + needed - min_writes
    return min_writes, max_writes


def _bounds(facts: ArchiveFacts, archiving: Archiving) -> Iterator[str]:
    """Yield the requested times of instants that stay, together with all later ones."""
    yield from _before_pending(facts)
    yield from _uncleaned(facts)
    if facts.needed is not None:
        yield _write_before(facts, facts.needed)
    if facts.saved and not archiving.beyond_savepoint:
        yield _first_unsaved(facts, facts.saved)
    if facts.is_merge_on_read:
        yield from _of_compaction(facts)
    if facts.overlapping is not None:
        yield facts.overlapping
    if archiving.waits_for_cleans and facts.last is not None and facts.last.earliest:
        yield facts.last.earliest


def _before_pending(facts: ArchiveFacts) -> Iterator[str]:
    """Keep the write before the first pending instant, so that the pending one does not look archived."""
    pending = [each.requested for each in facts.timeline.pending() if each.action is not Action.SAVEPOINT]
    if pending:
        yield _write_before(facts, min(pending))


def _write_before(facts: ArchiveFacts, time: str) -> str:
    """Return the newest write before a time, the time itself without one."""
    earlier = [write.requested for write in facts.timeline.writes() if write.requested < time]
    return earlier[-1] if earlier else time


def _uncleaned(facts: ArchiveFacts) -> Iterator[str]:
    """Keep writes that replaced file groups until these are cleaned; otherwise they would count again."""
    replacing = [w.requested for w in facts.timeline.writes() if w.action is Action.REPLACE_COMMIT]
    uncleaned_from = "" if facts.last is None else facts.last.earliest or facts.last.started
    savepointed = {*facts.saved, *(facts.last.savepoints if facts.last else ())}
    if savepointed:
        uncleaned_from = min(uncleaned_from, _first_unsaved(facts, savepointed))
    if facts.last is not None and facts.last.uncleaned_from is not None:
        uncleaned_from = min(uncleaned_from, facts.last.uncleaned_from)
    yield from [time for time in replacing if time >= uncleaned_from][:1]


def _first_unsaved(facts: ArchiveFacts, saved: Collection[str]) -> str:
    """Return the requested time of the first write with a savepoint, or that completed after one with it.

    A restore undoes the latter, and what it replaced is in the savepoint.
    """
    targets = (target for time in saved if (target := facts.timeline.write_at(time)) is not None)
    after = (first for target in targets if (first := facts.timeline.first_after(time_of(target))))
    return min((*saved, *after))


def _of_compaction(facts: ArchiveFacts) -> Iterator[str]:
    """Keep the delta commits that make a compaction due."""
    delta_commits: list[str] = []
    for write in reversed(facts.timeline.writes()):
        if write.action is Action.COMMIT:
            break
        delta_commits.append(write.requested)
    yield from delta_commits[: facts.deltas_kept][-1:]


def overlapping(timeline: Timeline) -> Iterator[Instant]:
    """Yield writes that completed after a later compaction was requested: their log files follow its files.

    Once archived they would count as completed at their requested time, and their log files would precede the
    base files. Only compactions of other engines, which do not take drawstring's lock, cause this.
    """
    compactions = [each.requested for each in timeline.writes() if each.action is Action.COMMIT]
    for write in timeline.writes():
        following = bisect_right(compactions, write.requested)
        if write.completed and following < len(compactions) and compactions[following] < write.completed:
            yield write


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
        ready = _prepare_without_lock(context, options)
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


def _prepare_without_lock(context: TableContext, options: WriteOptions) -> _Ready | None:
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
    if ready is None or not _is_current(ready, table, choice):
        ready = _ready(table, options, choice)
        _drop_at_the_end(staged, ready)
    publish(locked.lock.check, *ready.timelines)
    if choice.instants:
        forget_old_rollbacks(locked.rollback_context())
    return ready


def _is_current(ready: _Ready, table: _Table, choice: Choice) -> bool:
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
