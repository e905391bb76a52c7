"""Row groups of the successor of a base file: which columns of them are encoded, and with which values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from drawstring.filegroups.write.field_merge_handle import Numbers
from drawstring.filegroups.write.merge_handle import MergeHandle
from drawstring.filegroups.write.meta_columns import MetaColumnWriter, constant
from drawstring.filegroups.write.settings import FileSettings
from drawstring.formats.parquet.encoding import physical
from drawstring.formats.parquet.patched import PatchedFile, PatchedSink
from drawstring.formats.parquet.write import table_of
from drawstring.schema.logical_types import is_vector, vector_bytes
from drawstring.schema.meta import FILE_NAME, PARTITION_PATH, RECORD_KEY

_SMALL_GROUP_ROWS: Final = 4_096
"""Rows of a row group that always takes new records, if it is the last one."""

_TAIL_TIMES: Final = 4
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
                size > max(_SMALL_GROUP_ROWS, _TAIL_TIMES * rows)
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
                column = patched(stored.column(name), changes.updated, updates.column(name))
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
                column = patched(columns[name], changes.updated, updates.column(name))
                columns[name] = columns[name] if column is None else column
        columns[FILE_NAME] = self._own_name(rows.num_rows)
        table = self._table(columns)
        if not len(changes.deleted):
            return table
        keep = np.ones(rows.num_rows, dtype=bool)
        keep[changes.deleted] = False
        return table.filter(pa.array(keep))

    def _own_name(self, rows: int) -> pa.ChunkedArray:
        return pa.chunked_array([constant(self.name, rows)])

    def _table(self, columns: dict[str, pa.ChunkedArray]) -> pa.Table:
        """Return columns as a table, in the order of the file."""
        fields = [field for field in self.settings.full_schema if field.name in columns]
        schema = pa.schema([field.with_type(columns[field.name].type) for field in fields])
        return pa.Table.from_arrays([columns[field.name] for field in fields], schema=schema)

    def _add(self, parts: list[pa.Table], like: int) -> None:
        """Write rows as row groups; texts that are a dictionary in one of the parts are one in the file."""
        fields = []
        for field in physical(self.settings.full_schema):
            kinds = (part.schema.field(field.name).type for part in parts)
            fields.append(field.with_type(next(filter(pt.is_dictionary, kinds), field.type)))
        rows = table_of([batch for part in parts for batch in part.to_batches()], pa.schema(fields))
        for start in range(0, rows.num_rows, self.settings.row_groups.rows):
            self.sink.add(rows.slice(start, self.settings.row_groups.rows), like)


def patched(stored: pa.ChunkedArray, rows: Numbers, values: pa.Array) -> pa.ChunkedArray | None:
    """Return a column with other values in some rows; None if they have these values already.

    Args:
        stored: the column; texts may be a dictionary.
        rows: numbers of the rows, ascending.
        values: a value for each of them; repeating texts may be a dictionary.
    """
    new = plain(values)
    if is_vector(new.type):
        new = vector_bytes(new)
    if _are_same(plain(_one(stored.take(pa.array(rows)))), new):
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


def plain(array: pa.Array) -> pa.Array:
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
