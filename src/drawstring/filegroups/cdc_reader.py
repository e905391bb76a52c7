"""Read the changes of one write to one file group: operation, before image and after image of each record.

    CDC log with both images      the images are returned as they are
    CDC log with keys, or         the missing images are looked up by key
    keys and before images        in the slice before the write and the slice after it
    no CDC log                    the two slices are compared:
        in the slice after, written by the commit    insert, or update if the slice before has its key
        only in the slice before                     delete

A write that replaces a file group leaves no slice after it. A write that creates a file group has no slice
before it.

JSON images have two styles (Hudi: `before` and `after` of its CDC relation):

    from data files   {"id":1,"price":5.5}                   no spaces, null columns omitted
    from CDC logs     {"id": 1, "title": null, "price": 5.5} spaces, nulls written

Dates, times and timestamps are their stored numbers, decimals plain numbers, binary values base64.

Writes to log files: only the keys of the write are compared and looked up. `LogHistory` reads the records
before and after each of several such writes:

    log files ──> the records of the keys that these writes touched, block by block ──┐
    base file ──> the rows of the same keys ──────────────────────────────────────────┴─> cached once
    a time    ──> the blocks visible then, for the keys of one write ──> merged ──> its rows

A write to a log file changes only its own keys, so the other rows of the slice are neither read again for
each write nor cached.
"""

from __future__ import annotations

import base64
import json
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, Final
from weakref import ref

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from drawstring.base import limits
from drawstring.base.errors import (
    REPAIR,
    CorruptTableError,
    DrawstringError,
    MissingFileError,
    UnsupportedError,
)
from drawstring.base.lazy import cached_property
from drawstring.config.table.schema_versions import Renames
from drawstring.filegroups.file_slice_reader import merge_base_rows, read_slice
from drawstring.filegroups.log_merge import base_rows, base_schema, log_reading
from drawstring.filegroups.log_scanner import LogPiece, PlacedBlock, blocks_to_merge, open_logs
from drawstring.filegroups.read.log_records import merged_records
from drawstring.filegroups.read_task import LogReading, ReadTask, nullable
from drawstring.formats.log_files import change_rows, log_blocks
from drawstring.formats.log_inline import BlockType
from drawstring.keygen.texts import java_text, texts_of_distinct
from drawstring.merge.record_version import Array, combined_chunks
from drawstring.model.files import LogFile
from drawstring.schema.evolution import conform
from drawstring.schema.fields import COMMIT_TIME, RECORD_KEY
from drawstring.schema.internal_schema import stored_columns, with_query_names
from drawstring.schema.logical_types import is_vector, vector_bytes
from drawstring.schema.timestamp_units import in_table_units
from drawstring.storage import open_spec
from drawstring.storage.protocol import Storage, StorageSpec

_SPECIAL: Final = r'["\\\x00-\x1f]'


@dataclass(frozen=True, slots=True)
class JsonStyle:
    """Style of JSON texts.

    Attributes:
        comma, colon: between columns, and between a name and its value.
        nulls: whether to write null columns.
    """

    comma: str
    colon: str
    nulls: bool


COMPACT: Final = JsonStyle(",", ":", False)
"""Style of images from data files."""

SPACED: Final = JsonStyle(", ", ": ", True)
"""Style of images from CDC logs."""


def json_images(rows: pa.RecordBatch | pa.Table, style: JsonStyle) -> pa.Array:
    """Return a JSON object for each row.

    Args:
        rows: records.
        style: style of the texts.

    Raises:
        UnsupportedError: the type of a column has no JSON form.
    """
    columns = [_flat(column) for column in rows.columns]
    return _object(rows.schema.names, columns, rows.num_rows, style)


