"""Change data capture of one write to one file group: operation, before image and after image per record.

    CDC log with both images      the images are returned as they are
    CDC log with keys, or         the missing images are looked up by key
    keys and before images        in the slice before the write and the slice after it
    no CDC log                    the two slices are compared:
        in the slice after, written by the commit    insert, or update if the slice before has its key
        only in the slice before                     delete

For a write to log files, only its own keys are compared and looked up (`LogHistory`).

A write that replaces a file group leaves no slice after it; a write that creates one has no slice before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from drawstring.base.errors import REPAIR, CorruptTableError, DrawstringError, MissingFileError
from drawstring.config.table.schema_versions import Renames
from drawstring.filegroups.read.json_images import COMPACT, SPACED, json_images, json_values
from drawstring.filegroups.read.log_history import LogHistory
from drawstring.filegroups.read.slice_reader import read_slice
from drawstring.filegroups.read.tasks import ReadTask, nullable
from drawstring.formats.log_files import change_rows, log_blocks
from drawstring.formats.log_inline import BlockType
from drawstring.merge.versions import flat
from drawstring.model.files import LogFile
from drawstring.schema.evolve import conform
from drawstring.schema.meta import COMMIT_TIME, RECORD_KEY
from drawstring.schema.schema_on_read import in_requested_columns, stored_columns
from drawstring.schema.timestamp_units import in_table_units
from drawstring.storage import open_spec
from drawstring.storage.protocol import Storage, StorageSpec

CHANGE_SCHEMA: Final = pa.schema([(name, pa.string()) for name in ("op", "ts_ms", "before", "after")])
"""Columns of change queries: `i`, `u` or `d`; requested time of the commit; the images as JSON."""

INSERT, UPDATE, DELETE = "i", "u", "d"
_OPERATIONS: Final = pa.array([INSERT, UPDATE, DELETE])
_FORMS: Final = frozenset(
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
        rows = conform(in_requested_columns(logged, self.renames), columns)
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
    touched = _lookup(before, pa.concat_arrays([flat(written.column(RECORD_KEY)), deleted]))
    return _deletes_and_upserts(task, written, deleted, touched)


def _around_logs(task: ChangeTask, history: LogHistory) -> Iterator[pa.RecordBatch]:
    """Compare the records that a write to log files touched."""
    before, after = _touched(task, history)
    deleted = before.keys.filter(pc.invert(pc.is_in(before.keys, value_set=flat(after.column(RECORD_KEY)))))
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
        images = before.images(flat(written.column(RECORD_KEY)))
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
        after = _known(task, known_after or task.after, new_keys).images(keys)
        after = pc.if_else(pc.equal(operations, DELETE), pa.scalar(None, pa.string()), after)
        if "before" in names:
            before = _image_texts(task, rows.column("before"))
        else:
            old_keys = keys.filter(pc.not_equal(operations, INSERT))
            before = _known(task, known_before or task.before, old_keys).images(keys)
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


def _known(task: ChangeTask, rows: _Images | ReadTask | None, keys: pa.Array) -> _Images:
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
    return _Images(flat(rows.column(RECORD_KEY)), json_images(rows, COMPACT))


def _keys(rows: ReadTask) -> pa.Array:
    return flat(_table(replace(rows, columns=(RECORD_KEY,))).column(RECORD_KEY))


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
    if frozenset(kinds) not in _FORMS or not texts or not images:
        raise CorruptTableError(
            f"A CDC log file has the unknown columns {', '.join(kinds)}. Restore it from a backup."
        )
    if not pc.all(pc.is_in(rows.column("op"), value_set=_OPERATIONS)).as_py():
        raise CorruptTableError("A CDC log file has an unknown operation. Restore it from a backup.")
    return rows
