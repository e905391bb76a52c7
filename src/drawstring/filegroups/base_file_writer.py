"""Write base files: one file, or a stream of rows into new file groups of limited size.

`BaseFileWriter` writes one file: first the marker, then the rows; it returns the write statistics.
`NewFileGroupWriter` starts another file group at the size limit. The driver makes one picklable
`FileSettings` for all tasks of a write.

Meta columns: commit time, sequence number, key, partition, file, and generated keys. Sequence numbers such as
`20250101000000000_0_17` are built without formatting every number:

    head, the same for ten thousand rows    20250101000000000_0_12
    the last four digits                                          3456

Tables with virtual keys store null meta columns; `with_record_keys` takes record keys from the key columns.
"""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base import limits
from drawstring.base.clock import Ids, Stopwatch
from drawstring.base.resources import (
    SORTED_LOG_GROUP_BYTES,
    SORTED_ROW_GROUP_BYTES,
    SORTED_ROW_GROUP_ROWS,
    VALUE_BYTES,
)
from drawstring.base.text_format import DIGITS
from drawstring.config.table.properties import decode_properties
from drawstring.config.table_config import TableConfig
from drawstring.filegroups.log_scanner import record_keys
from drawstring.filegroups.sorted_merge import KeyOrder
from drawstring.filegroups.write.markers import MarkerDirState, Markers
from drawstring.formats.bloom_footer import KeySummary, fill_together
from drawstring.formats.data_file import FileSink, open_sink
from drawstring.formats.file_format import BaseFooter, FileSpec, format_of
from drawstring.formats.parquet import RowGroups, SharedEncodings
from drawstring.formats.parquet.row_group_copy import PatchedSink
from drawstring.model.commit import WriterFacts, WriteStat
from drawstring.model.files import (
    PARTITION_METADATA,
    BaseFile,
    FileSlice,
    TaskContext,
    join_path,
    random_file_id,
)
from drawstring.schema.fields import FILE_NAME, META_COLUMNS, PARTITION_PATH, RECORD_KEY, with_meta
from drawstring.storage.protocol import Storage, StorageSpec

_RUN_NUMBERS: Final = 10_000
_BORDERS: Final = (0, 10, 100, 1_000, _RUN_NUMBERS)


def counted_texts(prefix: str, start: int, rows: int) -> pa.Array:
    """Return `prefix` followed by `start`, `start + 1` and so on.

    Args:
        prefix: prefix of each text.
        start: first number, not negative.
        rows: number of texts.
    """
    cuts = list(_cuts(start, start + rows))
    runs = [_Run.of(prefix, first, last) for first, last in itertools.pairwise(cuts)]
    offsets = pa.allocate_buffer(4 * (rows + 1))
    texts = pa.allocate_buffer(sum(run.width * len(run.tails) for run in runs))
    ends = np.frombuffer(offsets, np.int32)
    ends[0] = row = end = 0
    for run in runs:
        count = len(run.tails)
        run.write(np.frombuffer(texts, run.layout, count, end))
        ends[row + 1 : row + count + 1] = np.arange(1, count + 1, dtype=np.int32) * run.width + end
        row, end = row + count, end + count * run.width
    return pa.StringArray.from_buffers(rows, offsets, texts)


@dataclass(frozen=True, slots=True)
class _Run:
    """Texts with the same head and the same length."""

    head: bytes
    tails: np.ndarray[tuple[int], np.dtype[np.void]]

    @staticmethod
    def of(prefix: str, first: int, last: int) -> _Run:
        thousands, number = divmod(first, _RUN_NUMBERS)
        digits = DIGITS[-1 if thousands else len(str(number)) - 1]
        head = f"{prefix}{thousands}" if thousands else prefix
        return _Run(head.encode(), digits[number : number + last - first])

    @property
    def layout(self) -> np.dtype[np.void]:
        return np.dtype([("head", f"V{len(self.head)}"), ("tail", self.tails.dtype)])

    @property
    def width(self) -> int:
        return len(self.head) + self.tails.itemsize

    def write(self, place: np.ndarray[tuple[int], np.dtype[np.void]]) -> None:
        place["head"] = np.void(self.head)
        place["tail"] = self.tails


