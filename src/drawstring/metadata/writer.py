"""Delta commits of the metadata table, and their rollback.

    log files of the delta commit T ──> completed file of T in the metadata table ──> completed file of T

The caller holds the table lock and has decided to complete T, so any process that finishes T on behalf of
another one writes the same records. The delta commit notes of what content it was made: a second process
leaves it as it is then, and otherwise replaces it (a table service that ran again after a crash). A delta
commit that a stalled process has begun is fenced, as on the timeline of the table.

All of it is on the disk before the completed file of T in the table. A power cut before that may leave the
delta commit without its log files; who then completes T on behalf of the dead process makes it again.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from drawstring.base.clock import Clock, Ids
from drawstring.base.errors import ConflictError
from drawstring.config.table.config import TableConfig
from drawstring.filegroups.write.base_writer import ensure_partition
from drawstring.formats import schemas
from drawstring.formats.metadata.commit import encode_commit
from drawstring.formats.metadata.rollback import encode_rollback, encode_rollback_plan
from drawstring.metadata.encoded import EncodedDelta, EncodedLog, in_parts
from drawstring.metadata.encoding import RECORD_SCHEMA
from drawstring.metadata.layouts.log_formats import LogTarget, encode_logs
from drawstring.metadata.layouts.log_places import LogPlaces, logs_of
from drawstring.metadata.layouts.own_times import Suffix
from drawstring.metadata.maintained.files import FileChanges
from drawstring.metadata.maintained.protocol import GroupChange
from drawstring.metadata.partitions import FILES, METADATA_FOLDER
from drawstring.metadata.stored.rows import remember_log
from drawstring.model.commit import CommitMetadata, WriteOperation, WriteStat
from drawstring.model.files import BaseFile, FileStatus, TaskContext, join_path, parse_data_file
from drawstring.model.instant import COMPACTION_ACTIONS, Action, Instant, State, is_build
from drawstring.model.plans import RollbackMetadata, RollbackPlan, RollbackRequest, RollbackStat
from drawstring.storage.protocol import Storage
from drawstring.storage.subfolder import Subfolder
from drawstring.timeline.claims import Fence
from drawstring.timeline.properties_store import load_config
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline

_CONTENT: Final = "drawstring.content.md5"
"""Key in the commit metadata of a delta commit: hash of the completed file of which it was made."""

_OPERATIONS: Final = {
    Action.COMPACTION: WriteOperation.COMPACT,
    Action.LOG_COMPACTION: WriteOperation.LOG_COMPACT,
}

_log = logging.getLogger("drawstring")


@dataclass(frozen=True, slots=True)
class MetadataWriter:
    """Writes to the metadata table of a table, whose lock the caller holds.

    Attributes:
        table: files of the table.
        storage: files of the metadata table.
        config: settings of the metadata table.
        store: timeline of the metadata table.
        clock: creation times of files.
        ids: makes the names of files distinct.
    """

    table: Storage
    storage: Storage
    config: TableConfig
    store: TimelineStore
    clock: Clock
    ids: Ids

    @staticmethod
    def of(table: Storage, clock: Clock, ids: Ids) -> MetadataWriter:
        """Return the writer of the metadata table of a table.

        Raises:
            InvalidError: there is no metadata table.
            CorruptTableError: its properties are damaged.
        """
        storage = Subfolder(table, METADATA_FOLDER)
        config = load_config(storage)
        return MetadataWriter(table, storage, config, TimelineStore(storage, config, clock, ids), clock, ids)

    def encode_files(self, requested: str, changes: FileChanges, content: bytes) -> EncodedDelta | None:
        """Return what the list of files gets of an instant, before its completion is claimed.

        Args:
            requested: requested time of the instant.
            changes: the files that it writes or deletes.
            content: content of its completed file.

        Returns:
            The delta commit; None where log files are named after slices, which others may replace.
        """
        if self.config.rules.names_logs_by_slice:
            return None
        logs = self._encoded(requested, changes.in_group(), self.places())
        stats = [each.stat for each in logs]
        own = self.encoded_commit(Action.DELTA_COMMIT, stats, {_CONTENT: _digest(content)})
        return EncodedDelta(content, self.config, tuple(logs), own)

    def files_of(self, delta: EncodedDelta | None) -> list[tuple[str, bytes]]:
        """Return the files of a delta commit to be: the folder of each in the table, and its content."""
        if delta is None:
            return []
        logs = [(each.stat.partition, each.content) for each in delta.logs]
        own = (self.config.timeline_folder, delta.content)
        return [(join_path(METADATA_FOLDER, folder), content) for folder, content in (*logs, own)]

    def commit(
        self,
        instant: Instant,
        content: bytes,
        changes: Iterable[GroupChange],
        encoded: EncodedDelta | None = None,
    ) -> Instant | None:
        """Write the delta commit of an instant that is about to complete in the table.

        Args:
            instant: of the table.
            content: content of its completed file.
            changes: what the instant changes, at most one change for each file group.
            encoded: the delta commit, if it was encoded of the same content; then the changes are not read.

        Returns:
            The delta commit; None if another process had written it.

        Raises:
            ConflictError: another process completes it.
            CorruptTableError: the timeline of the metadata table, or the content, is damaged.
        """
        digest = _digest(content)
        if self.config.rules.names_logs_by_slice:
            self.take_back_services(self.store.load())  # what they plan would lack this delta commit
        begun = self._begin(instant.requested, digest)
        if begun is None:
            return None
        if encoded is not None and (encoded.of, encoded.config) == (content, self.config):
            stats = [self._put(each) for each in encoded.logs]
            done = self.store.complete(begun[0], encoded.content, begun[1])
        else:
            stats = self.append(instant.requested, changes)
            done = self.complete(begun[0], stats, {_CONTENT: digest}, begun[1])
        # Not before the completed file: it does not count yet, and a flush has less to do after another one.
        self.storage.sync({each.partition for each in stats})
        return done

    def places(self) -> LogPlaces:
        """Return what finds the places of the log files of one delta commit."""
        return LogPlaces(self.storage, self.config, self.store)

    def new_token(self) -> str:
        """Return a write token for the name of a new file, which no other process has."""
        return TaskContext(0, 0, int(self.ids.uuid()[:6], 16)).write_token

    def append(self, requested: str, changes: Iterable[GroupChange]) -> list[WriteStat]:
        """Write the log files of a delta commit, and return their statistics.

        Args:
            requested: requested time of the delta commit.
            changes: of file groups.

        Raises:
            MetadataTableError: a file group is not there.
        """
        places = self.places()
        filled = (each for each in changes if not each.is_empty)
        encoded = (log for each in filled for log in self._encoded(requested, each, places))
        return [stat for part in in_parts(encoded) for stat in self._put_at_once(part)]

    def _encoded(self, requested: str, change: GroupChange, places: LogPlaces) -> list[EncodedLog]:
        place, now_ms = places.of(requested, change.partition, change.file_id), self.clock.now_ms()
        target = LogTarget(change.partition, change.file_id, requested, place, self.new_token(), now_ms)
        encoded: list[EncodedLog] = []
        for log, content in encode_logs(self.config.rules.log_format, target, change.rows, change.removed):
            stat = target.stat_of(log, [each.stat.path.rpartition("/")[2] for each in encoded])
            if change.partition == FILES:
                status = FileStatus(stat.path, len(content))
                remember_log(self.storage, status, content, change.rows, change.removed)
            encoded.append(EncodedLog(stat, content))
        return encoded

    def _put_at_once(self, logs: Sequence[EncodedLog]) -> list[WriteStat]:
        """Write log files, which are flushed at the same time."""
        drop = self.storage.stage([(each.stat.partition, each.content) for each in logs])
        try:
            return [self._put(each) for each in logs]
        finally:
            drop()

    def _put(self, log: EncodedLog) -> WriteStat:
        self.storage.put(log.stat.path, log.content)
        return log.stat

    def complete(
        self, instant: Instant, stats: list[WriteStat], extra: dict[str, str], fence: Fence | None = None
    ) -> Instant:
        """Complete an inflight write or compaction of the metadata table.

        Args:
            instant: inflight in the metadata table.
            stats: its files.
            extra: entries of the commit metadata besides the schema.
            fence: the claim on an instant that another process began.

        Raises:
            ConflictError: another process completed or fenced it.
        """
        return self.store.complete(instant, self.encoded_commit(instant.action, stats, extra), fence)

    def encoded_commit(self, action: Action, stats: list[WriteStat], extra: dict[str, str]) -> bytes:
        """Return the content of the completed file of a write or compaction; see `complete`."""
        metadata = CommitMetadata(
            stats=tuple(stats),
            operation=_OPERATIONS.get(action, WriteOperation.UPSERT),
            extra={"schema": schemas.text(RECORD_SCHEMA)} | extra,
            compacted=action in COMPACTION_ACTIONS,
        )
        return encode_commit(metadata, self.config.layout, False)

    def begin(
        self, action: Action, requested: str, content: bytes = b"", *, is_flushed: bool = True
    ) -> Instant:
        """Put an instant on the timeline of the metadata table, inflight; a plan is flushed if asked."""
        instant = self.store.request(action, requested, content, is_flushed=is_flushed)
        return self.store.start(instant, is_flushed=False)

    def make_partition(self, partition: str, requested: str) -> None:
        """Make the folder of a partition of the metadata table."""
        ensure_partition(self.storage, partition, requested)

    def _begin(self, requested: str, digest: str) -> tuple[Instant, Fence | None] | None:
        """Put the delta commit on the timeline, or take it over; None if it is complete."""
        known = _find(self.store.load(), Action.DELTA_COMMIT, requested)
        if known is not None and known.is_completed:
            if self._is_whole(self.store.commit_metadata(known), digest):
                return None
            self.discard(known)
            known = None
        if known is None:
            try:
                return self.begin(Action.DELTA_COMMIT, requested), None
            except ConflictError:  # another process has just begun it
                if _find(self.store.load(), Action.DELTA_COMMIT, requested) is None:
                    raise
                return self._begin(requested, digest)
        fence = self.store.fence(known)
        if isinstance(fence, Instant):
            return self._begin(requested, digest)
        self.delete_files(known)
        if known.state is State.REQUESTED:
            known = self.store.start(known, is_flushed=False)
        return known, fence

    def _is_whole(self, done: CommitMetadata, digest: str) -> bool:
        """Return whether a delta commit was made of some content, and no power cut took files of it."""
        is_same = done.extra.get(_CONTENT) == digest
        return is_same and all(self.storage.exists(each.path) for each in done.stats)

    def roll_back(self, requested: str, by: str | None = None) -> None:
        """Take back the delta commit of an instant of the table that is being rolled back.

        Args:
            requested: requested time of the instant; nothing happens if the metadata table does not know it.
            by: requested time of the rollback of the table; None for a time of its own.
        """
        timeline = self.store.load()
        if self.config.layout.suffixes_times:
            by = (by or requested) + Suffix.ROLLBACK
        known = _find(timeline, Action.DELTA_COMMIT, requested)
        pending = _find(timeline, Action.ROLLBACK, by) if by else None
        if known is None:
            if pending is not None and not pending.is_completed:
                self._complete_rollback(pending, requested, ())
            return
        _log.info("Rolling back %s in the metadata table.", requested)
        paths = self._files_of(known)
        rollback = pending or self._request_rollback(timeline, known, by, paths)
        self.discard(known)
        if not rollback.is_completed:
            self._complete_rollback(rollback, requested, paths)

    def _request_rollback(
        self, timeline: Timeline, known: Instant, by: str | None, paths: tuple[str, ...]
    ) -> Instant:
        requests = tuple(RollbackRequest(path.rpartition("/")[0], files_to_delete=(path,)) for path in paths)
        plan = encode_rollback_plan(RollbackPlan(known.requested, known.action, requests), self.root)
        return self.begin(Action.ROLLBACK, by or self.store.new_time(timeline), plan)

    def _complete_rollback(self, rollback: Instant, requested: str, paths: tuple[str, ...]) -> None:
        fence = self.store.fence(rollback)
        if isinstance(fence, Instant):
            return
        if rollback.state is State.REQUESTED:
            rollback = self.store.start(rollback, is_flushed=False)
        folders = sorted({path.rpartition("/")[0] for path in paths})
        stats = (
            RollbackStat(folder, deleted=tuple(path for path in paths if path.rpartition("/")[0] == folder))
            for folder in folders
        )
        metadata = RollbackMetadata(
            started=rollback.requested,
            seconds=0.0,
            instant=requested,
            action=Action.DELTA_COMMIT,
            stats=tuple(stats),
        )
        self.store.complete(rollback, encode_rollback(metadata, self.root), fence)

    def discard(self, instant: Instant) -> None:
        """Delete the files of an instant, and take it off the timeline of the metadata table.

        Its process may have decided to complete it, without learning that it had: then it completes first.
        """
        if not instant.is_completed and isinstance(completed := self.store.fence(instant), Instant):
            instant = completed
        self.delete_files(instant)
        if instant.is_completed:
            self.storage.delete([self.store.path(instant)])
        self.store.remove_pending(Instant(instant.requested, Action.DELTA_COMMIT, State.INFLIGHT))
        self.store.forget_claim(Instant(instant.requested, Action.DELTA_COMMIT, State.INFLIGHT))

    def take_back_services(self, own: Timeline) -> None:
        """Take back what dead processes left of compactions and cleans.

        Args:
            own: timeline of the metadata table.
        """
        for instant in own.pending_of(*COMPACTION_ACTIONS, Action.CLEAN):
            if isinstance(self.store.fence(instant), Fence):
                if instant.action in COMPACTION_ACTIONS:
                    self.delete_files(instant)
                self.store.remove_pending(instant)
                self.store.forget_claim(instant)

    def delete_files(self, instant: Instant) -> None:
        """Delete the data files of the metadata table that an instant wrote."""
        paths = self._files_of(instant)
        self.storage.delete(paths)
        self.storage.sync({path.rpartition("/")[0] for path in paths})

    def _files_of(self, instant: Instant) -> tuple[str, ...]:
        """Return the data files of the metadata table that an instant wrote."""
        begins, is_compaction = is_build(instant.requested), instant.action is Action.COMPACTION
        if self.config.rules.names_logs_by_slice and not begins and not is_compaction:
            return tuple(logs_of(self.storage, instant.requested))
        folders = self.storage.list_folders("")
        files = (parse_data_file(status) for each in folders for status in self.storage.list_files(each))
        return tuple(
            file.status.path
            for file in files
            if file is not None
            and file.instant == instant.requested
            and (begins or isinstance(file, BaseFile) == is_compaction)
        )

    @property
    def root(self) -> str:
        """Address of the metadata table, as its plans put it before the paths of files."""
        return self.storage.local_path("") or self.storage.full_uri("")


def is_of_drawstring(commit: CommitMetadata) -> bool:
    """Return whether drawstring wrote a delta commit of the metadata table."""
    return _CONTENT in commit.extra


def _digest(content: bytes) -> str:
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


def _find(timeline: Timeline, action: Action, requested: str) -> Instant | None:
    """Return the instant of an action: a rollback may have a delta commit of the same time."""
    same = (each for each in timeline.instants if each.requested == requested)
    return next((each for each in same if each.action is action), None)
