"""Write delta commits of the metadata table, and roll them back.

    log files of the delta commit T ──> completed file of T in the metadata table ──> completed file of T

The caller holds the table lock and has decided to complete T, so any process that finishes T on behalf of
another process writes the same records. The delta commit notes a digest of its content. A second process
leaves it as it is if the digest is the same, and otherwise replaces it (a table service that ran again
after a crash). A delta commit that a stalled process has begun is fenced, as on the timeline of the table.

All of it is on the disk before the completed file of T in the table. A power cut before that may leave the
delta commit without its log files. The process that then completes T on behalf of the dead process makes it
again.

`EncodedDelta` is a delta commit that is encoded before it is stored.

The place of a log file depends on the layout (`LogFileLocator`):

    layout 1    another log file of the latest slice, which its name holds; blocks name the delta commit
    layout 2    a log file named after the delta commit

The format of a log file depends on the table version (`LogSink`):

    inline   .<group>_<instant>.log.<version>_<token>            blocks: an HFile of records, a list of keys
    native   <group>_<token>_<instant>_<version>.log.hfile       records; without any, a group that is empty
             <group>_<token>_<instant>_<version>.deletes.hfile   keys of removed records

In either format the removals of one version come after its records.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from typing import Final, Protocol

import pyarrow as pa

from drawstring.base.clock import Clock, Ids
from drawstring.base.errors import ConflictError, CorruptTableError
from drawstring.config.table_config import TableConfig
from drawstring.filegroups.base_file_writer import ensure_partition_metadata
from drawstring.filegroups.file_system_view import table_view
from drawstring.formats import schemas
from drawstring.formats.hfile import Codec, HFileWriter
from drawstring.formats.hfile.writer import Sink
from drawstring.formats.log_files import log_blocks
from drawstring.formats.log_inline import BlockType, HeaderKey
from drawstring.formats.log_native import encoded_deletes, hfile_entries
from drawstring.formats.metadata.commit import encode_commit
from drawstring.formats.metadata.rollback import encode_rollback, encode_rollback_plan
from drawstring.merge.record_version import combined_chunks
from drawstring.metadata.instant_times import Suffix
from drawstring.metadata.log_format import (
    PLAIN_BYTES_MAX,
    RECORD_SCHEMA,
    VALUE,
    encode_log_blocks,
    encoded_values,
    stored_schema,
)
from drawstring.metadata.partitions.files import FileChanges
from drawstring.metadata.partitions.maintainer import GroupChange
from drawstring.metadata.reader import remember_log
from drawstring.metadata.table import FILES, KEY, METADATA_FOLDER, damaged
from drawstring.model.commit import CommitMetadata, WriteOperation, WriteStat
from drawstring.model.files import (
    HFILE,
    BaseFile,
    FileSlice,
    FileStatus,
    LogFile,
    NativeLog,
    TaskContext,
    join_path,
    parse_data_file,
)
from drawstring.model.instant import COMPACTION_ACTIONS, Action, Instant, State, is_build
from drawstring.model.plans import RollbackMetadata, RollbackPlan, RollbackRequest, RollbackStat
from drawstring.model.table_version import LogFormat
from drawstring.storage.protocol import Storage, Subfolder
from drawstring.timeline.claims import Fence
from drawstring.timeline.properties import load_config
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline

_BYTES_MAX: Final = 32 << 20
"""Bytes of log files that are encoded before they are written."""


@dataclass(frozen=True, slots=True)
class EncodedLog:
    """A log file of the metadata table, not stored yet.

    Attributes:
        stat: its statistics, for the delta commit.
        content: of the file.
    """

    stat: WriteStat
    content: bytes


@dataclass(frozen=True, slots=True)
class EncodedDelta:
    """A delta commit of the metadata table, not stored yet.

    Attributes:
        of: content of the completed file in the table of which it is made.
        config: settings of the metadata table for which it is made.
        logs: its log files.
        content: of its own completed file.
    """

    of: bytes
    config: TableConfig
    logs: tuple[EncodedLog, ...]
    content: bytes


@dataclass(frozen=True, slots=True)
class EncodedCommit:
    """An instant that was encoded before its completion is claimed, a write before the table lock is taken.

    Attributes:
        content: of its completed file.
        delta: what the metadata table gets; None if that is found out under the lock.
    """

    content: bytes
    delta: EncodedDelta | None


def in_parts(logs: Iterable[EncodedLog]) -> Iterator[list[EncodedLog]]:
    """Yield log files in parts that may be held in memory."""
    part: list[EncodedLog] = []
    size_bytes = 0
    for log in logs:
        part.append(log)
        size_bytes += len(log.content)
        if size_bytes >= _BYTES_MAX:
            yield part
            part, size_bytes = [], 0
    yield part


@dataclass(frozen=True, slots=True)
class LogFileLocation:
    """Where a new log file goes.

    Attributes:
        instant: the time that its name holds.
        version: of the log file.
        base_file: name of the base file of its slice; empty for none, and in layout 2.
        earlier: names of the log files before it in the slice; none in layout 2.
    """

    instant: str
    version: int = 1
    base_file: str = ""
    earlier: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LogFileLocator:
    """Finds where the log files of a delta commit go.

    Attributes:
        storage: files of the metadata table.
        config: its settings.
        store: its timeline, which is loaded.
    """

    storage: Storage
    config: TableConfig
    store: TimelineStore
    _slices: dict[str, Mapping[str, FileSlice]] = field(default_factory=dict)

    def of(self, requested: str, partition: str, file_id: str) -> LogFileLocation:
        """Return where a log file goes.

        Args:
            requested: requested time of the delta commit.
            partition: of the metadata table.
            file_id: the file group.

        Raises:
            MetadataTableError: the file group is not there.
        """
        if not self.config.rules.names_logs_by_slice:
            return LogFileLocation(requested)
        latest = self._latest(partition).get(file_id)
        if latest is None:
            raise damaged(self.storage, f"the file group {file_id} of {partition} is missing")
        return LogFileLocation(
            latest.base_instant,
            max((log.version for log in latest.logs), default=0) + 1,
            "" if latest.base is None else latest.base.status.name,
            tuple(log.status.name for log in latest.logs),
        )

    def _latest(self, partition: str) -> Mapping[str, FileSlice]:
        if partition not in self._slices:
            view = table_view(self.storage, self.config, self.store.loaded, self.store)
            groups = view.stored_groups(partition)
            self._slices[partition] = {each.file_id: each.slices[-1] for each in groups}
        return self._slices[partition]


def logs_of(storage: Storage, requested: str) -> Iterator[str]:
    """Yield the paths of the log files of layout 1 that a delta commit wrote; reads the heads of all.

    Args:
        storage: files of the metadata table.
        requested: requested time of the delta commit.

    Raises:
        CorruptTableError: a log file is damaged.
        MetadataTableError: one of them has blocks of other delta commits, too.
    """
    for folder in storage.list_folders(""):
        for log in filter(None, map(LogFile.parse, storage.list_files(folder))):
            instants = _instants_in(storage, log)
            if requested not in instants:
                continue
            if len(instants) > 1:
                raise damaged(storage, f"{log.status.path} has blocks that cannot be taken back one by one")
            yield log.status.path


def _instants_in(storage: Storage, log: LogFile) -> set[str]:
    try:
        with storage.open(log.status.path) as file:
            return {block.instant for block in log_blocks(file, log) if block.instant}
    except CorruptTableError as error:
        raise error.at(path=log.status.path) from error


_NOTHING: Final = pa.array([], pa.binary())
_TYPES: Final = {NativeLog.DATA: BlockType.HFILE_DATA, NativeLog.DELETES: BlockType.DELETE}


@dataclass(frozen=True, slots=True)
class LogTarget:
    """The log files that an instant adds to a file group of the metadata table.

    Attributes:
        partition: of the metadata table.
        file_id: the file group.
        requested: requested time of the instant.
        place: where they go.
        token: write token in their names.
        created_ms: milliseconds since the epoch.
        more: further headers of blocks.
    """

    partition: str
    file_id: str
    requested: str
    place: LogFileLocation
    token: str
    created_ms: int
    more: Mapping[HeaderKey, str] = field(default_factory=dict)

    @property
    def header(self) -> dict[HeaderKey, str]:
        """Headers of every block."""
        return {HeaderKey.INSTANT_TIME: self.requested, **self.more}

    @property
    def inline_name(self) -> str:
        """The name of an inline log file."""
        return LogFile.name_of(self.file_id, self.place.instant, self.place.version, self.token)

    def native_name(self, kind: NativeLog, version: int) -> str:
        """Return the name of a native log file."""
        return LogFile.native_name_of(self.file_id, self.place.instant, version, self.token, kind, HFILE)

    def stat_of(self, log: LogContent, earlier: Sequence[str] = ()) -> WriteStat:
        """Return the statistics of a log file.

        Args:
            log: the log file.
            earlier: names of those that the instant added to the file group before.
        """
        return WriteStat(
            partition=self.partition,
            file_id=self.file_id,
            path=join_path(self.partition, log.name),
            prev_commit=self.place.instant,
            num_writes=log.records,
            num_updates=log.records,
            num_deletes=log.removed,
            size_bytes=log.size_bytes,
            base_file=self.place.base_file,
            log_version=log.version,
            log_files=(*self.place.earlier, *earlier, log.name),
        )


@dataclass(frozen=True, slots=True)
class LogContent:
    """What a log file has.

    Attributes:
        name: of the file.
        version: the number in it.
        records: number of its records.
        removed: number of keys of removed records in it.
        size_bytes: size of the file.
    """

    name: str
    version: int
    records: int
    removed: int
    size_bytes: int


class LogSink(Protocol):
    """Takes the records of a file group part by part, by ascending keys, and writes them to log files."""

    def add(self, rows: pa.Table, removed: pa.Array) -> None:
        """Append records and removed keys; a record comes after the removal of its key."""

    def close(self) -> list[LogContent]:
        """Finish the files."""


def encode_logs(
    log_format: LogFormat, target: LogTarget, rows: pa.Table, removed: pa.Array
) -> list[tuple[LogContent, bytes]]:
    """Return the log files of a delta commit, in the order of merging; without records an empty one.

    Args:
        log_format: of the files.
        target: what they are called.
        rows: records with distinct keys, with some columns of the schema, or encoded as `VALUE`.
        removed: keys of records that are removed, as text; a record of the same key is removed with them.
    """
    return _ENCODERS[log_format](target, rows, removed)


def _encode_inline(target: LogTarget, rows: pa.Table, removed: pa.Array) -> list[tuple[LogContent, bytes]]:
    content = encode_log_blocks(target.header, target.partition, rows, removed, target.created_ms)
    log = LogContent(target.inline_name, target.place.version, rows.num_rows, len(removed), len(content))
    return [(log, content)]


def _encode_native(target: LogTarget, rows: pa.Table, removed: pa.Array) -> list[tuple[LogContent, bytes]]:
    done = []
    if rows.num_rows:
        done.append(_encoded(target, NativeLog.DATA, *_records(rows)))
    if len(removed):
        done.append(_encoded(target, NativeLog.DELETES, *_removals(removed)))
    return done or [_encoded(target, NativeLog.DATA, _NOTHING, _NOTHING)]


def _encoded(
    target: LogTarget, kind: NativeLog, keys: pa.Array, values: pa.Array
) -> tuple[LogContent, bytes]:
    sink, codec = BytesIO(), Codec.GZ if values.nbytes > PLAIN_BYTES_MAX else Codec.NONE
    file = _NativeFile(sink, target, kind, target.place.version, codec)
    file.add(keys, values)
    return file.close(), sink.getvalue()


def _records(rows: pa.Table) -> tuple[pa.Array, pa.Array]:
    rows = rows.sort_by(KEY)
    values = combined_chunks(rows.column(VALUE)) if VALUE in rows.column_names else encoded_values(rows)
    return combined_chunks(rows.column(KEY)), values


def _removals(removed: pa.Array) -> tuple[pa.Array, pa.Array]:
    keys = removed.unique().sort()
    return keys, encoded_deletes(keys)


class _NativeFile:
    """A native log file that is being written."""

    def __init__(self, sink: Sink, target: LogTarget, kind: NativeLog, version: int, codec: Codec) -> None:
        self._target, self._kind, self._version = target, kind, version
        self._writer = HFileWriter(sink, codec)

    def add(self, keys: pa.Array, values: pa.Array) -> None:
        """Append entries by ascending keys."""
        self._writer.append(keys, values)

    def close(self) -> LogContent:
        """Write the end of the file."""
        target, kind = self._target, self._kind
        header = target.header | {HeaderKey.SCHEMA: stored_schema()}
        size_bytes = self._writer.finish(hfile_entries(_TYPES[kind], header), target.created_ms)
        counts = self._writer.entries, 0
        records, removed = counts if kind is NativeLog.DATA else counts[::-1]
        return LogContent(
            target.native_name(kind, self._version), self._version, records, removed, size_bytes
        )


class _InlineLog:
    """One inline log file of as many blocks as there are parts."""

    def __init__(self, target: LogTarget, create: Callable[[str], Sink]) -> None:
        self._target = target
        self._sink = create(target.inline_name)
        self._records = self._removed = self._bytes = 0

    def add(self, rows: pa.Table, removed: pa.Array) -> None:
        # A removal goes first: a record that follows one replaces what is before both.
        for part in ((rows.slice(0, 0), removed), (rows, removed[:0])):
            if part[0].num_rows or len(part[1]):
                target = self._target
                content = encode_log_blocks(target.header, target.partition, *part, target.created_ms)
                self._sink.write(content)
                self._bytes += len(content)
        self._records += rows.num_rows
        self._removed += len(removed)

    def close(self) -> list[LogContent]:
        target = self._target
        version = target.place.version
        return [LogContent(target.inline_name, version, self._records, self._removed, self._bytes)]


class _NativeLogs:
    """A native log file of removals, and one of records with the next version, which comes after it."""

    def __init__(self, target: LogTarget, create: Callable[[str], Sink]) -> None:
        self._target, self._create = target, create
        self._files: dict[NativeLog, _NativeFile] = {}

    def add(self, rows: pa.Table, removed: pa.Array) -> None:
        if len(removed):
            self._file(NativeLog.DELETES, self._target.place.version).add(*_removals(removed))
        if rows.num_rows:
            self._file(NativeLog.DATA, self._target.place.version + 1).add(*_records(rows))

    def _file(self, kind: NativeLog, version: int) -> _NativeFile:
        if kind not in self._files:
            sink = self._create(self._target.native_name(kind, version))
            self._files[kind] = _NativeFile(sink, self._target, kind, version, Codec.GZ)
        return self._files[kind]

    def close(self) -> list[LogContent]:
        return sorted((each.close() for each in self._files.values()), key=lambda each: each.version)


_ENCODERS: Final = {LogFormat.INLINE: _encode_inline, LogFormat.NATIVE: _encode_native}

LOG_SINKS: Final[Mapping[LogFormat, Callable[[LogTarget, Callable[[str], Sink]], LogSink]]] = {
    LogFormat.INLINE: _InlineLog,
    LogFormat.NATIVE: _NativeLogs,
}
"""Makes the sink of the log files of a file group, given what opens a file of some name."""


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
        *,
        has_plan: bool,
    ) -> Instant | None:
        """Write the delta commit of an instant that is about to complete in the table.

        Args:
            instant: of the table.
            content: content of its completed file.
            changes: what the instant changes, at most one change for each file group.
            encoded: the delta commit, if it was encoded of the same content; then the changes are not read.
            has_plan: whether the instant runs a plan, so that it runs again after a crash. Then its name is
                flushed before its files: a power cut could keep a file and not the name, and the second run
                would make the file count, which lists files of the first one.

        Returns:
            The delta commit; None if another process had written it.

        Raises:
            ConflictError: another process completes it.
            CorruptTableError: the timeline of the metadata table, or the content, is damaged.
        """
        digest = _digest(content)
        if self.config.rules.names_logs_by_slice:
            self.take_back_services(self.store.load())  # what they plan would lack this delta commit
        begun = self._begin(instant.requested, digest, is_flushed=has_plan)
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

    def places(self) -> LogFileLocator:
        """Return what finds the places of the log files of one delta commit."""
        return LogFileLocator(self.storage, self.config, self.store)

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

    def _encoded(self, requested: str, change: GroupChange, places: LogFileLocator) -> list[EncodedLog]:
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
        ensure_partition_metadata(self.storage, partition, requested)

    def _begin(self, requested: str, digest: str, *, is_flushed: bool) -> tuple[Instant, Fence | None] | None:
        """Put the delta commit on the timeline, or take it over; None if it is complete."""
        known = _find(self.store.load(), Action.DELTA_COMMIT, requested)
        if known is not None and known.is_completed:
            if self._is_whole(self.store.commit_metadata(known), digest):
                return None
            self.discard(known)
            known = None
        if known is None:
            try:
                begun = self.begin(Action.DELTA_COMMIT, requested)
                if is_flushed:
                    self.store.flush()
                return begun, None
            except ConflictError:  # another process has just begun it
                if _find(self.store.load(), Action.DELTA_COMMIT, requested) is None:
                    raise
                return self._begin(requested, digest, is_flushed=is_flushed)
        fence = self.store.fence(known)
        if isinstance(fence, Instant):
            return self._begin(requested, digest, is_flushed=is_flushed)
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