def _cuts(start: int, end: int) -> Iterator[int]:
    """Yield the boundaries of the runs whose texts have the same head and the same length."""
    yield start
    while start < end:
        border = next((each for each in _BORDERS if each > start), (start // _RUN_NUMBERS + 1) * _RUN_NUMBERS)
        start = min(border, end)
        yield start


def with_generated_keys(
    batches: Iterator[pa.RecordBatch], instant: str, task: int
) -> Iterator[pa.RecordBatch]:
    """Yield prepared rows of a table without key columns with keys `<instant>_<task>_<counter>`.

    Args:
        batches: prepared rows of one task; rows with a non-empty key keep it.
        instant: requested time of the write.
        task: number of the task, which makes its keys distinct from those of other tasks.
    """
    prefix, made = f"{instant}_{task}_", 0
    for batch in batches:
        keys = batch.column(RECORD_KEY)
        is_missing = pc.equal(keys, "")
        if pc.any(is_missing).as_py():
            keys = pc.if_else(is_missing, counted_texts(prefix, made, batch.num_rows), keys)
            made += batch.num_rows
        yield batch.set_column(batch.schema.get_field_index(RECORD_KEY), RECORD_KEY, keys)


class MetaColumnWriter:
    """Adds the meta columns to the rows of one task, on one thread or several.

    The sequence number is `<instant>_<task>_<counter>`; the counter spans the whole task.

    Args:
        instant: requested time of the write.
        task: number of the task.
        schema: the table's columns with meta columns.
        is_populated: whether meta columns have values (`hoodie.populate.meta.fields`).
    """

    def __init__(self, instant: str, task: int, schema: pa.Schema, is_populated: bool = True) -> None:
        self._is_populated = is_populated
        self._instant = instant
        self._prefix = f"{instant}_{task}_"
        self._names = schema.names[len(META_COLUMNS) :]
        self._schema = schema
        self._next = 0
        self._counting = threading.Lock()

    def apply(self, batch: pa.RecordBatch, file_name: str) -> pa.RecordBatch:
        """Return the rows as they are stored in a file.

        Args:
            batch: prepared rows: the table's columns, record key and partition path.
            file_name: name of the base file, or the file id for log files.
        """
        rows = batch.num_rows
        own = [batch.column(name) for name in self._names]
        if not self._is_populated:
            nothing = [pa.nulls(rows, pa.string())] * len(META_COLUMNS)
            return pa.RecordBatch.from_arrays([*nothing, *own], names=self._schema.names)
        columns = [
            constant_column(self._instant, rows),
            self._sequence(rows),
            batch.column(RECORD_KEY),
            dictionary_encoded(batch.column(PARTITION_PATH)),
            constant_column(file_name, rows),
            *own,
        ]
        return pa.RecordBatch.from_arrays(columns, names=self._schema.names)

    def _sequence(self, rows: int) -> pa.Array:
        with self._counting:
            start, self._next = self._next, self._next + rows
        return counted_texts(self._prefix, start, rows)


def constant_column(value: str, rows: int) -> pa.Array:
    """Return a dictionary-encoded text column with a single value, which is cheap to write."""
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, dtype=np.int32)), pa.array([value]))


def dictionary_encoded(column: pa.Array) -> pa.Array:
    """Return a column dictionary-encoded."""
    return column if pa.types.is_dictionary(column.type) else pc.dictionary_encode(column)


def with_file_name(batch: pa.RecordBatch, file_name: str) -> pa.RecordBatch:
    """Return rows of another file with the file name of their new file."""
    position = batch.schema.get_field_index(FILE_NAME)
    return batch.set_column(position, FILE_NAME, constant_column(file_name, batch.num_rows))


