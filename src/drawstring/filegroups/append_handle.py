"""Write the log files of a file group: inline blocks or native log files, by the table version's log format.

`LOG_WRITERS` maps each log format to its writer, which gets the content of a write in pieces.

Inline log files have a data block and a delete block for each piece. Where blocks store record positions, the
records are sorted by them, because a bitmap of positions keeps no other order.

Native log files have the format of base files:

    <version>.log.parquet       the records; partial updates and new records in files of two versions
    <version>.deletes.parquet   the deletes

The writer opens a file at its first row and adds the rows of all pieces to it. The footer has the headers of
a block and the key summary that base files have, so that readers can skip the file by record keys. In the
storage layout `lsm_tree` files are sorted. A piece that begins before the end of the last one goes to files
of further versions. `write.placement.in_key_ranges` orders the pieces of a write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base import limits
from drawstring.base.clock import Stopwatch
from drawstring.base.errors import TABLE_DISK, disk_errors
from drawstring.filegroups.base_file_writer import FileSettings, MetaColumnWriter
from drawstring.filegroups.log_key_index import next_index
from drawstring.filegroups.positions import POSITION, known_positions
from drawstring.filegroups.sorted_merge import KeyOrder, sorted_deletes
from drawstring.filegroups.write.changes import ACTION, Changes, RowAction, inserts_among
from drawstring.formats.avro.blocks import encode_datums
from drawstring.formats.data_file import open_sink, schema_entry
from drawstring.formats.file_format import FileSpec
from drawstring.formats.log_index import LogKeys, encode_log_index
from drawstring.formats.log_inline import BlockType, HeaderKey, encode_block, encode_deletes
from drawstring.formats.log_native import DeleteLog, deletes_schema, encode_footer
from drawstring.formats.parquet import encode_parquet_block
from drawstring.formats.parquet.statistics import RowSummaries
from drawstring.formats.record_positions import encode_bitmap, encode_list
from drawstring.merge.record_version import Array, combined_chunks, ordering_fields
from drawstring.model.commit import WriterFacts, WriteStat
from drawstring.model.files import FileSlice, FileStatus, LogFile, NativeLog, join_path
from drawstring.model.table_version import LogFormat
from drawstring.schema.evolution import conform_table
from drawstring.schema.fields import RECORD_KEY
from drawstring.storage.protocol import Storage
from drawstring.timeline.timeline import noted_in


@dataclass(frozen=True, slots=True)
class LogTarget:
    """Where log files are written.

    Attributes:
        settings: of the write.
        storage: of the table.
        file_slice: the slice that they belong to.
        write_token: of the task attempt.
        header: headers of all blocks, besides the instant and the schema.
        may_be_planned: whether a compaction may have included the file of a write that others rolled back.
    """

    settings: FileSettings
    storage: Storage
    file_slice: FileSlice
    write_token: str
    header: Mapping[HeaderKey, str] = field(default_factory=dict)
    may_be_planned: bool = False

    @property
    def begins_group(self) -> bool:
        """Whether the write begins the file group, so that every record is new as far as it knows."""
        group = self.file_slice
        return group.base is None and not group.logs and group.base_instant == self.settings.instant

    @property
    def block_header(self) -> dict[HeaderKey, str]:
        """The headers of a block of deletes."""
        return {
            HeaderKey.INSTANT_TIME: self.settings.instant,
            HeaderKey.SCHEMA: self.settings.avro_schema,
            **self.header,
        }

    def data_header(self, part: LogPart) -> dict[HeaderKey, str]:
        """Return the headers of a block of records."""
        header = self.block_header | {HeaderKey.SCHEMA: part.settings.log_avro_schema}
        return header | {HeaderKey.IS_PARTIAL: "true"} if part.settings.partial else header

    def position_header(self, encoded: str) -> dict[HeaderKey, str]:
        """Return the headers of a block whose records have positions, which are those of its base file."""
        base = self.file_slice.base
        assert base is not None, "positions were looked up in a base file"
        return {
            HeaderKey.RECORD_POSITIONS: encoded,
            HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS: base.instant,
        }


@dataclass(frozen=True, slots=True)
class LogPart:
    """Records with the same columns.

    Attributes:
        settings: of the write; they tell which columns the records have.
        batches: the records with meta columns.
        inserts: number of new records among them; None if it is not known.
        positions: their positions in the base file of the slice; None if any is not known.
    """

    settings: FileSettings
    batches: list[pa.RecordBatch]
    inserts: int | None = None
    positions: Array | None = None

    @property
    def rows(self) -> int:
        """Number of records."""
        return sum(batch.num_rows for batch in self.batches)


@dataclass(frozen=True, slots=True)
class LogContent:
    """Records and deletes of one file group, no key in both.

    Attributes:
        parts: the records, those with some of the columns first; without empty parts.
        record_keys: their record keys.
        delete_keys: keys of deleted records.
        delete_ordering: ordering columns of the deletes; None if they win over all earlier versions.
        delete_positions: positions of the deleted records in the base file; None if any is not known.
    """

    parts: tuple[LogPart, ...]
    record_keys: pa.Array
    delete_keys: pa.Array
    delete_ordering: Sequence[pa.Array] | None = None
    delete_positions: Array | None = None


def row_summaries(settings: FileSettings) -> RowSummaries | None:
    """Return what makes the summaries of records for a log file; None if it gets no statistics."""
    if settings.partial or not settings.summarized:
        return None
    return RowSummaries(settings.summarized, settings.log_schema)


def first_version(target: LogTarget) -> tuple[str, int, str]:
    """Return the instant, the version and the write token in the name of the next log file of a slice.

    A name without the instant of the write gets its time of day (HHmmssSSS) as the stage of the write token:
    a writer that stalled, and resumes after others went on, must not overwrite a log file of theirs.
    """
    settings, file_slice = target.settings, target.file_slice
    if not settings.config.rules.names_logs_by_slice and not settings.logs_named_by:
        return settings.instant, 1, target.write_token
    instant = settings.logs_named_by or file_slice.base_instant
    version = max((log.version for log in file_slice.logs if log.instant == instant), default=0) + 1
    task, _, attempt = target.write_token.split("-")
    return instant, version, f"{task}-{int(settings.instant[-9:])}-{attempt}"


def log_name(target: LogTarget, kind: NativeLog = NativeLog.DATA, later: int = 0) -> tuple[str, int]:
    """Return the name of the next log file of a slice, and its version.

    Args:
        target: where it is written.
        kind: what it holds, if it is a native one.
        later: by how much its version is greater than that of the first file of the write.
    """
    instant, first, token = first_version(target)
    file_id, version = target.file_slice.file_id, first + later
    if target.settings.config.rules.log_format is LogFormat.NATIVE:
        extension = target.settings.config.base_extension
        return LogFile.native_name_of(file_id, instant, version, token, kind, extension), version
    return LogFile.name_of(file_id, instant, version, token), version


def log_stat(target: LogTarget, name: str, version: int, earlier: Sequence[str] = ()) -> WriteStat:
    """Return the statistics of a new log file, without numbers of records, size and duration.

    Args:
        target: where it is written.
        name: name of the file.
        version: log version in the name.
        earlier: names of files that the same write added to the slice before.
    """
    file_slice = target.file_slice
    stat = WriteStat(
        partition=file_slice.partition,
        file_id=file_slice.file_id,
        path=join_path(file_slice.partition, name),
        prev_commit=file_slice.base_instant,
        base_file=file_slice.base.status.name if file_slice.base else "",
        log_version=version,
        log_files=(*(log.status.name for log in file_slice.logs), *earlier, name),
    )
    if not target.settings.logs_named_by:
        return stat
    # Marks a copy of a dual write: `filegroups.view.missing_files`.
    return replace(stat, prev_commit=target.settings.instant)


def with_records(stat: WriteStat, records: int, inserts: int | None) -> WriteStat:
    """Return the statistics of a log file with the number of its records, and of new ones if it is known."""
    new = inserts or 0
    return replace(stat, num_writes=records, num_inserts=new, num_updates=records - new)


def log_content(target: LogTarget, changes: Changes, meta_columns: MetaColumnWriter) -> LogContent:
    """Return changes as they are stored: sorted by position in the base file if inline blocks have that.

    With an index or sorted log files they are sorted by key, and have no positions.

    Args:
        target: where they are written.
        changes: one record or delete per key.
        meta_columns: writes the meta columns.
    """
    settings, file_id = target.settings, target.file_slice.file_id
    is_sorted = settings.config.has_sorted_files
    changes = _by_position(changes) if _sorts_by_position(settings) else changes
    records = changes.records
    if is_sorted or settings.clique_files:
        records = records.sort_by(RECORD_KEY)
    parts = tuple(
        LogPart(
            part,
            [meta_columns.apply(each, file_id).select(part.log_schema.names) for each in rows.to_batches()],
            inserts_among(rows, all_new=target.begins_group),
            known_positions(rows.column(POSITION)) if POSITION in rows.column_names else None,
        )
        for part, rows in _parts(settings, records)
        if rows.num_rows
    )
    keys = combined_chunks(records.column(RECORD_KEY)).cast(pa.string())
    gone: pa.Array = changes.delete_keys
    ordering: Sequence[pa.Array] | None = changes.delete_ordering
    if is_sorted:
        gone, ordering = sorted_deletes(gone, ordering)
    positions = None if changes.delete_positions is None else known_positions(changes.delete_positions)
    return LogContent(parts, keys, gone, ordering, positions)


def _sorts_by_position(settings: FileSettings) -> bool:
    """Return whether records are stored in the order of their positions: a bitmap tells no other."""
    return settings.finds_positions and settings.config.rules.log_format is LogFormat.INLINE


def _by_position(changes: Changes) -> Changes:
    """Return changes in the order of their positions, those without one last."""
    records, ordering, positions = changes.records, changes.delete_ordering, changes.delete_positions
    if POSITION in records.column_names:
        records = records.sort_by(POSITION)
    if positions is None:
        return replace(changes, records=records)
    order = pc.sort_indices(positions)
    return Changes(
        records,
        changes.delete_keys.take(order),
        None if ordering is None else [column.take(order) for column in ordering],
        positions.take(order),
    )


def _parts(settings: FileSettings, records: pa.Table) -> list[tuple[FileSettings, pa.Table]]:
    """Return the records of each part: partial updates with only their columns, new records with all."""
    if not settings.partial or ACTION not in records.column_names:
        return [(settings, records)]
    is_new = pc.equal(records.column(ACTION), RowAction.INSERT)
    whole = replace(settings, partial=())
    return [(settings, records.filter(pc.invert(is_new))), (whole, records.filter(is_new))]


@dataclass(frozen=True, slots=True)
class _Counts:
    """Bytes and records of a part of a file, or of all of it."""

    size_bytes: int = 0
    records: int = 0
    deletes: int = 0
    inserts: int | None = None

    def plus(self, other: _Counts) -> _Counts:
        known = [each.inserts for each in (self, other) if each.inserts is not None]
        return _Counts(
            self.size_bytes + other.size_bytes,
            self.records + other.records,
            self.deletes + other.deletes,
            sum(known) if known else None,
        )


def write_inline_log(target: LogTarget, pieces: Iterator[LogContent]) -> list[WriteStat]:
    """Write an inline log file.

    Args:
        target: where it is written.
        pieces: its records and deletes, in one or several pieces.

    Returns:
        The statistics of the file.
    """
    watch = Stopwatch()
    name, version = log_name(target)
    path = join_path(target.file_slice.partition, name)
    io_type = target.settings.config.rules.log_marker
    markers = target.settings.markers(target.storage)
    markers.create(path, io_type)
    summaries = row_summaries(target.settings)
    parts = (_part(target, *each) for each in _with_key_index(target, _summarized(pieces, summaries), name))
    counts = _write_parts(target.storage, path, parts)
    markers.confirm(path, io_type, may_be_planned=lambda: _compaction_may_include(target))
    stat = with_records(log_stat(target, name, version), counts.records, counts.inserts)
    held = None if summaries is None else WriterFacts(summaries.finished())
    stat = replace(stat, num_deletes=counts.deletes, size_bytes=counts.size_bytes, held=held)
    return [replace(stat, seconds=watch.seconds())]


def _summarized(pieces: Iterator[LogContent], summaries: RowSummaries | None) -> Iterator[LogContent]:
    """Yield the pieces, and tell their records to summaries."""
    for each in pieces:
        if summaries is not None:
            for part in each.parts:
                summaries.add(part.batches)
        yield each


def _compaction_may_include(target: LogTarget) -> bool:
    """Return whether a compaction may need a log file of a write that others rolled back.

    In version 6 a rolled back log file stays, beside a command block, and a plan may include it.
    """
    config = target.settings.config
    if not target.may_be_planned or not config.rules.names_logs_by_slice:
        return False
    listed = target.storage.list_files(config.timeline_folder)
    return target.settings.instant in noted_in(status.name for status in listed)


def _write_parts(storage: Storage, path: str, parts: Iterator[tuple[bytes, _Counts]]) -> _Counts:
    """Write a file: a single part at once, several parts as a stream."""
    first = next(parts)
    second = next(parts, None)
    if second is None:
        storage.put(path, first[0])
        return first[1]
    total = _Counts()
    with disk_errors(TABLE_DISK, path), storage.create(path) as file:
        for content, counts in chain((first, second), parts):
            file.write(content)
            total = total.plus(counts)
    return total


def _part(target: LogTarget, content: LogContent, entries: Mapping[str, str] | None) -> tuple[bytes, _Counts]:
    data = b"".join(_blocks(target, content, entries))
    known = [part.inserts for part in content.parts if part.inserts is not None]
    records = sum(part.rows for part in content.parts)
    return data, _Counts(len(data), records, len(content.delete_keys), sum(known) if known else None)


def _with_key_index(
    target: LogTarget, pieces: Iterator[LogContent], name: str
) -> Iterator[tuple[LogContent, Mapping[str, str] | None]]:
    """Yield the pieces; the last one with the index for the footer, if log files carry one."""
    settings = target.settings
    if not settings.clique_files:
        yield from ((each, None) for each in pieces)
        return
    keys = LogKeys()
    waiting: LogContent | None = None
    for each in pieces:
        if waiting is not None:
            yield waiting, None
        keys.add(each.record_keys)
        keys.add(each.delete_keys)
        waiting = each
    if waiting is not None:
        logs = target.file_slice.logs
        index = next_index(target.storage, logs, name, keys.summary(), settings.clique_files)
        yield waiting, encode_log_index(index)


def _blocks(target: LogTarget, content: LogContent, entries: Mapping[str, str] | None) -> list[bytes]:
    """Return the encoded blocks of a piece.

    With an index, the file ends in a Parquet block, whose footer holds the index. In a log compaction deletes
    come first, since a record of the same key came after its delete; else no key is in both.
    """
    settings, parts = target.settings, list(content.parts)
    deletes = []
    if len(content.delete_keys):
        ordering = _ordering_values(content.delete_ordering)
        encoded = encode_deletes(content.delete_keys, target.file_slice.partition, ordering)
        header = _positioned(target, target.block_header, content.delete_positions)
        deletes.append(encode_block(BlockType.DELETE, header, encoded))
    if entries is None:
        records = [_data_block(target, part) for part in parts]
        is_compaction = HeaderKey.COMPACTED_BLOCK_TIMES in target.header
        return [*deletes, *records] if is_compaction else [*records, *deletes]
    last = LogPart(settings, [])
    if parts and settings.log_format != "avro":
        last = parts.pop()
    blocks = [_data_block(target, part) for part in parts]
    return [*deletes, *blocks, _parquet_block(last.settings, target.data_header(last), last.batches, entries)]


def _positioned(
    target: LogTarget, header: dict[HeaderKey, str], positions: Array | None
) -> dict[HeaderKey, str]:
    """Add the positions of records to the headers of a block; they ascend."""
    return header if positions is None else header | target.position_header(encode_bitmap(positions))


def _ordering_values(columns: Sequence[pa.Array] | None) -> pa.Array | None:
    """Return the ordering values as one column, a struct if there are several columns."""
    if columns is None or len(columns) == 1:
        return columns[0] if columns else None
    return pa.StructArray.from_arrays(columns, names=[str(number) for number in range(len(columns))])


def _data_block(target: LogTarget, part: LogPart) -> bytes:
    """Encode records as a data block, in the format of the settings."""
    settings, header = part.settings, _positioned(target, target.data_header(part), part.positions)
    if settings.log_format != "avro":
        return _parquet_block(settings, header, part.batches)
    table = conform_table(pa.Table.from_batches(part.batches), settings.log_schema).combine_chunks()
    content = encode_datums(table.to_batches()[0], settings.log_avro_schema)
    return encode_block(BlockType.AVRO_DATA, header, content)


def _parquet_block(
    settings: FileSettings,
    header: Mapping[HeaderKey, str],
    batches: list[pa.RecordBatch],
    entries: Mapping[str, str] | None = None,
) -> bytes:
    schema = settings.log_schema
    content = encode_parquet_block(
        batches,
        schema,
        settings.log_avro_schema,
        settings.compression,
        entries,
        shared=settings.log_encodings(schema),
    )
    return encode_block(BlockType.PARQUET_DATA, header, content)


_TYPES: Final = {NativeLog.DATA: BlockType.PARQUET_DATA, NativeLog.DELETES: BlockType.DELETE}


def write_native_logs(target: LogTarget, pieces: Iterator[LogContent]) -> list[WriteStat]:
    """Write the native log files of a file group.

    Args:
        target: where they are written.
        pieces: their records and deletes, in one or several pieces.

    Returns:
        The statistics of each file, those of deletes last.
    """
    files = _NativeLogs(target)
    try:
        for each in pieces:
            if target.settings.config.has_sorted_files and not files.continues_with(each):
                files.close()
            files.add(each)
        return files.close()
    except BaseException:
        files.abort()
        raise


class _NativeLogs:
    """The log files that a write adds to a slice, in the order of their names."""

    def __init__(self, target: LogTarget) -> None:
        self._target = target
        self._data: dict[tuple[str, ...], _OpenLog] = {}
        self._deletes: _OpenLog | None = None
        self._done: list[WriteStat] = []
        self._log_count = 0
        # A log compaction may have a record and a delete before it: deletes get the lower version.
        self._before_data = int(HeaderKey.COMPACTED_BLOCK_TIMES in target.header)
        self._last_key: pa.Scalar | None = None
        settings = target.settings
        fields = ordering_fields(settings.config)
        self._delete_log = deletes_schema(settings.full_schema, settings.avro_schema, fields)

    def continues_with(self, content: LogContent) -> bool:
        """Return whether all keys of a sorted piece come after those of the pieces before."""
        firsts = [keys[0] for keys in (content.record_keys, content.delete_keys) if len(keys)]
        lasts = [keys[-1] for keys in (content.record_keys, content.delete_keys) if len(keys)]
        last, self._last_key = self._last_key, _greatest([*lasts, self._last_key])
        return last is None or all(pc.less(last, each).as_py() for each in firsts)

    def add(self, content: LogContent) -> None:
        """Write a piece."""
        for part in content.parts:
            self._file_of(part).add_records(part)
        if len(content.delete_keys):
            if self._deletes is None:
                form = _deletes_of(self._target, self._delete_log, self._log_count)
                self._deletes = _OpenLog(self._target, form)
            rows = self._delete_log.rows(content.delete_keys, content.delete_ordering)
            self._deletes.add_deletes(rows, content.delete_positions)

    def close(self) -> list[WriteStat]:
        """Finish the files, and return the statistics of all that the write made."""
        for each in self._files():
            self._done.append(each.close(self._done))
        self._log_count += max(len(self._data) + self._before_data, 1 if self._deletes else 0)
        self._data, self._deletes = {}, None
        return self._done

    def abort(self) -> None:
        """Discard the files."""
        for each in self._files():
            each.abort()

    def _files(self) -> list[_OpenLog]:
        return [*self._data.values(), *([self._deletes] if self._deletes else [])]

    def _file_of(self, part: LogPart) -> _OpenLog:
        columns = part.settings.partial
        if columns not in self._data:
            later = self._log_count + self._before_data + len(self._data)
            self._data[columns] = _OpenLog(self._target, _records_of(self._target, part, later))
        return self._data[columns]


@dataclass(frozen=True, slots=True)
class _LogFileSpec:
    """What a native log file is to look like.

    Attributes:
        kind: what it holds.
        schema, avro_schema: its columns.
        header: headers of the block that it is.
        later: by how much its version is greater than that of the first file of the write.
    """

    kind: NativeLog
    schema: pa.Schema
    avro_schema: str
    header: Mapping[HeaderKey, str]
    later: int = 0


def _records_of(target: LogTarget, part: LogPart, later: int) -> _LogFileSpec:
    settings, header = part.settings, target.data_header(part)
    return _LogFileSpec(NativeLog.DATA, settings.log_schema, settings.log_avro_schema, header, later)


def _deletes_of(target: LogTarget, form: DeleteLog, later: int) -> _LogFileSpec:
    return _LogFileSpec(NativeLog.DELETES, form.schema, form.avro_schema, target.block_header, later)


def _greatest(keys: Sequence[pa.Scalar | None]) -> pa.Scalar | None:
    return pc.max(pa.array([None if each is None else each.as_py() for each in keys], pa.string()))


class _Positions:
    """The positions of the records of a file, as long as all are known and a footer has room for them."""

    def __init__(self) -> None:
        self._parts: list[Array] | None = []
        self._count = 0

    def add(self, positions: Array | None) -> None:
        """Add those of the next records; None if any is not known."""
        self._count += 0 if positions is None else len(positions)
        if positions is None or self._count > limits.in_force.positions_max:
            self._parts = None
        if self._parts is not None and positions is not None:
            self._parts.append(positions)

    def encoded(self) -> str | None:
        """Return the entry of the footer; None if there is none."""
        return encode_list(np.concatenate(self._parts)) if self._parts else None


class _OpenLog:
    """A native log file that is being written; its marker precedes it."""

    def __init__(self, target: LogTarget, form: _LogFileSpec) -> None:
        self._watch = Stopwatch()
        self._target = target
        self._form = form
        settings, group = target.settings, target.file_slice
        self._name, self._version = log_name(target, form.kind, form.later)
        self._path = join_path(group.partition, self._name)
        self._rows = 0
        self._inserts: int | None = None
        self._keys = LogKeys()
        self._positions = _Positions()
        self._order = KeyOrder(self._path, once=True) if settings.config.has_sorted_files else None
        is_data = form.kind is NativeLog.DATA
        self._summaries = row_summaries(settings) if is_data else None
        self._io_type = settings.config.rules.log_marker
        self._markers = settings.markers(target.storage)
        self._markers.create(self._path, self._io_type)
        bloom = 0.0 if settings.clique_files else settings.key_filter
        file_form = FileSpec(
            form.schema, form.avro_schema, settings.compression, bloom, settings.log_row_groups
        )
        self._sink = open_sink(target.storage, self._path, file_form)
        self._sink.share(settings.log_encodings(form.schema))

    def add_records(self, part: LogPart) -> None:
        """Append records with their meta columns."""
        for batch in part.batches:
            self._write(batch)
        self._positions.add(part.positions)
        if self._summaries is not None:
            self._summaries.add(part.batches)
        if part.inserts is not None:
            self._inserts = (self._inserts or 0) + part.inserts

    def add_deletes(self, rows: pa.RecordBatch, positions: Array | None) -> None:
        """Append deletes, at positions if all are known."""
        self._write(rows)
        self._positions.add(positions)

    def _write(self, batch: pa.RecordBatch) -> None:
        if self._order is not None:
            self._order.check(batch)
        self._sink.write(batch)
        self._rows += batch.num_rows
        if self._target.settings.clique_files:
            self._keys.add(batch.column(RECORD_KEY).cast(pa.string()))

    def close(self, earlier: Sequence[WriteStat]) -> WriteStat:
        """Finish the file.

        Args:
            earlier: statistics of the files that the write finished before.

        Raises:
            ConflictError: the write ended meanwhile; the file was deleted.
        """
        form, target = self._form, self._target
        positions = self._positions.encoded()
        header = {**form.header, **({} if positions is None else target.position_header(positions))}
        footer = encode_footer(_TYPES[form.kind], header) | schema_entry(self._path, form.avro_schema)
        self._sink.add_entries(footer | self._index(earlier))
        size_bytes = self._sink.close()
        self._markers.confirm(self._path, self._io_type)
        names = [each.path.rpartition("/")[2] for each in earlier]
        stat = log_stat(target, self._name, self._version, names)
        if form.kind is NativeLog.DELETES:
            stat = replace(stat, num_deletes=self._rows)
        else:
            stat = with_records(stat, self._rows, self._inserts)
        held = None if self._summaries is None else WriterFacts(self._summaries.finished())
        return replace(stat, size_bytes=size_bytes, seconds=self._watch.seconds(), held=held)

    def _index(self, earlier: Sequence[WriteStat]) -> dict[str, str]:
        """Return the footer entries of the index in the log files, if they carry one."""
        target, files = self._target, self._target.settings.clique_files
        if not files:
            return {}
        written = (LogFile.parse(FileStatus(each.path, each.size_bytes)) for each in earlier)
        logs = (*target.file_slice.logs, *(each for each in written if each is not None))
        return encode_log_index(next_index(target.storage, logs, self._name, self._keys.summary(), files))

    def abort(self) -> None:
        """Discard the file."""
        self._sink.abort()


LOG_WRITERS: Final[Mapping[LogFormat, Callable[[LogTarget, Iterator[LogContent]], list[WriteStat]]]] = {
    LogFormat.INLINE: write_inline_log,
    LogFormat.NATIVE: write_native_logs,
}
"""Each writes one or several pieces as new log files, and returns the statistics of each file."""
