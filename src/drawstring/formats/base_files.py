"""Reading of base files in any format, which their file extension determines.

.parquet   columns, row groups and rows are filtered while reading (`parquet.read`)
.orc       columns are filtered while reading, rows afterwards
.hfile     the values are Avro records of the file's own schema; a block at a time
.lance     columns are filtered while reading, rows afterwards
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.errors import CorruptTableError, UnsupportedError
from drawstring.formats.base_footer import has_footer, open_footer
from drawstring.formats.conditions import bound_columns, keep_rows, with_table_types
from drawstring.formats.file_errors import about_file
from drawstring.formats.hfile import HFileReader, read_hfile_records
from drawstring.formats.lance.read import open_lance_schema, read_open_lance
from drawstring.formats.orc.read import open_orc_schema, read_open_orc
from drawstring.formats.parquet import ParquetQuery, parquet_schema, read_parquet
from drawstring.formats.wanted_rows import AskedRows
from drawstring.model.files import FORMAT_NAMES, HFILE, LANCE, ORC, PARQUET, file_extension
from drawstring.schema.avro import avro_to_arrow
from drawstring.schema.evolve import conform
from drawstring.storage.protocol import Storage


@dataclass(frozen=True, slots=True)
class Selection:
    """Which columns and rows of a base file to read.

    Attributes:
        columns: top-level columns, in this order; those that the file lacks are omitted.
        where: predicate of the rows, in which columns that the file lacks are null; None for all rows.
        types: the table's columns: `where` is evaluated with these types, and columns of files other than
            Parquet are cast to them.
        constants: columns with a known value, with which `where` is evaluated instead of the file's values.
        keys: the only record keys that rows of `where` can have; None for any.
    """

    columns: Sequence[str]
    where: pc.Expression | None = None
    types: pa.Schema | None = None
    constants: Mapping[str, pa.Scalar] = field(default_factory=dict)
    keys: Sequence[str] | None = None


def read_base(storage: Storage, path: str, selection: Selection) -> Iterator[pa.RecordBatch]:
    """Yield rows of a base file, in its order, a bounded batch at a time.

    Args:
        storage: storage of the table.
        path: path of the file, relative to the table's root.
        selection: the columns and rows to read.

    Raises:
        CorruptTableError: the file is missing or damaged.
        InvalidError: the predicate does not fit the columns' types.
        UnsupportedError: this release cannot read the file's format.
    """
    if is_parquet(path):
        query = ParquetQuery(
            selection.columns,
            selection.where,
            types=selection.types,
            constants=selection.constants,
            keys=selection.keys,
        )
        yield from read_parquet(storage, path, query)
        return
    names = list(selection.columns)
    if selection.where is None:
        yield from _rows(storage, path, AskedRows(names), selection.types)
    else:
        yield from _matching_rows(storage, path, selection, selection.where)


def base_schema(storage: Storage, path: str) -> pa.Schema:
    """Return the schema of a base file.

    Raises:
        CorruptTableError: the file is missing or damaged.
        UnsupportedError: this release cannot read the file's format.
    """
    extension = file_extension(path)
    if extension == PARQUET:
        return parquet_schema(storage, path)
    with about_file(path, FORMAT_NAMES.get(extension, extension)), storage.open(path) as file:
        return open_schema(file, extension, storage.local_path(path))


def is_parquet(path: str) -> bool:
    """Return whether a base file is a Parquet file."""
    return file_extension(path) == PARQUET


def _matching_rows(
    storage: Storage, path: str, selection: Selection, where: pc.Expression
) -> Iterator[pa.RecordBatch]:
    schema, constants = base_schema(storage, path), selection.constants
    known = pa.schema([(name, value.type) for name, value in constants.items()])
    bound = bound_columns(where, with_table_types(known, with_table_types(schema, selection.types)))
    stored = {*schema.names}
    requested = [name for name in selection.columns if name in stored]
    in_predicate = [name for name in bound.names if name in stored and name not in constants]
    needed = list(dict.fromkeys([*requested, *in_predicate]))
    asked = AskedRows(needed, where, bound, constants.keys(), selection.keys)
    for batch in _rows(storage, path, asked, selection.types):
        yield keep_rows(batch, where, bound, constants).select(requested)


def _rows(storage: Storage, path: str, asked: AskedRows, types: pa.Schema | None) -> Iterator[pa.RecordBatch]:
    extension = file_extension(path)
    with about_file(path, FORMAT_NAMES.get(extension, extension)), storage.open(path) as file:
        for batch in open_rows(file, extension, storage.local_path(path), asked):
            yield batch if types is None else conform(batch, with_types(batch.schema, types))


def open_rows(
    file: pa.NativeFile, extension: str, local: str | None, asked: AskedRows
) -> Iterator[pa.RecordBatch]:
    """Yield rows of an open file in a format other than Parquet, a bounded batch at a time.

    Args:
        file: the file, open for random access.
        extension: of its name, which tells the format.
        local: its path on this machine; None if it has none.
        asked: the rows. Nothing is read of a file whose footer excludes all of them.

    Raises:
        UnsupportedError: this release cannot read the format.
    """
    if not asked.are_all and has_footer(extension) and not open_footer(file, extension).may_have(asked):
        return
    if extension == ORC:
        yield from read_open_orc(file, asked)
    elif extension == LANCE:
        yield from read_open_lance(file, local, asked)
    elif extension == HFILE:
        yield from _hfile_rows(HFileReader(file, file.size()), asked)
    else:
        raise _unsupported(extension)


def _hfile_rows(reader: HFileReader, asked: AskedRows) -> Iterator[pa.RecordBatch]:
    for batch in read_hfile_records(reader.scan(), _schema_json(reader), asked.columns):
        names = batch.schema.names
        columns = names if asked.columns is None else [name for name in asked.columns if name in names]
        for start in range(0, batch.num_rows, asked.batch_rows):
            yield batch.select(columns).slice(start, asked.batch_rows)


def open_schema(file: pa.NativeFile, extension: str, local: str | None) -> pa.Schema:
    """Return the schema of an open file in a format other than Parquet; see `open_rows`."""
    if extension == ORC:
        return open_orc_schema(file)
    if extension == LANCE:
        return open_lance_schema(file, local)
    if extension == HFILE:
        return avro_to_arrow(_schema_json(HFileReader(file, file.size())), with_unions=True)
    raise _unsupported(extension)


def _schema_json(reader: HFileReader) -> str:
    schema_json = reader.schema_json
    if schema_json is None:
        raise CorruptTableError("The HFile has no record schema. Restore it from a backup.")
    return schema_json


def with_types(stored: pa.Schema, types: pa.Schema) -> pa.Schema:
    """Return the columns of a file, with the table's types for columns that the table has."""
    return pa.schema(
        [types.field(each.name).with_nullable(True) if each.name in types.names else each for each in stored]
    )


def _unsupported(extension: str) -> UnsupportedError:
    return UnsupportedError(
        f"Base files {extension or 'without an extension'} are not supported, only Parquet, ORC, HFile and"
        " Lance. Read the table with Apache Hudi."
    )