def with_record_keys(batch: pa.RecordBatch, config: TableConfig) -> pa.RecordBatch:
    """Return stored rows with record keys, for merging.

    Args:
        batch: rows of a file.
        config: the table.
    """
    if config.populate_meta_fields:
        return batch
    return _with(batch, RECORD_KEY, record_keys(batch, config))


def as_stored(batch: pa.RecordBatch, file_name: str, config: TableConfig) -> pa.RecordBatch:
    """Return rows of another file as they are stored in their new file.

    Args:
        batch: the rows.
        file_name: name of the new file.
        config: the table.
    """
    if config.populate_meta_fields:
        return with_file_name(batch, file_name)
    nothing = pa.nulls(batch.num_rows, pa.string())
    return _with(_with(batch, RECORD_KEY, nothing), FILE_NAME, nothing)


def _with(batch: pa.RecordBatch, name: str, values: pa.Array) -> pa.RecordBatch:
    return batch.set_column(batch.schema.get_field_index(name), name, values)


_LOG_GROUP_ROWS_MIN: Final = 1_024


@dataclass(frozen=True, slots=True)
class FileSettings:
    """Settings with which one instant writes its data files.

    Attributes:
        storage: opens the table in a worker.
        config: the table.
        instant: requested time of the write.
        schema: the table's columns without meta columns.
        avro_schema: Avro text of the columns with meta columns.
        compression: Parquet codec.
        bloom: rate of false positives of the bloom filters of base files, 0 for none.
        base_file_bytes_max: size in bytes at which a new base file is started.
        log_format: format of data blocks, `parquet` or `avro`.
        clique_files: maximum number of log files in a clique; 0 if log files carry no index.
        partial: the only columns, besides meta columns, that log blocks hold; empty for all.
        logs_named_by: instant of the pending bucket resizing that names the log files; None for none.
        finds_positions: whether log blocks get the positions of their records in the base file.
        summarized: columns of which the writers of files note bounds and counts.
        marker_state: of the folder of markers, which all tasks in this process share.
    """

    storage: StorageSpec
    config: TableConfig
    instant: str
    schema: pa.Schema
    avro_schema: str
    compression: str
    bloom: float
    base_file_bytes_max: int
    log_format: str
    clique_files: int = 0
    partial: tuple[str, ...] = ()
    logs_named_by: str | None = None
    finds_positions: bool = False
    summarized: tuple[str, ...] = ()
    marker_state: MarkerDirState = field(default_factory=MarkerDirState, compare=False, repr=False)

    def markers(self, storage: Storage) -> Markers:
        """Return the markers of the files that are written, which precede the files."""
        return Markers(storage, self.instant, self.marker_state)

    @property
    def key_filter(self) -> float:
        """Rate of false positives of the bloom filters, 0 if files have none: there are none without keys."""
        return self.bloom if self.config.populate_meta_fields else 0.0

    @property
    def row_groups(self) -> RowGroups:
        """How large the row groups of a base file get."""
        if not self.config.has_sorted_files:
            return RowGroups()
        return RowGroups(SORTED_ROW_GROUP_ROWS, SORTED_ROW_GROUP_BYTES)

    @property
    def encodings(self) -> SharedEncodings:
        """What the base files that this process writes have in common."""
        return _encodings(self.storage.uri, self.instant, self.schema)

    def log_encodings(self, schema: pa.Schema) -> SharedEncodings:
        """Return what the log files or blocks with some columns have in common, those of later writes too."""
        return _log_encodings(self.storage.uri, schema)

    @property
    def log_row_groups(self) -> RowGroups:
        """How large the row groups of a native log file get."""
        if not self.config.has_sorted_files:
            return RowGroups()
        rows = SORTED_LOG_GROUP_BYTES // (VALUE_BYTES * len(self.full_schema))
        rows = max(_LOG_GROUP_ROWS_MIN, min(SORTED_ROW_GROUP_ROWS, rows))
        return RowGroups(rows, SORTED_LOG_GROUP_BYTES)

    @property
    def full_schema(self) -> pa.Schema:
        """Meta columns followed by the columns of the table."""
        return with_meta(self.schema)

    @property
    def log_schema(self) -> pa.Schema:
        """The columns of log blocks."""
        if not self.partial:
            return self.full_schema
        return with_meta(pa.schema([field for field in self.schema if field.name in self.partial]))

    @property
    def log_avro_schema(self) -> str:
        """Avro text of the columns of log blocks."""
        if not self.partial:
            return self.avro_schema
        names = set(self.log_schema.names)
        record = json.loads(self.avro_schema)
        return json.dumps({**record, "fields": [each for each in record["fields"] if each["name"] in names]})

    def meta_column_writer(self, task: int) -> MetaColumnWriter:
        """Return the writer of the meta columns for a task."""
        return MetaColumnWriter(self.instant, task, self.full_schema, self.config.populate_meta_fields)