def json_values(values: pa.Array, style: JsonStyle) -> pa.Array:
    """Return the JSON text of each value, null for null; see `json_images`."""
    kind = values.type
    if pt.is_struct(kind):
        names = [field.name for field in kind]
        return _where_valid(values, _object(names, values.flatten(), len(values), style))
    if pt.is_map(kind) or pt.is_list(kind):
        return _where_valid(values, _items(values, style))
    for matches, text in _TEXTS:
        if matches(kind):
            return text(values)
    raise UnsupportedError(
        f"Change queries cannot return columns of type {kind}. Cast the column in the table to a supported"
        " type."
    )


def _object(names: Sequence[str], columns: Sequence[pa.Array], rows: int, style: JsonStyle) -> pa.Array:
    if not columns:
        return pa.repeat("{}", rows)
    parts = []
    for name, column in zip(names, columns, strict=True):
        texts = json_values(column, style)
        if style.nulls:
            texts = pc.fill_null(texts, "null")
        named = pc.binary_join_element_wise(f"{style.comma}{json.dumps(name)}{style.colon}", texts, "")
        parts.append(pc.fill_null(named, ""))
    inner = pc.binary_join_element_wise(*parts, "")
    opened = pc.binary_replace_slice(inner, 0, len(style.comma), "{")
    return pc.binary_join_element_wise(opened, "}", "")


def _items(values: pa.Array, style: JsonStyle) -> pa.Array:
    """Return lists as arrays and maps as objects."""
    is_map = pt.is_map(values.type)
    if is_map:
        pair = pa.struct([("key", values.type.key_type), ("value", values.type.item_type)])
        values = values.cast(pa.list_(pair))
    lengths = pc.fill_null(pc.list_value_length(values), 0).to_numpy(zero_copy_only=False)
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
    items = pc.list_flatten(values)
    if is_map:
        keys, entries = items.flatten()
        texts = pc.fill_null(json_values(entries, style), "null")
        texts = pc.binary_join_element_wise(json_values(keys, style), texts, style.colon)
    else:
        texts = pc.fill_null(json_values(items, style), "null")
    inner = pc.binary_join(pa.ListArray.from_arrays(offsets, texts), style.comma)
    opening, closing = "{}" if is_map else "[]"
    return pc.binary_join_element_wise(opening, inner, closing, "")


def _where_valid(values: pa.Array, texts: pa.Array) -> pa.Array:
    return (
        texts if not values.null_count else pc.if_else(values.is_valid(), texts, pa.scalar(None, pa.string()))
    )


def _flat(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    flat = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return flat.dictionary_decode() if pt.is_dictionary(flat.type) else flat


def _text(values: pa.Array) -> pa.Array:
    if pc.any(pc.match_substring_regex(values, _SPECIAL)).as_py():
        return texts_of_distinct(values, _quoted)
    return pc.binary_join_element_wise('"', values, '"', "")


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _number(values: pa.Array) -> pa.Array:
    return values.cast(pa.string())


def _stored_number(values: pa.Array) -> pa.Array:
    return values.cast(pa.int32() if values.type.bit_width == 32 else pa.int64()).cast(pa.string())


def _float(values: pa.Array) -> pa.Array:
    """Return the texts of Java, with NaN and infinities in quotes."""
    texts = java_text(values, "")
    return pc.if_else(pc.is_finite(values), texts, pc.binary_join_element_wise('"', texts, '"', ""))


def _decimal(values: pa.Array) -> pa.Array:
    return java_text(values, "")


def _binary(values: pa.Array) -> pa.Array:
    return texts_of_distinct(values.cast(pa.binary()), lambda value: f'"{base64.b64encode(value).decode()}"')


def _null_texts(values: pa.Array) -> pa.Array:
    return pa.nulls(len(values), pa.string())


_TEXTS: Final[tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.Array], pa.Array]], ...]] = (
    (pt.is_string, _text),
    (lambda kind: pt.is_integer(kind) or pt.is_boolean(kind), _number),
    (pt.is_floating, _float),
    (lambda kind: pt.is_date32(kind) or pt.is_time(kind) or pt.is_timestamp(kind), _stored_number),
    (pt.is_decimal, _decimal),
    (lambda kind: pt.is_binary(kind) or pt.is_fixed_size_binary(kind), _binary),
    (is_vector, lambda values: _binary(vector_bytes(values))),
    (pt.is_null, _null_texts),
)


