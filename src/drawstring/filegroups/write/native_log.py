"""Writer of native log files: records in a file, deletes in another one, in the format of base files.

    <version>.log.parquet       the records; partial updates apart from new records, in files of two versions
    <version>.deletes.parquet   the deletes

A file begins with the first row for it and gets those of all pieces of the write. Its footer has the headers
of a block, and the key summary that base files have, so that readers can skip the file by record keys.

In the storage layout `lsm_tree` files are sorted: a piece that begins before the end of the last one goes to
files of further versions. Pieces of one write follow each other (`write.placement.key_ranges`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.clock import Stopwatch
from drawstring.filegroups.write.cliques import next_index
from drawstring.filegroups.write.key_order import KeyOrder
from drawstring.filegroups.write.log_content import (
    LogContent,
    LogPart,
    LogTarget,
    log_name,
    log_stat,
    row_summaries,
    with_records,
)
from drawstring.formats.file_sinks import FileForm, open_sink, schema_entry
from drawstring.formats.log_index import LogKeys, encode_log_index
from drawstring.formats.log_inline import BlockType, HeaderKey
from drawstring.formats.log_native import DeleteLog, deletes_schema, encode_footer
from drawstring.formats.record_positions import encode_list
from drawstring.merge.order import Array
from drawstring.merge.versions import ordering_fields
from drawstring.model.commit import Held, WriteStat
from drawstring.model.files import FileStatus, LogFile, NativeLog, join_path
from drawstring.schema.meta import RECORD_KEY

_POSITIONS_MAX: Final = 1 << 20
"""Records of a file up to which its footer has their positions, a few bytes each: every reader decodes it."""

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
        self._later = 0
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
                form = _deletes_of(self._target, self._delete_log, self._later)
                self._deletes = _OpenLog(self._target, form)
            rows = self._delete_log.rows(content.delete_keys, content.delete_ordering)
            self._deletes.add_deletes(rows, content.delete_positions)

    def close(self) -> list[WriteStat]:
        """Finish the files, and return the statistics of all that the write made."""
        for each in self._files():
            self._done.append(each.close(self._done))
        self._later += max(len(self._data) + self._before_data, 1 if self._deletes else 0)
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
            later = self._later + self._before_data + len(self._data)
            self._data[columns] = _OpenLog(self._target, _records_of(self._target, part, later))
        return self._data[columns]


@dataclass(frozen=True, slots=True)
class _LogForm:
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


def _records_of(target: LogTarget, part: LogPart, later: int) -> _LogForm:
    settings, header = part.settings, target.data_header(part)
    return _LogForm(NativeLog.DATA, settings.log_schema, settings.log_avro_schema, header, later)


def _deletes_of(target: LogTarget, form: DeleteLog, later: int) -> _LogForm:
    return _LogForm(NativeLog.DELETES, form.schema, form.avro_schema, target.block_header, later)


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
        if positions is None or self._count > _POSITIONS_MAX:
            self._parts = None
        if self._parts is not None and positions is not None:
            self._parts.append(positions)

    def encoded(self) -> str | None:
        """Return the entry of the footer; None if there is none."""
        return encode_list(np.concatenate(self._parts)) if self._parts else None


class _OpenLog:
    """A native log file that is being written; its marker precedes it."""

    def __init__(self, target: LogTarget, form: _LogForm) -> None:
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
        file_form = FileForm(
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
        held = None if self._summaries is None else Held(self._summaries.finished())
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