_ENCODINGS_CACHED: Final = 8
_LOG_ENCODINGS_CACHED: Final = 64
_FILES_PER_CHOICE: Final = 16
"""Log files or blocks after which their rows are looked at again."""


@lru_cache(maxsize=_ENCODINGS_CACHED)
def _encodings(uri: str, instant: str, schema: pa.Schema) -> SharedEncodings:
    return SharedEncodings()


@lru_cache(maxsize=_LOG_ENCODINGS_CACHED)
def _log_encodings(uri: str, schema: pa.Schema) -> SharedEncodings:
    return SharedEncodings(_FILES_PER_CHOICE)


def check_installed(config: TableConfig) -> None:
    """Check that what writes the files of a table is installed, before the table is changed.

    Raises:
        InvalidError: it is not.
    """
    file_format = format_of(config.base_extension)
    if file_format is not None:
        file_format.check_installed()


_NEW_FILE: Final = "CREATE"
"""Type of the marker of a base file that follows none."""


class BaseFileWriter:
    """Writes one base file: creates the marker first and returns the statistics last.

    Args:
        settings: settings of the write.
        storage: storage of the table.
        partition: partition path.
        file_id: the file group.
        write_token: write token of the task attempt.
        previous: the slice that the file supersedes; None for a new file group.
        former: footer of the previous base file if the new bloom filter extends the one in it; `write` then
            receives which rows have keys of that file.
    """

    def __init__(
        self,
        settings: FileSettings,
        storage: Storage,
        partition: str,
        file_id: str,
        write_token: str,
        previous: FileSlice | None = None,
        *,
        former: BaseFooter | None = None,
    ) -> None:
        self._watch = Stopwatch()
        self._previous = previous
        self._partition = partition
        self._file_id = file_id
        self.name = base_name(settings, file_id, write_token)
        self.path = join_path(partition, self.name)
        self.rows = 0
        is_new = previous is None or previous.base is None
        self._order = KeyOrder(self.path, once=is_new) if settings.config.has_sorted_files else None
        # All keys of a new file are new: they are read from it.
        notes = former is not None and settings.config.populate_meta_fields
        self._new_keys: list[pa.Array] | None = [] if notes else None
        ensure_partition_metadata(storage, partition, settings.instant)
        self._markers = settings.markers(storage)
        self._io_type = _io_type(previous)
        self._markers.create(self.path, self._io_type)
        self._sink = self._opened(settings, storage, former)

    def _opened(
        self, settings: FileSettings, storage: Storage, former: BaseFooter | None
    ) -> FileSink | PatchedSink:
        """Create the file."""
        rate = settings.key_filter
        inherited = former.reusable_filter(rate) if former is not None and rate else None
        form = FileSpec(
            settings.full_schema,
            settings.avro_schema,
            settings.compression,
            inherited or rate,
            settings.row_groups,
        )
        sink = open_sink(storage, self.path, form)
        sink.share(settings.encodings)
        sink.summarize(settings.summarized)
        return sink

    @property
    def bytes_written(self) -> int:
        """Approximate number of bytes written so far."""
        return cast("FileSink", self._sink).bytes_written

    def write(self, batch: pa.RecordBatch, *, is_known: bool = False) -> None:
        """Append rows that have their meta columns.

        Args:
            batch: the rows.
            is_known: whether the previous base file has all their keys.
        """
        if self._order is not None:
            self._order.check(batch)
        cast("FileSink", self._sink).write(batch, is_known=is_known)
        self.rows += batch.num_rows
        if not is_known and self._new_keys is not None:
            self._note(batch.column(RECORD_KEY).cast(pa.string()))

    def flush(self) -> bool:
        """Store the rows so far, which take no memory then; return whether the file's format can."""
        return cast("FileSink", self._sink).flush()

    def _note(self, keys: pa.Array) -> None:
        """Note the keys of new records, if these are few."""
        if self._new_keys is not None:
            self._new_keys.append(keys)
            if sum(map(len, self._new_keys)) > limits.in_force.changed_keys_max:
                self._new_keys = None

    def close(
        self,
        *,
        inserts: int,
        updates: int = 0,
        deletes: int = 0,
        deleted_keys: Sequence[pa.Array] | None = None,
    ) -> WriteStat:
        """Finish the file and return its statistics.

        Args:
            inserts, updates, deletes: records of the previous base file and of this one, compared.
            deleted_keys: the record keys of the deleted records (string); None if they are not known.

        Raises:
            ConflictError: the write ended meanwhile; the file was deleted.
        """
        size_bytes = self._sink.close()
        self._markers.confirm(self.path, self._io_type)
        previous = self._previous
        return WriteStat(
            partition=self._partition,
            file_id=self._file_id,
            path=self.path,
            prev_commit=previous.base_instant if previous else "null",
            num_writes=self.rows,
            num_inserts=inserts,
            num_updates=updates,
            num_deletes=deletes,
            size_bytes=size_bytes,
            prev_base_file=previous.base.status.name if previous and previous.base else None,
            seconds=self._watch.seconds(),
            created=previous is None,
            held=self._held(deleted_keys if deletes else ()),
        )

    def _held(self, deleted_keys: Sequence[pa.Array] | None) -> WriterFacts | None:
        held = WriterFacts(self._sink.summaries(), self._changed_keys(deleted_keys))
        return None if held == WriterFacts() else held

    def _changed_keys(self, deleted_keys: Sequence[pa.Array] | None) -> pa.Table | None:
        if self._new_keys is None or deleted_keys is None:
            return None
        new, gone = (pa.chunked_array(list(each), pa.string()) for each in (self._new_keys, deleted_keys))
        if len(new) + len(gone) > limits.in_force.changed_keys_max:
            return None
        keys = pa.chunked_array([*new.chunks, *gone.chunks], pa.string())
        flags = np.arange(len(keys)) >= len(new)
        return pa.table({"key": keys, "is_removed": pa.array(flags)})

    def key_summary(self) -> KeySummary | None:
        """Return what the footer says of the keys; None if it says nothing."""
        return cast("FileSink", self._sink).keys

    def abort(self) -> None:
        """Close the file; the rollback deletes what was written."""
        self._sink.abort()


