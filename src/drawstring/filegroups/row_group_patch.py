"""Merge changes into a large base file row group by row group, and copy the row groups without changes.

    keys, ordering values ── row group by row group ──> rows that are updated or deleted
                                                         (none, and no record is new: no file)
    row group ── nothing changes ──────────────> copied
              ├─ rows are updated ─────────────> columns with other values are encoded, the others copied
              ├─ rows are deleted ─────────────> encoded
              └─ at the end, and not large ────> encoded together with the new records
    new records ───────────────────────────────> a row group

Updated records stay where they are, so that files keep the order of their rows. The last row group takes new
records if it is not much larger than they are. So a file has few small row groups, and a row is encoded only
a few times on its way into a large one.

`patch_source_of` returns None for a base file that `merge_handle` must rewrite as a whole. `Patch` runs the
merge, and `PatchedGroups` writes the row groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from drawstring.base import limits
from drawstring.base.resources import BATCH_ROWS
from drawstring.filegroups.base_file_writer import (
    BaseFileWriter,
    FileSettings,
    MetaColumnWriter,
    constant_column,
)
from drawstring.filegroups.merge_handle import Applied, MergeHandle, Numbers
from drawstring.formats.bloom_footer import KeySummary, extended_footer
from drawstring.formats.data_file import is_parquet
from drawstring.formats.file_format import BaseFooter
from drawstring.formats.parquet.footer import ChunkSource
from drawstring.formats.parquet.row_group_copy import PatchedFile, PatchedSink, patch_source, patched_file
from drawstring.formats.parquet.writer import entries_of, physical_schema, table_of
from drawstring.merge.record_version import ordering_columns
from drawstring.model.commit import WriteStat
from drawstring.model.files import FileSlice, TaskContext
from drawstring.schema.fields import FILE_NAME, PARTITION_PATH, RECORD_KEY
from drawstring.schema.logical_types import is_vector, vector_bytes
from drawstring.storage.protocol import Storage

_TAIL_ROWS_RATIO_MAX: Final = 4
"""How many times as many rows as there are new ones a row group at the end may have to take these."""

_SAME: Final = frozenset((RECORD_KEY, PARTITION_PATH, FILE_NAME))
"""Columns with the same value in all versions of a record, and the one that is made for each file."""


@dataclass(frozen=True, slots=True)
class GroupChanges:
    """The changes to a row group.

    Attributes:
        rows: numbers of the rows that change, ascending.
        records: for each the number of the record that takes its place; -1 if it is deleted.
    """

    rows: Numbers
    records: Numbers

    @property
    def updated(self) -> Numbers:
        """The rows that are updated."""
        return self.rows[self.records >= 0]

    @property
    def deleted(self) -> Numbers:
        """The rows that are deleted."""
        return self.rows[self.records < 0]


@dataclass(frozen=True, slots=True)
class PatchedGroups:
    """Writes the row groups.

    Attributes:
        settings: settings of the write.
        file: the base file.
        sink: its successor.
        handle: the changes.
        meta_columns: writes the meta columns.
        name: name of the successor.
    """

    settings: FileSettings
    file: PatchedFile
    sink: PatchedSink
    handle: MergeHandle
    meta_columns: MetaColumnWriter
    name: str

    def write(self, changes: list[GroupChanges], new: pa.RecordBatch | None) -> None:
        """Write all row groups.

        Args:
            changes: the changes to each row group of the base file.
            new: new records with their meta columns.
        """
        stay = len(changes) if new is None else self._staying(len(new))
        for group, each in enumerate(changes[:stay]):
            if len(each.deleted):
                self._add([self._rows(group, each)], group)
            else:
                self.sink.copy(self.file.file, group, self._changed(group, each) if len(each.rows) else None)
        if new is not None:
            tail = [self._rows(group, changes[group]) for group in range(stay, len(changes))]
            self._add([*tail, pa.Table.from_batches([new])], len(changes) - 1)

    def _staying(self, new: int) -> int:
        """Return how many row groups do not take the new records, given the number of these."""
        sizes, rows = self.file.group_rows, new
        stay = len(sizes)
        while stay:
            size = sizes[stay - 1]
            if (
                size > max(limits.in_force.growing_group_rows_max, _TAIL_ROWS_RATIO_MAX * rows)
                or size + rows > self.settings.row_groups.rows
            ):
                break
            stay, rows = stay - 1, rows + size
        return stay

    def _changed(self, group: int, changes: GroupChanges) -> pa.Table:
        """Return those columns of a row group whose values change."""
        updates = self._updates(changes)
        names = [name for name in self.settings.full_schema.names if name not in _SAME]
        changed: dict[str, pa.ChunkedArray] = {}
        for span in self.file.spans(group, names):
            stored = self.file.columns(group, span)
            for name in span:
                column = patched_column(stored.column(name), changes.updated, updates.column(name))
                if column is not None:
                    changed[name] = column
        changed[FILE_NAME] = self._own_name(self.file.group_rows[group])
        return self._table(changed)

    def _updates(self, changes: GroupChanges) -> pa.RecordBatch:
        records = self.handle.records(changes.records[changes.records >= 0])
        return self.meta_columns.apply(one_batch(records), self.name)

    def _rows(self, group: int, changes: GroupChanges) -> pa.Table:
        """Return the rows of a row group with their changes."""
        names = [name for name in self.settings.full_schema.names if name != FILE_NAME]
        rows = self.file.columns(group, names)
        columns = dict(zip(names, rows.columns, strict=True))
        if len(changes.updated):
            updates = self._updates(changes)
            for name in columns.keys() - _SAME:
                column = patched_column(columns[name], changes.updated, updates.column(name))
                columns[name] = columns[name] if column is None else column
        columns[FILE_NAME] = self._own_name(rows.num_rows)
        table = self._table(columns)
        if not len(changes.deleted):
            return table
        keep = np.ones(rows.num_rows, dtype=bool)
        keep[changes.deleted] = False
        return table.filter(pa.array(keep))

    def _own_name(self, rows: int) -> pa.ChunkedArray:
        return pa.chunked_array([constant_column(self.name, rows)])

    def _table(self, columns: dict[str, pa.ChunkedArray]) -> pa.Table:
        """Return columns as a table, in the order of the file."""
        fields = [field for field in self.settings.full_schema if field.name in columns]
        schema = pa.schema([field.with_type(columns[field.name].type) for field in fields])
        return pa.Table.from_arrays([columns[field.name] for field in fields], schema=schema)

    def _add(self, parts: list[pa.Table], like: int) -> None:
        """Write rows as row groups; texts that are a dictionary in one of the parts are one in the file."""
        fields = []
        for field in physical_schema(self.settings.full_schema):
            kinds = (part.schema.field(field.name).type for part in parts)
            fields.append(field.with_type(next(filter(pt.is_dictionary, kinds), field.type)))
        rows = table_of([batch for part in parts for batch in part.to_batches()], pa.schema(fields))
        for start in range(0, rows.num_rows, self.settings.row_groups.rows):
            self.sink.add(rows.slice(start, self.settings.row_groups.rows), like)


def patched_column(stored: pa.ChunkedArray, rows: Numbers, values: pa.Array) -> pa.ChunkedArray | None:
    """Return a column with other values in some rows; None if they have these values already.

    Args:
        stored: the column; texts may be a dictionary.
        rows: numbers of the rows, ascending.
        values: a value for each of them; repeating texts may be a dictionary.
    """
    new = without_dictionary(values)
    if is_vector(new.type):
        new = vector_bytes(new)
    if _are_same(without_dictionary(_one(stored.take(pa.array(rows)))), new):
        return None
    if pt.is_dictionary(stored.type) or pt.is_nested(stored.type):
        added = pc.dictionary_encode(new).cast(stored.type) if pt.is_dictionary(stored.type) else new
        places = np.arange(len(stored))
        places[rows] = len(stored) + np.arange(len(rows))
        joined = pa.chunked_array([*stored.chunks, added], stored.type)
        joined = joined.unify_dictionaries() if pt.is_dictionary(stored.type) else joined
        return pa.chunked_array([_one(joined).take(pa.array(places))], stored.type)
    mask = np.zeros(len(stored), dtype=bool)
    mask[rows] = True
    return pa.chunked_array([pc.replace_with_mask(_one(stored), pa.array(mask), new)], stored.type)


def _one(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


def one_batch(rows: pa.Table) -> pa.RecordBatch:
    """Return rows, at least one, as a single batch."""
    (batch,) = rows.combine_chunks().to_batches()
    return batch


def without_dictionary(array: pa.Array) -> pa.Array:
    """Return an array without dictionary."""
    return array.cast(array.type.value_type) if pt.is_dictionary(array.type) else array


def _are_same(stored: pa.Array, values: pa.Array) -> bool:
    """Return whether values are stored in the same way: -0.0 differs from 0.0, and one NaN from another."""
    kind = values.type
    if pt.is_floating(kind):
        bits = pa.int64() if kind.bit_width == 64 else pa.int32() if kind.bit_width == 32 else pa.int16()
        return bool(stored.view(bits).equals(values.view(bits)))
    return not _has_floats(kind) and bool(stored.equals(values))


def _has_floats(kind: pa.DataType) -> bool:
    if not pt.is_nested(kind):
        return bool(pt.is_floating(kind))
    return any(_has_floats(kind.field(place).type) for place in range(kind.num_fields))


_NONE: Final[Numbers] = np.zeros(0, dtype=np.int64)


def patch_source_of(settings: FileSettings, storage: Storage, target: FileSlice) -> ChunkSource | None:
    """Return a slice's base file as the source of its successor; None if that has to be written anew.

    Args:
        settings: settings of the write.
        storage: storage of the table.
        target: the slice.

    Raises:
        CorruptTableError: the base file is missing or damaged.
    """
    config, base = settings.config, target.base
    if base is None or base.source is not None or not is_parquet(base.status.path):
        return None
    if config.renames(base.instant) is not None:
        return None
    if config.has_sorted_files or config.cdc_enabled or not config.populate_meta_fields:
        return None
    return patch_source(storage, base.status.path, settings.full_schema, settings.compression)


@dataclass(frozen=True, slots=True)
class Patch:
    """A merge.

    Attributes:
        settings: settings of the write.
        storage: storage of the table.
        target: the slice to rewrite.
        source: its base file.
        footer: footer of the base file.
        handle: the changes.
        meta_columns: writes the meta columns.
    """

    settings: FileSettings
    storage: Storage
    target: FileSlice
    source: ChunkSource
    footer: BaseFooter
    handle: MergeHandle
    meta_columns: MetaColumnWriter

    def write(self, context: TaskContext) -> WriteStat | None:
        """Write the successor; None, and no file, if no change takes effect.

        Args:
            context: the task attempt.

        Raises:
            CorruptTableError: the base file is missing or damaged.
        """
        handle = self.handle
        with patched_file(self.storage, self.source, self.footer.metadata) as file:
            changes = self._changes(file)
            if not (handle.has_changed or handle.has_new):
                return None
            target = self.target
            writer = SuccessorWriter(self.settings, self.storage, target, context.write_token, self.source)
            try:
                new = self._write(file, changes, writer)
            except BaseException:
                writer.abort()
                raise
        return writer.close(
            inserts=new,
            updates=handle.updates,
            deletes=handle.deletes,
            deleted_keys=handle.deleted_keys,
        )

    def _write(self, file: PatchedFile, changes: list[GroupChanges], writer: SuccessorWriter) -> int:
        """Write the row groups, and return the number of new records."""
        sink = writer.patched
        new = self._new_records(writer.name)
        groups = PatchedGroups(self.settings, file, sink, self.handle, self.meta_columns, writer.name)
        groups.write(changes, new)
        keys = pa.array([], pa.string()) if new is None else new.column(RECORD_KEY)
        gone = sum(len(each.deleted) for each in changes)
        writer.count(self.footer.metadata.num_rows - gone + len(keys), keys)
        sink.add_entries(self._entries(file, keys))
        return len(keys)

    def _new_records(self, name: str) -> pa.RecordBatch | None:
        for records, is_known in self.handle.surviving_records():
            if not is_known:
                return self.meta_columns.apply(one_batch(records), name)
        return None

    def _entries(self, file: PatchedFile, new: pa.Array) -> dict[str, str]:
        entries = entries_of(self.settings.avro_schema)
        if not self.settings.bloom:
            return entries
        stored = self.footer.metadata.metadata or {}
        texts = {key.decode(errors="replace"): text.decode(errors="replace") for key, text in stored.items()}
        extended = extended_footer(texts, self.footer.metadata.num_rows, new, self.settings.bloom)
        if extended is not None:
            return entries | extended
        summary = KeySummary(rate=self.settings.bloom)
        for group in range(len(file.group_rows)):
            for chunk in file.columns(group, [RECORD_KEY]).column(0).chunks:
                summary.add(chunk)
        summary.add(new)
        return entries | summary.footer()

    def _changes(self, file: PatchedFile) -> list[GroupChanges]:
        """Return the changes to each row group."""
        config = self.settings.config
        names = [RECORD_KEY, *ordering_columns(config, self.settings.schema)]
        keys = self.handle.keys.cast(pa.binary())
        applied = [
            self._applied(file, group, names) if _may_have_keys(file, group, keys) else Applied(*[_NONE] * 3)
            for group in range(len(file.group_rows))
        ]
        is_written = ~self.handle.lost
        changes = []
        for each in applied:
            changes.append(_changes_of(each, is_written))
            is_written[each.positions] = False
        return changes

    def _applied(self, file: PatchedFile, group: int, names: Sequence[str]) -> Applied:
        parts: list[Applied] = []
        done = 0
        for batch in file.columns(group, names).to_batches(max_chunksize=BATCH_ROWS):
            each = self.handle.applied(_decoded(batch))
            parts.append(Applied(each.rows + done, each.positions, each.deleted + done))
            done += batch.num_rows
        rows, positions, deleted = (
            np.concatenate([_NONE, *column])
            for column in zip(*((each.rows, each.positions, each.deleted) for each in parts), strict=True)
        )
        return Applied(rows, positions, deleted)


class SuccessorWriter(BaseFileWriter):
    """Writes a base file of which the row groups are given to `patched_column`.

    Args:
        settings: settings of the write.
        storage: storage of the table.
        target: the slice that it supersedes.
        write_token: write token of the task attempt.
        source: the base file of the slice.
        notes_keys: whether `count` gets the keys of all new records.
    """

    def __init__(
        self,
        settings: FileSettings,
        storage: Storage,
        target: FileSlice,
        write_token: str,
        source: ChunkSource,
        *,
        notes_keys: bool = True,
    ) -> None:
        self._source = source
        super().__init__(settings, storage, target.partition, target.file_id, write_token, target)
        self._new_keys = [] if notes_keys else None

    def _opened(self, settings: FileSettings, storage: Storage, former: BaseFooter | None) -> PatchedSink:
        self.patched = PatchedSink(
            storage,
            self.path,
            self._source,
            settings.full_schema,
            settings.compression,
            settings.summarized,
        )
        return self.patched

    def count(self, rows: int, new: pa.Array) -> None:
        """Count the rows of the file.

        Args:
            rows: their number.
            new: the keys of new records among them.
        """
        self.rows = rows
        self._note(new)


def _changes_of(applied: Applied, is_written: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> GroupChanges:
    """Return the changes to a row group.

    Of rows with the same key, which a table may have, the first one is replaced and the others are deleted.

    Args:
        applied: what the changes did to its rows.
        is_written: which records have yet to be written.
    """
    _, first = np.unique(applied.positions, return_index=True)
    is_first = np.zeros(len(applied.positions), dtype=bool)
    is_first[first] = True
    records = np.where(is_first & is_written[applied.positions], applied.positions, -1)
    rows = np.concatenate([applied.rows, applied.deleted])
    records = np.concatenate([records, np.full(len(applied.deleted), -1)])
    rows, places = np.unique(rows, return_index=True)
    return GroupChanges(rows, records[places])


def _may_have_keys(file: PatchedFile, group: int, keys: pa.Array) -> bool:
    """Return whether a row group may have any of the keys (binary), by its footer."""
    bounds = file.bounds(group, RECORD_KEY)
    if bounds is None or not all(isinstance(bound, bytes) for bound in bounds):
        return True
    least, greatest = (pa.scalar(bound, pa.binary()) for bound in bounds)
    inside = pc.and_(pc.greater_equal(keys, least), pc.less_equal(keys, greatest))
    return bool(pc.any(inside).as_py())


def _decoded(batch: pa.RecordBatch) -> pa.RecordBatch:
    columns = [
        each.dictionary_decode() if pa.types.is_dictionary(each.type) else each for each in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)
