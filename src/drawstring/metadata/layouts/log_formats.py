"""Log files of the metadata table in either format, which the table version decides.

    inline   .<group>_<instant>.log.<version>_<token>            blocks: an HFile of records, a list of keys
    native   <group>_<token>_<instant>_<version>.log.hfile       records; without any, a group that is empty
             <group>_<token>_<instant>_<version>.deletes.hfile   keys of removed records

Of one version the removals come after the records, in either format.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from typing import Final, Protocol

import pyarrow as pa

from drawstring.formats.hfile import Codec, HFileWriter
from drawstring.formats.hfile.writer import Sink
from drawstring.formats.log_inline import BlockType, HeaderKey
from drawstring.formats.log_native import encoded_deletes, hfile_entries
from drawstring.merge.versions import flat
from drawstring.metadata.encoding import (
    PLAIN_BYTES_MAX,
    VALUE,
    encode_log_blocks,
    encoded_values,
    stored_schema,
)
from drawstring.metadata.layouts.log_places import LogPlace
from drawstring.metadata.partitions import KEY
from drawstring.model.commit import WriteStat
from drawstring.model.files import HFILE, LogFile, NativeLog, join_path
from drawstring.model.table_version import LogFormat

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
    place: LogPlace
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
    values = flat(rows.column(VALUE)) if VALUE in rows.column_names else encoded_values(rows)
    return flat(rows.column(KEY)), values


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