class NewFileGroupWriter:
    """Streams rows into new file groups of one partition; starts another one at the size limit.

    Args:
        settings: settings of the write.
        storage: storage of the table.
        partition: partition path.
        context: the task attempt.
        meta_columns: writes the meta columns.
        ids: generates file ids.
    """

    def __init__(
        self,
        settings: FileSettings,
        storage: Storage,
        partition: str,
        context: TaskContext,
        meta_columns: MetaColumnWriter,
        ids: Ids,
    ) -> None:
        self._settings = settings
        self._storage = storage
        self._partition = partition
        self._context = context
        self._meta_columns = meta_columns
        self._ids = ids
        self._first_id: str | None = None
        self._open: BaseFileWriter | None = None
        self._done: list[WriteStat] = []

    @property
    def is_begun(self) -> bool:
        """Whether a file is open."""
        return self._open is not None

    def announced(self, file_id: str | None = None) -> tuple[str, str]:
        """Return the path of the first file, and the type of its marker, before any rows are written.

        Args:
            file_id: the id that the first call of `write` gets.
        """
        self._first_id = file_id or random_file_id(self._ids.uuid())
        name = base_name(self._settings, self._first_id, self._context.write_token)
        return join_path(self._partition, name), _NEW_FILE

    def write(self, batch: pa.RecordBatch, file_id: str | None = None) -> None:
        """Append prepared rows; `file_id` is the id of a file group that the call starts."""
        writer = self._open
        if writer is None:
            writer = self._open = BaseFileWriter(
                self._settings,
                self._storage,
                self._partition,
                file_id or self._first_id or random_file_id(self._ids.uuid()),
                self._context.write_token,
            )
            self._first_id = None
        place = batch.schema.get_field_index(PARTITION_PATH)
        batch = batch.set_column(place, PARTITION_PATH, constant_column(self._partition, batch.num_rows))
        writer.write(self._meta_columns.apply(batch, writer.name))
        if file_id is None and writer.bytes_written >= self._settings.base_file_bytes_max:
            self._finish()

    def flush(self) -> None:
        """Store the rows so far as row groups of their own, or else as a whole file."""
        if self._open is not None and not self._open.flush():
            self._finish()

    def close(self) -> Iterator[WriteStat]:
        """Finish the last file and yield the statistics of all."""
        self._finish()
        yield from self._done

    def key_summary(self) -> KeySummary | None:
        """Return what the footer of the open file says of its keys; None without a file, or keys in it."""
        return self._open.key_summary() if self._open is not None else None

    def abort(self) -> None:
        """Close the open file without finishing it."""
        if self._open is not None:
            self._open.abort()

    def _finish(self) -> None:
        if self._open is not None:
            self._done.append(self._open.close(inserts=self._open.rows))
            self._open = None