class LogHistory:
    """A slice and some writes to its log files; loads on first use, frees its memory after the last use.

    Args:
        newest: reads the slice as the newest of the writes left it.
        writes: requested times of the writes.
        uses: how often `around` will be called.
    """

    def __init__(self, newest: ReadTask, writes: frozenset[str], uses: int) -> None:
        self._newest, self._writes, self._uses = newest, writes, uses
        self._lock = Lock()
        self._held: _CachedRecords | None = None
        self._left = uses

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without the cached records."""
        return LogHistory, (self._newest, self._writes, self._uses)

    def around(
        self, write: str, before: ReadTask | None, after: ReadTask | None
    ) -> tuple[pa.Table | None, pa.Table | None]:
        """Return the records that a write touched, as they were before and after it.

        Args:
            write: its requested time.
            before: reads the slice before it; None if not needed, or if there was no slice.
            after: reads the slice after it; None if not needed.
        """
        held = self._load()
        keys = held.keys_of(write)
        tables = tuple(None if task is None else held.rows(task, keys) for task in (before, after))
        self._done()
        return tables[0], tables[1]

    def _load(self) -> _CachedRecords:
        with self._lock:
            held = self._held
            if held is None:
                held = self._held = _load_records(self._newest, self._writes)
        _CACHED_HISTORIES.note(self, held.size_bytes)
        return held

    def _done(self) -> None:
        with self._lock:
            self._left -= 1
            if self._left <= 0:
                self._held, self._left = None, self._uses
                _CACHED_HISTORIES.forget(self)

    def let_go(self) -> None:
        """Free the cached records; they are read again when needed."""
        self._held = None


class _HistoryCache:
    """The histories that cache records, least recently used first; evicts beyond the limit."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._sizes: OrderedDict[int, tuple[ref[LogHistory], int]] = OrderedDict()

    def forget(self, history: LogHistory) -> None:
        with self._lock:
            self._sizes.pop(id(history), None)

    def note(self, history: LogHistory, size_bytes: int) -> None:
        with self._lock:
            self._sizes[id(history)] = ref(history), size_bytes
            self._sizes.move_to_end(id(history))
            total = sum(size for _, size in self._sizes.values())
            while total > limits.in_force.change_records_bytes_max and len(self._sizes) > 1:
                _, (holder, size) = self._sizes.popitem(last=False)
                total -= size
                if (other := holder()) is not None:
                    other.let_go()


_CACHED_HISTORIES: Final = _HistoryCache()


