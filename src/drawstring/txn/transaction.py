"""Transactions: lock the table, recover from failed writes, and commit or abort one write.

    lock_table take the table lock, refuse tables that cannot be written
    recover    finish interrupted restores, roll failed writes back or leave them to the cleaner
    begin      put the instant on the timeline: requested, then inflight
    commit     put the completed file if absent -> remove the markers; files of failed task attempts go before
               (a foreign metadata table is switched off just before the put: `txn.foreign_features`)
    abort      remove the instant: without a trace if no data file was begun, else by a rollback

A single writer holds the lock from `lock_table` to the end of the write. Under optimistic concurrency
control it is released while files are written (`HeldLock.released`), and `txn.conflict_resolution`
decides whether the write may commit.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from drawstring.base.errors import ConflictError, DrawstringError, LostRaceError, MissingFileError
from drawstring.config.keys.concurrency import (
    DEFAULT_FAILED_WRITES,
    FailedWrites,
    FailedWritesPolicy,
    LockSettings,
)
from drawstring.config.keys.rolling_metadata import RollingMetadata
from drawstring.config.table.schema_versions import SchemaHistory
from drawstring.config.table_config import TableConfig
from drawstring.filegroups.view.missing_files import WRITES_CHECKED, refuse_external_files
from drawstring.filegroups.write.markers import Markers, discard_failed_attempts
from drawstring.metadata.maintenance import MetadataMaintainer
from drawstring.model.commit import CommitMetadata, WriteStat
from drawstring.model.instant import Action, Instant, time_of
from drawstring.storage.protocol import Storage
from drawstring.timeline.claims import Fence
from drawstring.timeline.properties import load_config
from drawstring.timeline.schema import put_versions
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline
from drawstring.txn.foreign_features import MetadataTableGuard, check_writable
from drawstring.txn.heartbeat import Heartbeat, describe_pending
from drawstring.txn.locks.table_lock import HeldLock, conflict_if_lost, table_lock
from drawstring.txn.read_set import shown
from drawstring.txn.rollback.recovery import abort_write, rollback_pending, settle_write
from drawstring.txn.rollback.restore import finish_restores
from drawstring.txn.rollback.rollback import RollbackContext
from drawstring.txn.table_context import TableContext

_FINDABLE: Final[set[tuple[str, Instant]]] = set()
"""Addresses of tables with completed writes, none of whose files another tool registered."""

_FINDABLE_MAX: Final = 4096
_log = logging.getLogger("drawstring")


@dataclass(frozen=True, slots=True)
class LockedTable:
    """A table whose lock this process holds.

    Attributes:
        context: the open table.
        config: the table's settings as read under the lock.
        store: the table's timeline.
        lock: the table lock, held.
        guard: keeps the metadata table.
    """

    context: TableContext
    config: TableConfig
    store: TimelineStore
    lock: HeldLock
    guard: MetadataTableGuard

    @property
    def keeper(self) -> MetadataMaintainer:
        """What maintains the metadata table."""
        context = self.context
        return MetadataMaintainer(
            context.storage, context.clock, context.ids, self.lock.check, context.metadata_compaction
        )

    def rollback_context(self) -> RollbackContext:
        """Return the context that a rollback of this table works with."""
        context = self.context
        table = context.storage, self.config, self.store, context.clock, context.ids
        return RollbackContext(*table, self.lock.check, context.engine.tasks_may_outlive)

    def commit_instant(
        self,
        instant: Instant,
        metadata: CommitMetadata,
        fence: Fence | None = None,
        history: SchemaHistory | None = None,
        *,
        is_ready: bool = False,
    ) -> Instant:
        """Complete an inflight instant whose data files are written and flushed.

        Args:
            instant: inflight.
            metadata: the commit metadata of the instant.
            fence: the claim on the instant, where there is one.
            history: versions of the schema; None for those that the table has, if it has any.
            is_ready: whether files of failed task attempts were deleted, and none can come.

        Raises:
            ConflictError: the lock was lost, or another process rolled the instant back.
        """
        if not is_ready:
            discard_failed_attempts(self.context.storage, instant.requested, metadata.stats)
        self.lock.check()
        versions = put_versions(self.config, self.context.storage, self.store, instant, history)
        rolling = self.context.rolling
        rolled = _rolled_entries(self.store, rolling, metadata.extra) if rolling.keys else {}
        metadata = replace(metadata, extra={**rolled, **metadata.extra, **versions})
        content = self.guard.content_of(instant, metadata)
        later = self.lock.in_order_afterwards()
        completed = self.store.complete(instant, content, fence, defer=later.append)
        _note_findable(self.context.storage.spec.uri, completed)
        with _markers_may_stay(instant):
            # A task attempt that lost to another one may have begun a file since.
            if not is_ready:
                discard_failed_attempts(self.context.storage, instant.requested, metadata.stats)
            later.append(lambda: self._remove_markers(instant))
        return completed

    def _remove_markers(self, instant: Instant) -> None:
        with _markers_may_stay(instant):
            Markers(self.context.storage, instant.requested).remove()


@contextmanager
def _markers_may_stay(instant: Instant) -> Iterator[None]:
    """Leave the markers of a completed write to the next writer if they cannot be removed."""
    try:
        yield
    except (DrawstringError, OSError) as error:
        _log.warning(
            "The markers of the completed write %s could not be removed and stay for now: %s",
            instant.requested,
            error,
        )


@dataclass(frozen=True, slots=True)
class Transaction:
    """One write between begin and commit.

    Attributes:
        locked: the locked table.
        instant: the inflight instant of the write.
        heartbeat: keeps the write's heartbeat file young; None where the policy needs no heartbeat.
        is_beside_others: whether other writers may be at work that do not bar this one.
    """

    locked: LockedTable
    instant: Instant
    heartbeat: Heartbeat | None = None
    is_beside_others: bool = False

    def commit(self, metadata: CommitMetadata, history: SchemaHistory | None = None) -> Instant:
        """Complete the instant, whose files are ready (`ready_files`); see `LockedTable.commit_instant`.

        Raises:
            LostRaceError: so it was, beside other writers, and nothing is left of the write: run it again.
            ConflictError: the lock or the heartbeat was lost, or another process rolled the instant back.
        """
        try:
            return self._complete(metadata, history)
        except ConflictError as error:
            if not self.is_beside_others:
                raise
            return settle_write(self.locked.rollback_context(), self.locked.lock, self.instant, error)

    def _complete(self, metadata: CommitMetadata, history: SchemaHistory | None) -> Instant:
        if self.heartbeat is not None:
            self.heartbeat.check()
        # Before the lock is checked: if it is lost after that, its next holder finds the claim.
        fence = self.locked.store.announce(self.instant) if self.is_beside_others else None
        is_ready = not self.locked.context.engine.tasks_may_outlive
        return self.locked.commit_instant(self.instant, metadata, fence, history, is_ready=is_ready)

    def abandon(self) -> None:
        """Remove the instant from the timeline: there is nothing to commit."""
        abort_write(
            self.locked.rollback_context(),
            self.locked.lock,
            self.instant,
            beside_others=self.is_beside_others,
        )


@contextmanager
def lock_table(context: TableContext, locking: LockSettings) -> Iterator[LockedTable]:
    """Hold the table lock for a block of code; nothing on the table changes yet.

    Arguments are checked before anything is written, so that an invalid call leaves no trace.

    Args:
        context: the open table.
        locking: which lock, and how long to wait for another writer.

    Raises:
        ConflictError: another writer held the lock for longer than that.
        InvalidError: the table was opened by the address of some partitions.
        UnsupportedError: the table has a feature that this release cannot write.
    """
    context.check_changeable()
    context = _chosen(context, locking)
    storage, clock, ids = context.storage, context.clock, context.ids
    pending = partial(describe_pending, storage, clock)
    with (
        HeldLock(lambda: table_lock(storage, clock, ids, locking.wait_ms, locking, pending)) as lock,
        conflict_if_lost(lock),
    ):
        config = load_config(context.storage)
        check_writable(context.storage, config)
        locked = _locked_table(context, config, lock)
        with lost_to_archiving(locked.store, config.timeline_folder):
            yield locked


@contextmanager
def lost_to_archiving(store: TimelineStore, folder: str) -> Iterator[None]:
    """Tell timeline files that an archiver is taking away without the table lock from files that are lost.

    An archiver deletes archived files without the lock. If it stood still, it may delete them much later.

    Args:
        store: of the timeline; the caller holds the table lock.
        folder: of the timeline.

    Raises:
        LostRaceError: the instant of a missing file has left the timeline.
    """
    try:
        yield
    except MissingFileError as error:
        is_instant = error.path is not None and error.path.rpartition("/")[0] == folder
        if not is_instant or any(each.requested == error.instant for each in store.load().instants):
            raise
        raise LostRaceError(
            f"Another process archived {error.instant} while it was read. Nothing was committed. Try again.",
            instant=error.instant,
        ) from error


def _chosen(context: TableContext, locking: LockSettings) -> TableContext:
    """Return the open table with what the options of a call say of its metadata table and commits."""
    uses = context.uses_metadata if locking.uses_metadata is None else locking.uses_metadata
    return replace(
        context,
        uses_metadata=uses,
        metadata_compaction=locking.metadata_compaction,
        rolling=locking.rolling,
    )


def recover(
    locked: LockedTable, failed: FailedWrites = DEFAULT_FAILED_WRITES, timeline: Timeline | None = None
) -> LockedTable:
    """Finish interrupted restores and, by default, roll back failed writes.

    Args:
        locked: the locked table; the arguments of the calling operation have been checked.
        failed: the policy for failed writes.
        timeline: as read under this lock; None to read it.

    Returns:
        The locked table to go on with: the same one if nothing had to change.

    Raises:
        ConflictError: a pending write of another engine has a live heartbeat.
        UnsupportedError: another engine was rolling a completed write back, or the data files can only be
            found through the metadata table.
    """
    _check_findable(locked, timeline)
    context = locked.rollback_context()
    timeline = timeline or locked.store.load()
    restored = finish_restores(context, timeline) if timeline.pending_of(Action.RESTORE) else []
    undone = rollback_pending(context, locked.store.load() if restored else timeline, failed)
    if not restored and not undone:
        return locked
    return _locked_table(locked.context, load_config(locked.context.storage), locked.lock)


def _check_findable(locked: LockedTable, timeline: Timeline | None) -> None:
    """Make sure that the data files can be found without the metadata table, if the table has one.

    Raises:
        UnsupportedError: another tool registered external files.
    """
    if locked.config.metadata_partitions:
        uri = locked.context.storage.spec.uri
        for write in (timeline or locked.store.load()).writes()[-WRITES_CHECKED:]:
            if (uri, write) not in _FINDABLE:
                refuse_external_files(locked.store.commit_metadata(write).stats, write.requested)
                _note_findable(uri, write)


def _note_findable(uri: str, write: Instant) -> None:
    """Note that the files of a completed write are ordinary ones, so that its metadata is not read again."""
    if len(_FINDABLE) >= _FINDABLE_MAX:
        _FINDABLE.clear()
    _FINDABLE.add((uri, write))


def recover_and_load(
    locked: LockedTable, failed: FailedWrites = DEFAULT_FAILED_WRITES, timeline: Timeline | None = None
) -> tuple[LockedTable, Timeline]:
    """Recover the table as `recover` does, and return its timeline afterwards as well.

    Args:
        locked: the locked table.
        failed: the policy for failed writes.
        timeline: as read under this lock; None to read it.
    """
    timeline = timeline or locked.store.load()
    is_pending = timeline.pending_writes() or timeline.pending_of(Action.RESTORE, Action.ROLLBACK)
    recovered = recover(locked, failed, timeline)
    # The plan of a clustering whose runner died may be gone as well.
    is_changed = recovered is not locked or is_pending
    return recovered, recovered.store.load() if is_changed else timeline


@contextmanager
def begin(
    locked: LockedTable,
    action: Action,
    time: str,
    content: bytes = b"",
    failed: FailedWrites = DEFAULT_FAILED_WRITES,
    *,
    is_flushed: bool = True,
) -> Iterator[Transaction]:
    """Put a write on the timeline for a block of code, and abort it if the block raises an exception.

    Args:
        locked: the locked table.
        action: the action of the instant.
        time: the requested time of the instant.
        content: content of the requested file.
        failed: the policy for failed writes, which says whether the write needs a heartbeat.
        is_flushed: whether the instant is on the disk before the block; otherwise the block calls
            `TimelineStore.flush` before the first data file.
    """
    has_heartbeat = failed.spares_writers or failed.policy == FailedWritesPolicy.LAZY
    context = locked.context
    heartbeat = Heartbeat(context.storage, context.clock, time, failed) if has_heartbeat else None
    with nullcontext() if heartbeat is None else heartbeat.beating(locked.lock.afterwards):
        with locked.lock.race_if_lost():
            instant = _requested(locked, action, time, content, heartbeat)
        try:
            with conflict_if_lost(locked.lock):  # before the lock is taken again to undo the write
                started = locked.store.start(instant, is_flushed=is_flushed)
                yield Transaction(locked, started, heartbeat, failed.spares_writers)
        except BaseException as error:
            beside_others = failed.spares_writers
            if beside_others and isinstance(error, ConflictError) and locked.lock.explains(error):
                settle_write(locked.rollback_context(), locked.lock, instant, error)
            abort_write(locked.rollback_context(), locked.lock, instant, beside_others=beside_others)
            raise


def _requested(
    locked: LockedTable, action: Action, time: str, content: bytes, heartbeat: Heartbeat | None
) -> Instant:
    """Put a write on the timeline; the timeline and whatever else was read so far are of one moment then.

    If the lock was lost before that, another process may have begun a write of another action at the same
    time. Files are named by the time, so this process must not undo its own write: it takes only the
    requested file back, and leaves the heartbeat, which may be the other one's by now.

    Raises:
        ConflictError: the lock was lost, or another writer has the instant.
    """
    instant = None
    try:
        instant = locked.store.request(action, time, content)
        locked.lock.check()
    except BaseException as error:
        if heartbeat is not None and (instant is not None or isinstance(error, ConflictError)):
            heartbeat.leave()
        if instant is not None:
            locked.store.withdraw(instant)
        raise
    return instant


def check_marked(storage: Storage, requested: str, stats: Sequence[WriteStat]) -> None:
    """Make sure that the files of an action, written without the table lock, were not rolled back.

    Raises:
        ConflictError: markers of its files are gone, so the files may be gone as well.
    """
    marked = set(Markers(storage, requested).files())
    if gone := frozenset((stat.partition, stat.file_id) for stat in stats if stat.path not in marked):
        raise ConflictError(
            f"Another process rolled this attempt, {requested}, back while it ran: the markers of its files"
            f" in {shown(gone)} are gone. Nothing of it counts. Run it again.",
            table=storage.spec.uri,
            instant=requested,
        )


def _locked_table(context: TableContext, config: TableConfig, lock: HeldLock) -> LockedTable:
    guard = MetadataTableGuard(
        context.storage,
        config,
        context.clock,
        context.ids,
        builds=context.uses_metadata,
        check=lock.check,
        compaction=context.metadata_compaction,
    )
    store = TimelineStore(context.storage, config, context.clock, context.ids, guard)
    guard.watch(store)
    return LockedTable(context, config, store, lock, guard)


def _rolled_entries(
    store: TimelineStore, rolling: RollingMetadata, extra: Mapping[str, str]
) -> dict[str, str]:
    """Return the entries that a commit takes over: those of the newest commits that have them.

    Args:
        store: the table's timeline.
        rolling: which entries, and in how many commits they are looked for.
        extra: the entries that the commit has already; empty ones are taken over as well.
    """
    missing = {key for key in rolling.keys if not extra.get(key)}
    found: dict[str, str] = {}
    if not missing:
        return found
    newest = sorted(store.load().writes(), key=time_of, reverse=True)[: rolling.lookback]
    for write in newest:
        entries = store.commit_metadata(write).extra
        found |= {key: entries[key] for key in missing - found.keys() if entries.get(key)}
        if len(found) == len(missing):
            break
    return found