def base_name(settings: FileSettings, file_id: str, write_token: str) -> str:
    """Return the name of the base file that a write makes of a file group."""
    return BaseFile.name_of(file_id, write_token, settings.instant, settings.config.base_extension)


def announced_successor(settings: FileSettings, target: FileSlice, write_token: str) -> tuple[str, str]:
    """Return the path of the base file that a write makes of a slice, and the type of its marker."""
    path = join_path(target.partition, base_name(settings, target.file_id, write_token))
    return path, _io_type(target)


def _io_type(previous: FileSlice | None) -> str:
    return "MERGE" if previous is not None and previous.base else _NEW_FILE


def close_together(files: Sequence[NewFileGroupWriter]) -> list[WriteStat]:
    """Finish the last files of several partitions, and return the statistics of all their files."""
    fill_together(summary for each in files if (summary := each.key_summary()) is not None)
    return [stat for each in files for stat in each.close()]


def ensure_partition_metadata(storage: Storage, partition: str, instant: str) -> None:
    """Write the partition metadata file of a folder if it is missing (specification 1.3)."""
    storage.put_if_absent(join_path(partition, PARTITION_METADATA), _partition_metadata(partition, instant))


def rewrite_partition_metadata(storage: Storage, partition: str, instant: str) -> None:
    """Write the partition metadata file of a folder anew, with another creation time."""
    storage.put(join_path(partition, PARTITION_METADATA), _partition_metadata(partition, instant))


def partition_created(storage: Storage, partition: str) -> str:
    """Return the creation time of a partition; without partition metadata it counts as new."""
    try:
        data = storage.read(join_path(partition, PARTITION_METADATA))
    except FileNotFoundError:
        return "9"
    return decode_properties(data).get("commitTime", "9")


def _partition_metadata(partition: str, instant: str) -> bytes:
    depth = partition.count("/") + 1 if partition else 0
    return f"#partition metadata\ncommitTime={instant}\npartitionDepth={depth}\n".encode()