@dataclass(frozen=True)
class _CachedRecords:
    """The records of a slice with the keys that the writes touched.

    Attributes:
        reading: settings with which the log files were read.
        placed: all blocks of the log files.
        pieces: the records of the blocks that are visible at some time, by block number.
        base: the base rows.
    """

    reading: LogReading
    placed: Sequence[PlacedBlock]
    pieces: dict[int, LogPiece]
    base: pa.Table

    @cached_property
    def size_bytes(self) -> int:
        """Bytes in memory."""
        return int(self.base.nbytes) + sum(int(piece.rows.nbytes) for piece in self.pieces.values())

    @cached_property
    def _numbers(self) -> Mapping[int, int]:
        return {id(placed): at for at, placed in enumerate(self.placed)}

    @cached_property
    def _logs(self) -> _Rows:
        return _Rows([combined_chunks(piece.keys) for piece in self.pieces.values()])

    @cached_property
    def _bases(self) -> _Rows:
        return _Rows([combined_chunks(self.base.column(RECORD_KEY))])

    def keys_of(self, write: str) -> pa.Array:
        """Return the keys that a write touched."""
        keys = [
            combined_chunks(piece.keys)
            for at, piece in self.pieces.items()
            if self.placed[at].instant == write
        ]
        return pc.unique(pa.concat_arrays([pa.array([], pa.string()), *keys]))

    def rows(self, task: ReadTask, keys: pa.Array) -> pa.Table:
        """Return the records with the given keys as of a task's slice and instants."""
        paths = {log.status.path for log in task.file_slice.logs}
        chosen = blocks_to_merge(
            (each for each in self.placed if each.file.status.path in paths), task.instants
        )
        order = [self._numbers[id(each)] for each in chosen]
        numbers = list(self.pieces)
        places = {numbers[at]: rows for at, rows in self._logs.rows_of(keys).items()}
        parts = [self.pieces[at].take(places[at]) for at in order if at in places]
        log = merged_records(self.reading, parts, [self.pieces[at] for at in order])
        found = self._bases.rows_of(keys).get(0, np.zeros(0, dtype=np.int64))
        base = self.base.take(pa.array(found))
        merged = merge_base_rows(log, base.combine_chunks().to_batches(), task)
        return pa.Table.from_batches(merged, task.output_schema)


class _Rows:
    """Index of the rows of several pieces by key.

    Args:
        keys: the keys of the rows of each piece.
    """

    def __init__(self, keys: Sequence[pa.Array]) -> None:
        ends = np.cumsum([0, *map(len, keys)])
        self._starts = ends[:-1]
        encoded = pa.concat_arrays([pa.array([], pa.string()), *keys]).dictionary_encode()
        codes = encoded.indices.to_numpy(zero_copy_only=False)
        self._distinct = encoded.dictionary
        self._order = np.argsort(codes, kind="stable")
        self._firsts = np.searchsorted(codes[self._order], np.arange(len(self._distinct) + 1))

    def rows_of(self, keys: pa.Array) -> dict[int, Array]:
        """Return the ascending row numbers with the given keys, by piece number."""
        codes = pc.index_in(keys, value_set=self._distinct).drop_null().to_numpy(zero_copy_only=False)
        counts = self._firsts[codes + 1] - self._firsts[codes]
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        rows = np.sort(self._order[np.repeat(self._firsts[codes], counts) + within])
        owners = np.searchsorted(self._starts, rows, side="right") - 1
        pieces, firsts = np.unique(owners, return_index=True)
        parts = np.split(rows, firsts[1:])
        return {int(at): part - self._starts[at] for at, part in zip(pieces, parts, strict=False)}


def _load_records(newest: ReadTask, writes: frozenset[str]) -> _CachedRecords:
    """Read the writes' own blocks first: they determine the keys to read from the other blocks."""
    reading = log_reading(newest)
    with open_logs(reading, newest.file_slice) as logs:
        counting = [
            at
            for at, placed in enumerate(logs.placed)
            if placed.holds_records and newest.instants.admits(placed.instant)
        ]
        own = {at: logs.read(logs.placed[at]) for at in counting if logs.placed[at].instant in writes}
        keys = pc.unique(
            pa.concat_arrays([pa.array([], pa.string()), *(combined_chunks(p.keys) for p in own.values())])
        )
        pieces = {at: own[at] if at in own else _only(logs.read(logs.placed[at]), keys) for at in counting}
        placed = logs.placed
    batches = base_rows(newest, pc.field(RECORD_KEY).isin(keys)) if len(keys) else ()
    return _CachedRecords(reading, placed, pieces, pa.Table.from_batches(batches, base_schema(newest)))


def _only(piece: LogPiece, keys: pa.Array) -> LogPiece:
    is_selected = pc.is_in(piece.keys, value_set=keys).to_numpy()
    return piece if is_selected.all() else piece.take(np.flatnonzero(is_selected))


CHANGE_SCHEMA: Final = pa.schema([(name, pa.string()) for name in ("op", "ts_ms", "before", "after")])
"""Columns of change queries: `i`, `u` or `d`; requested time of the commit; the images as JSON."""

