"""A write on the timeline: begin, commit, or leave the table as it was.

    exclusive  lock -> refuse tables that cannot be written
    clear      finish restores -> roll dead writes back, or leave them
    begin      new instant: requested, inflight
    commit     delete files of failed attempts -> sync the folders -> completed, by put-if-absent
               -> remove markers
               (a foreign metadata table is switched off right before that takes effect: txn.metadata_table)
    abort      take the own instant back: off the timeline while no file is begun, else by a rollback

The lock is held to the end: there is one writer at a time.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from drawstring.base.errors import ConflictError, DrawstringError
from drawstring.config.keys.failed_writes import EAGERLY, FailedWrites
from drawstring.config.table.config import TableConfig
from drawstring.filegroups.view.external_files import refuse_external_files
from drawstring.filegroups.view.presence import WRITES_LOOKED_AT
from drawstring.filegroups.write.markers import Markers
from drawstring.formats.metadata.commit import encode_commit
from drawstring.model.commit import CommitMetadata, WriteStat
from drawstring.model.instant import Action, Instant
from drawstring.storage.paths import folders_above
from drawstring.storage.protocol import Storage
from drawstring.timeline.claims import Fence
from drawstring.timeline.properties_store import load_config
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline
from drawstring.txn.heartbeats import Heartbeat, beating
from drawstring.txn.locks.table_lock import Lock, table_lock
from drawstring.txn.metadata_table import MetadataTableGuard
from drawstring.txn.rollback.dead_writes import rollback_pending
from drawstring.txn.rollback.restore import finish_restores
from drawstring.txn.rollback.rollback import RollbackContext, take_back
from drawstring.txn.table_context import TableContext
from drawstring.txn.writable import check_writable

_log = logging.getLogger("drawstring")


@dataclass(frozen=True, slots=True)
class LockedTable:
    """The table while this writer alone may change it.

    Attributes:
        state: the table.
        config: the table's settings as read under the lock.
        store: its timeline.
        lock: held.
    """

    state: TableContext
    config: TableConfig
    store: TimelineStore
    lock: Lock

    def rollback_context(self) -> RollbackContext:
        """Return what a rollback needs."""
        state = self.state
        return RollbackContext(
            state.storage, self.config, self.store, state.clock, state.ids, self.lock.check
        )

    def finish(self, instant: Instant, metadata: CommitMetadata, fence: Fence | None = None) -> Instant:
        """Complete an instant whose files are written.

        Args:
            instant: inflight.
            metadata: of what it wrote.
            fence: of an instant that another process began.

        Raises:
            ConflictError: the lock was lost, or somebody rolled the instant back.
        """
        gone = discard_failed_attempts(self.state, instant.requested, metadata.stats)
        _sync(self.state, (*gone, *_files_of(metadata.stats)))
        self.lock.check()
        is_replace = instant.action.completed_action is Action.REPLACE_COMMIT
        content = encode_commit(metadata, self.config.layout, is_replace)
        completed = self.store.complete(instant, content, fence)
        try:
            # An attempt that another one outran may have begun a file since.
            if late := discard_failed_attempts(self.state, instant.requested, metadata.stats):
                _sync(self.state, late)
            Markers(self.state.storage, instant.requested).remove()
        except (DrawstringError, OSError) as error:
            _log.warning("the markers of the completed %s stay for now: %s", completed.requested, error)
        return completed


@dataclass(frozen=True, slots=True)
class Transaction:
    """One write between begin and commit.

    Attributes:
        session: the table, locked.
        instant: the write's own instant, inflight.
        heartbeat: shows others that the write goes on; None where nobody looks at that.
    """

    session: LockedTable
    instant: Instant
    heartbeat: Heartbeat | None = None

    def commit(self, metadata: CommitMetadata) -> Instant:
        """Complete the instant.

        Raises:
            ConflictError: the lock or the heartbeat was lost, or somebody rolled the instant back.
        """
        if self.heartbeat is not None:
            self.heartbeat.check()
        return self.session.finish(self.instant, metadata)

    def abandon(self) -> None:
        """Take the instant off the timeline again: nothing is to be committed."""
        _undo(self.session, self.instant)


@contextmanager
def lock_table(state: TableContext, wait_ms: int) -> Iterator[LockedTable]:
    """Take the table for oneself; nothing on it changes yet, so that a wrong call leaves no trace.

    Args:
        state: the table.
        wait_ms: milliseconds to wait for another writer.

    Raises:
        ConflictError: another writer holds the table for longer than `wait_ms`.
        UnsupportedError: the table has a feature that this release cannot write.
    """
    with table_lock(state.storage, state.clock, state.ids, wait_ms) as lock:
        config = load_config(state.storage)
        check_writable(state.storage, config)
        yield _session(state, config, lock)


def recover(
    session: LockedTable, failed: FailedWrites = EAGERLY, timeline: Timeline | None = None
) -> LockedTable:
    """Finish restores that were cut short and, by default, take back what dead writers left.

    Args:
        session: the table, locked; the call that is to follow has been checked.
        failed: whether dead writes are taken back here.
        timeline: as it was read under this lock; None to read it.

    Returns:
        The session to go on with: the same one if nothing had to change.

    Raises:
        ConflictError: a pending write of another engine shows signs of life.
        UnsupportedError: another engine was rolling a completed write back, or only the metadata table knows
            where the data files are.
    """
    _check_findable(session, timeline)
    context = session.rollback_context()
    timeline = timeline or session.store.load()
    restored = finish_restores(context, timeline) if timeline.pending_of(Action.RESTORE) else []
    undone = rollback_pending(context, session.store.load() if restored else timeline, failed)
    if not restored and not undone:
        return session
    return _session(session.state, load_config(session.state.storage), session.lock)


def _check_findable(session: LockedTable, timeline: Timeline | None) -> None:
    """Make sure that the data files are found without the metadata table, if the table has one.

    Raises:
        UnsupportedError: another tool registered some of them.
    """
    if session.config.metadata_partitions:
        writes = (timeline or session.store.load()).writes()
        for write in writes[-WRITES_LOOKED_AT:]:
            refuse_external_files(session.store.commit_metadata(write).stats, write.requested)


def recover_and_load(
    session: LockedTable, failed: FailedWrites = EAGERLY, timeline: Timeline | None = None
) -> tuple[LockedTable, Timeline]:
    """Clear the table, and return its timeline as it is then; see `recover`.

    Args:
        session: the table, locked.
        failed: whether dead writes are taken back here.
        timeline: as it was read under this lock; None to read it.
    """
    timeline = timeline or session.store.load()
    is_left = timeline.pending_writes() or timeline.pending_of(Action.RESTORE, Action.ROLLBACK)
    session = recover(session, failed, timeline)
    return session, session.store.load() if is_left else timeline


@contextmanager
def begin(
    session: LockedTable, action: Action, time: str, content: bytes = b"", failed: FailedWrites = EAGERLY
) -> Iterator[Transaction]:
    """Put a write on the timeline; an exception inside takes it back before it goes on.

    Args:
        session: the table, locked.
        action: what the instant does.
        time: its requested time.
        content: what goes into the requested file.
        failed: whether it shows signs of life.
    """
    with beating(session.state.storage, session.state.clock, time, failed) as heartbeat:
        instant = session.store.request(action, time, content)
        try:
            yield Transaction(session, session.store.start(instant), heartbeat)
        except BaseException:
            _undo(session, instant)
            raise


def discard_failed_attempts(state: TableContext, requested: str, stats: Sequence[WriteStat]) -> list[str]:
    """Delete the files that markers name and no statistic does: attempts that failed or lost."""
    wanted = set(_files_of(stats))
    extra = [path for path in Markers(state.storage, requested).files() if path not in wanted]
    state.storage.delete(extra)
    return extra


def check_marked(storage: Storage, requested: str, stats: Sequence[WriteStat]) -> None:
    """Make sure that nobody took an action back whose files were made without the table lock.

    Raises:
        ConflictError: markers of its files are gone, and so may the files be.
    """
    marked = set(Markers(storage, requested).files())
    if any(stat.path not in marked for stat in stats):
        raise ConflictError("somebody rolled this attempt back while it ran: run it again", instant=requested)


def _files_of(stats: Sequence[WriteStat]) -> list[str]:
    return [path for stat in stats for path in (stat.path, *stat.cdc_files)]


def _sync(state: TableContext, paths: Sequence[str]) -> None:
    """Make files that were written or deleted survive a power cut, and the folders that hold them."""
    state.storage.sync(folders_above(paths))


def _session(state: TableContext, config: TableConfig, lock: Lock) -> LockedTable:
    guard = MetadataTableGuard(state.storage, config, state.clock)
    return LockedTable(
        state, config, TimelineStore(state.storage, config, state.clock, state.ids, guard), lock
    )


def _undo(session: LockedTable, instant: Instant) -> None:
    """Take the own instant back; what cannot be undone now, the next write undoes."""
    try:
        if not _is_locked(session):
            _discard_rolled_back(session, instant)
            return
        current = session.store.load().find(instant.requested)
        if current is not None and not current.is_completed:
            take_back(session.rollback_context(), current)
    except (DrawstringError, OSError) as error:
        _log.warning(
            "the failed write %s is left to the next writer to roll back: %s", instant.requested, error
        )


def _is_locked(session: LockedTable) -> bool:
    try:
        session.lock.check()
    except ConflictError:
        return False
    return True


def _discard_rolled_back(session: LockedTable, instant: Instant) -> None:
    """Delete what a write made since another process rolled it back, because this one stood still.

    It never completes, so its files are nobody else's, and need no lock.
    """
    _log.warning("The write %s lost the table lock and is left to the next writer.", instant.requested)
    if instant.requested in session.store.load().rolled_back:
        markers = Markers(session.state.storage, instant.requested)
        session.state.storage.delete(markers.files())
        markers.remove()
