"""Reader of base files that joins bootstrap skeleton files with the rows of their source files.

base file    meta columns ──┐ row by row
source file  own columns  ──┴──> rows     a partition column that neither has comes from the folder's name

Only the meta columns are read if no other is wanted, and only the source if none of them is. A change of the
source breaks the table: another number of rows is noticed, other values are not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.errors import CorruptTableError
from drawstring.config.table_config import TableConfig
from drawstring.formats.data_file import Selection, base_schema, read_base
from drawstring.formats.filter import bound_columns, keep_rows, where_columns, with_table_types
from drawstring.keygen.partition_path import path_values
from drawstring.model.files import BaseFile
from drawstring.schema.fields import META_COLUMNS, constants_of
from drawstring.storage import open_spec
from drawstring.storage.protocol import Storage, StorageSpec

_LOCAL: Final = re.compile(r"file:/*(?=/)")


def base_rows_of(
    storage: Storage, base: BaseFile, selection: Selection, types: pa.Schema, config: TableConfig
) -> Iterator[pa.RecordBatch]:
    """Yield rows of a base file, in its order, a bounded batch at a time.

    Args:
        storage: the table's files.
        base: the base file.
        selection: columns and rows.
        types: types of the table's columns.
        config: the table.

    Raises:
        CorruptTableError: a file is missing or damaged, or the source file was changed since the bootstrap.
        InvalidError: the condition does not fit the columns' types.
        UnsupportedError: this release cannot read a file.
    """
    if base.source is None:
        return read_base(storage, base.status.path, selection)
    return _Stitched(storage, base, selection, types, config).rows(base.source)


def source_storage(table: StorageSpec, uri: str) -> tuple[Storage, str]:
    """Return the storage of the folder of a source file, and the name of the file in it.

    Args:
        table: storage of the table; its options also open the source.
        uri: address of the file.
    """
    folder, _, name = _LOCAL.sub("", uri).rpartition("/")
    return open_spec(replace(table, uri=folder or "/")), name


@dataclass(frozen=True, slots=True)
class _Stitched:
    """One read of a skeleton base file and its source file."""

    storage: Storage
    base: BaseFile
    selection: Selection
    types: pa.Schema
    config: TableConfig

    def rows(self, uri: str) -> Iterator[pa.RecordBatch]:
        """Yield the rows; read only the files that have needed columns."""
        columns, where = self.selection.columns, self.selection.where
        looks_at = [] if where is None else where_columns(where, self.types)
        needed = dict.fromkeys((*columns, *looks_at))
        source, name = source_storage(self.storage.spec, uri)
        values = self._folder_values(source, name, needed)
        stored = [each for each in needed if each not in values]
        own = [each for each in stored if each not in META_COLUMNS]
        constants = {**self.selection.constants, **constants_of(values, self.types)}
        selection = replace(self.selection, constants=constants, keys=None)
        if not own:
            batches = read_base(self.storage, self.base.status.path, selection)
        elif len(own) == len(stored):
            batches = read_base(source, name, selection)
        else:
            both = self._side_by_side(source, name, stored)
            batches = both if where is None else (_matching(each, where, selection) for each in both)
        for batch in batches:
            filled = with_values(batch, values, self.types)
            present = {*filled.schema.names}
            yield filled.select([each for each in columns if each in present])

    def _folder_values(self, source: Storage, name: str, needed: Iterable[str]) -> Mapping[str, Any]:
        """Return the values of partition columns that the source rows lack."""
        if not any(field in self.config.partition_fields for field in needed):
            return {}
        present = base_schema(source, name).names
        values = path_values(self.base.status.folder, self.config, self.types)
        return {field: value for field, value in values.items() if field in needed and field not in present}

    def _side_by_side(self, source: Storage, name: str, needed: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the columns of both files, row by row."""
        meta = [each for each in needed if each in META_COLUMNS]
        own = [each for each in needed if each not in META_COLUMNS]
        left = read_base(self.storage, self.base.status.path, Selection(meta))
        right = read_base(source, name, Selection(own, types=self.selection.types))
        for rows, others in side_by_side(left, right):
            columns = [*rows.columns, *others.columns]
            yield pa.RecordBatch.from_arrays(columns, names=[*rows.schema.names, *others.schema.names])


def side_by_side(
    left: Iterator[pa.RecordBatch], right: Iterator[pa.RecordBatch]
) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
    """Yield the batches of two streams with equally many rows, sliced at the same rows.

    Raises:
        CorruptTableError: one stream has more rows than the other.
    """
    one = other = None
    while True:
        one, other = _next(one, left), _next(other, right)
        if one is None or other is None:
            break
        rows = min(one.num_rows, other.num_rows)
        yield one.slice(0, rows), other.slice(0, rows)
        one, other = one.slice(rows), other.slice(rows)
    if one is not None or other is not None:
        raise CorruptTableError(
            "The number of rows of a bootstrap source file has changed since the bootstrap. Restore the file"
            " from a backup."
        )


def with_values(batch: pa.RecordBatch, values: Mapping[str, Any], schema: pa.Schema) -> pa.RecordBatch:
    """Return the batch with those constant columns that `schema` has.

    Args:
        batch: rows, with or without these columns.
        values: value by column.
        schema: says the types.
    """
    for name, value in values.items():
        if name not in schema.names:
            continue
        column = pa.repeat(pa.scalar(value, schema.field(name).type), batch.num_rows)
        place = batch.schema.get_field_index(name)
        if place >= 0:
            batch = batch.set_column(place, schema.field(name), column)
        else:
            batch = batch.append_column(schema.field(name), column)
    return batch


def _next(rest: pa.RecordBatch | None, batches: Iterator[pa.RecordBatch]) -> pa.RecordBatch | None:
    """Return the rest of a batch, or the next batch that has rows."""
    if rest is not None and rest.num_rows:
        return rest
    return next((batch for batch in batches if batch.num_rows), None)


def _matching(batch: pa.RecordBatch, where: pc.Expression, selection: Selection) -> pa.RecordBatch:
    known = pa.schema([(name, value.type) for name, value in selection.constants.items()])
    types = with_table_types(batch.schema, selection.types)
    return keep_rows(batch, where, bound_columns(where, with_table_types(known, types)), selection.constants)