INSERT, UPDATE, DELETE = "i", "u", "d"
_OPERATIONS: Final = pa.array([INSERT, UPDATE, DELETE])
_CDC_SCHEMAS: Final = frozenset(
    {
        frozenset({"op", "record_key"}),
        frozenset({"op", "record_key", "before"}),
        frozenset({"op", "ts_ms", "before", "after"}),
    }
)


@dataclass(frozen=True, slots=True)
class LoggedColumns:
    """The columns of a table, and how the images of a CDC log call them.

    Attributes:
        renames: the names in the log.
        schema: the columns of the table, without meta columns.
    """

    renames: Renames
    schema: pa.Schema

    def shown(self, images: pa.StructArray) -> pa.StructArray:
        """Return images with the columns of the table."""
        logged = pa.RecordBatch.from_arrays(images.flatten(), names=[field.name for field in images.type])
        columns = nullable(self.schema, tuple(self.schema.names))
        logged = in_table_units(logged, stored_columns(self.schema, self.renames))
        rows = conform(with_query_names(logged, self.renames), columns)
        return pa.StructArray.from_arrays(rows.columns, fields=list(rows.schema), mask=images.is_null())


@dataclass(frozen=True, slots=True)
class ChangeTask:
    """One write to one file group.

    Attributes:
        storage: opens the table.
        instant: requested time of the write.
        before: reads the slice before it, all columns; None if there was none, or if it is not needed.
        after: reads the slice after it, all columns; None if there is none, or if it is not needed.
        logs: CDC log files of the write.
        wording: how columns of the table are called in these; None if they are the same.
        slice_of_logs: partition, file id and base instant of the slice, if the write wrote only log files.
        history: the records before and after it, in that case.
        operations: the operations to yield; None for all.
        timeline_digest: digest of the timeline when the task was planned, as of `ReadTask`.
    """

    storage: StorageSpec
    instant: str
    before: ReadTask | None
    after: ReadTask | None
    logs: tuple[LogFile, ...] = ()
    wording: LoggedColumns | None = None
    slice_of_logs: tuple[str, str, str] | None = None
    history: LogHistory | None = None
    operations: tuple[str, ...] | None = None
    timeline_digest: str | None = None

    @property
    def size_bytes(self) -> int:
        """Bytes of the files that the task reads."""
        slices = [task.file_slice.size_bytes for task in (self.before, self.after) if task is not None]
        return sum(slices) + sum(log.status.size_bytes for log in self.logs)

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Yield the changes, as `read_changes` does."""
        return read_changes(self)


def read_changes(task: ChangeTask) -> Iterator[pa.RecordBatch]:
    """Yield the changes of a write to a file group, with the columns of `CHANGE_SCHEMA`.

    Raises:
        CorruptTableError: a file is missing or damaged.
        UnsupportedError: this release cannot read a file.
    """
    try:
        for changes in _changes_of(task):
            if task.operations is None:
                yield changes
                continue
            operations = pa.array(task.operations)
            if (selected := changes.filter(pc.is_in(changes.column("op"), value_set=operations))).num_rows:
                yield selected
    except DrawstringError as error:
        raise error.at(table=task.storage.uri, instant=task.instant) from error.__cause__


def _changes_of(task: ChangeTask) -> Iterator[pa.RecordBatch]:
    if task.logs:
        return _logged(task)
    if task.history is not None:
        return _around_logs(task, task.history)
    if task.after is None:
        return _all_of(task, task.before, DELETE)
    if task.before is None:
        return _all_of(task, task.after, INSERT)
    return _compared(task, task.before, task.after)


def _all_of(task: ChangeTask, rows: ReadTask | None, operation: str) -> Iterator[pa.RecordBatch]:
    if rows is None:
        return
    for batch in read_slice(rows):
        images, nothing = json_images(batch, COMPACT), pa.nulls(batch.num_rows, pa.string())
        is_insert = operation == INSERT
        yield _changes(
            task,
            pa.repeat(operation, batch.num_rows),
            nothing if is_insert else images,
            images if is_insert else nothing,
        )


def _compared(task: ChangeTask, before: ReadTask, after: ReadTask) -> Iterator[pa.RecordBatch]:
    """Compare two slices; holds the rows of the write and all keys of both in memory."""
    written = _table(replace(after, where=pc.field(COMMIT_TIME) == task.instant))
    old, new = _keys(before), _keys(after)
    deleted = old.filter(pc.invert(pc.is_in(old, value_set=new)))
    touched = _lookup(before, pa.concat_arrays([combined_chunks(written.column(RECORD_KEY)), deleted]))
    return _deletes_and_upserts(task, written, deleted, touched)


def _around_logs(task: ChangeTask, history: LogHistory) -> Iterator[pa.RecordBatch]:
    """Compare the records that a write to log files touched."""
    before, after = _touched(task, history)
    deleted = before.keys.filter(
        pc.invert(pc.is_in(before.keys, value_set=combined_chunks(after.column(RECORD_KEY))))
    )
    written = after.filter(pc.equal(after.column(COMMIT_TIME), task.instant))
    return _deletes_and_upserts(task, written, deleted, before)


def _touched(task: ChangeTask, history: LogHistory) -> tuple[_Images, pa.Table]:
    """Return the before images of the records that a write touched, and the records after the write."""
    before, after = history.around(task.instant, task.before, task.after)
    nothing = pa.array([], pa.string())
    assert after is not None
    return _Images(nothing, nothing) if before is None else _images(before), after


def _deletes_and_upserts(
    task: ChangeTask, written: pa.Table, deleted: pa.Array, before: _Images
) -> Iterator[pa.RecordBatch]:
    """Yield the changes for deleted keys and written records."""
    if len(deleted):
        no_images = pa.nulls(len(deleted), pa.string())
        yield _changes(task, pa.repeat(DELETE, len(deleted)), before.images(deleted), no_images)
    if written.num_rows:
        images = before.images(combined_chunks(written.column(RECORD_KEY)))
        operations = pc.if_else(images.is_valid(), UPDATE, INSERT)
        yield _changes(task, operations, images, json_images(written, COMPACT))


def _logged(task: ChangeTask) -> Iterator[pa.RecordBatch]:
    storage = open_spec(task.storage)
    around = None if task.history is None else _images_around(task, task.history)
    for log in task.logs:
        for rows in _log_rows(storage, log):
            yield from _with_images(task, rows, around)


def _images_around(task: ChangeTask, history: LogHistory) -> tuple[_Images, _Images]:
    before, after = _touched(task, history)
    return before, _images(after)


def _with_images(
    task: ChangeTask, rows: pa.RecordBatch, around: tuple[_Images, _Images] | None
) -> Iterator[pa.RecordBatch]:
    """Convert the rows of a CDC log into changes, and look up missing images."""
    known_before, known_after = (None, None) if around is None else around
    names, operations = rows.schema.names, rows.column("op")
    if "after" in names:
        before, after = (_image_texts(task, rows.column(name)) for name in ("before", "after"))
    else:
        keys = rows.column("record_key")
        new_keys = keys.filter(pc.not_equal(operations, DELETE))
        after = _known_images(task, known_after or task.after, new_keys).images(keys)
        after = pc.if_else(pc.equal(operations, DELETE), pa.scalar(None, pa.string()), after)
        if "before" in names:
            before = _image_texts(task, rows.column("before"))
        else:
            old_keys = keys.filter(pc.not_equal(operations, INSERT))
            before = _known_images(task, known_before or task.before, old_keys).images(keys)
            before = pc.if_else(pc.equal(operations, INSERT), pa.scalar(None, pa.string()), before)
    yield _changes(task, operations, before, after)


def _image_texts(task: ChangeTask, images: pa.StructArray) -> pa.Array:
    """Return images of a CDC log as JSON."""
    return json_values(images if task.wording is None else task.wording.shown(images), SPACED)


@dataclass(frozen=True, slots=True)
class _Images:
    """JSON images of records of a slice, by key."""

    keys: pa.Array
    texts: pa.Array

    def images(self, keys: pa.Array) -> pa.Array:
        """Return the image of each key, null for missing keys."""
        return self.texts.take(pc.index_in(keys, value_set=self.keys))


def _known_images(task: ChangeTask, rows: _Images | ReadTask | None, keys: pa.Array) -> _Images:
    """Look up the images of all keys of a CDC log; raise if a key is missing."""
    if isinstance(rows, _Images):
        images = rows
    else:
        images = _Images(keys.slice(0, 0), keys.slice(0, 0)) if rows is None else _lookup(rows, keys)
    if pc.any(pc.invert(pc.is_in(keys, value_set=images.keys))).as_py():
        raise CorruptTableError(
            "A CDC log file names records that the file slices before and after the write lack. Restore"
            " the files of the file group from a backup.",
            path=task.logs[0].status.path,
        )
    return images


def _lookup(rows: ReadTask, keys: pa.Array) -> _Images:
    """Return the images of the records with the given keys."""
    if not len(keys):
        return _Images(keys, keys)
    among = pc.field(RECORD_KEY).isin(keys)
    return _images(_table(replace(rows, where=among)))


def _images(rows: pa.Table) -> _Images:
    return _Images(combined_chunks(rows.column(RECORD_KEY)), json_images(rows, COMPACT))


def _keys(rows: ReadTask) -> pa.Array:
    return combined_chunks(_table(replace(rows, columns=(RECORD_KEY,))).column(RECORD_KEY))


def _table(rows: ReadTask) -> pa.Table:
    return pa.Table.from_batches(read_slice(rows), rows.output_schema)


def _changes(task: ChangeTask, operations: pa.Array, before: pa.Array, after: pa.Array) -> pa.RecordBatch:
    times = pa.repeat(task.instant, len(operations))
    return pa.RecordBatch.from_arrays([operations, times, before, after], schema=CHANGE_SCHEMA)


def _log_rows(storage: Storage, log: LogFile) -> Iterator[pa.RecordBatch]:
    path = log.status.path
    try:
        with storage.open(path) as file:
            if file.size() < max(log.status.size_bytes, 1):
                raise CorruptTableError("A CDC log file is truncated. Restore it from a backup.")
            for block in log_blocks(file, log, storage.local_path(path)):
                if block.kind is BlockType.CORRUPT or block.schema_json is None:
                    raise CorruptTableError(
                        f"A CDC log file is truncated or damaged at byte {block.offset}."
                        " Restore it from a backup."
                    )
                yield from (_checked(batch) for batch in change_rows(file, block))
    except FileNotFoundError:
        raise MissingFileError(f"A CDC log file is missing: {REPAIR}.", path=path) from None
    except DrawstringError as error:
        raise error.at(path=path) from error.__cause__


def _checked(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Check that the records of a CDC log have one of the three schemas."""
    kinds = {field.name: field.type for field in rows.schema}
    texts = all(pt.is_string(kinds[name]) for name in ("op", "record_key") if name in kinds)
    images = all(pt.is_struct(kinds[name]) for name in ("before", "after") if name in kinds)
    if frozenset(kinds) not in _CDC_SCHEMAS or not texts or not images:
        raise CorruptTableError(
            f"A CDC log file has the unknown columns {', '.join(kinds)}. Restore it from a backup."
        )
    if not pc.all(pc.is_in(rows.column("op"), value_set=_OPERATIONS)).as_py():
        raise CorruptTableError("A CDC log file has an unknown operation. Restore it from a backup.")
    return rows
