"""Base files of any format, told apart by their names.

.parquet   columns, rows and row groups are chosen while reading (`parquet_read`)
.orc       columns are chosen while reading, rows afterwards; a stripe at a time
.hfile     the values are Avro records of the file's own schema; a block at a time
.lance     not read
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.bounds import BATCH_ROWS
from drawstring.base.errors import CorruptTableError, UnsupportedError
from drawstring.formats.conditions import bound_columns, keep_rows, with_table_types
from drawstring.formats.file_errors import about_file
from drawstring.formats.hfile import HFileReader, read_hfile_records
from drawstring.formats.orc.read import orc_schema, read_orc
from drawstring.formats.parquet import ParquetQuery, parquet_schema, read_parquet
from drawstring.model.files import file_extension
from drawstring.schema.avro import avro_to_arrow
from drawstring.schema.evolve import conform
from drawstring.storage.protocol import Storage

_PARQUET, _ORC, _HFILE, _LANCE = ".parquet", ".orc", ".hfile", ".lance"
_HFILE_KIND = "HFile"


@dataclass(frozen=True, slots=True)
class Selection:
    """Which columns and rows of a base file to read.

    Attributes:
        columns: top-level columns, in this order; those that the file lacks are left out.
        where: which rows; a column that the file lacks is null in it. None for all.
        types: the table's columns: `where` sees its columns with these types, and what a file other
            than Parquet holds is turned into them.
        constants: columns whose value is known: `where` sees it in every row, whatever the file says.
        keys: record keys that rows of `where` can have at most; None for any.
    """

    columns: Sequence[str]
    where: pc.Expression | None = None
    types: pa.Schema | None = None
    constants: Mapping[str, pa.Scalar] = field(default_factory=dict)
    keys: Sequence[str] | None = None


def read_base(storage: Storage, path: str, selection: Selection) -> Iterator[pa.RecordBatch]:
    """Yield rows of a base file, in its order, a bounded batch at a time.

    Args:
        storage: where the file is.
        path: its path relative to the table's root.
        selection: columns and rows.

    Raises:
        CorruptTableError: the file is missing or damaged.
        InvalidError: the condition does not fit the columns' types.
        UnsupportedError: a file of a format that this release cannot read.
    """
    if is_parquet(path):
        asked = ParquetQuery(
            selection.columns,
            selection.where,
            types=selection.types,
            constants=selection.constants,
            keys=selection.keys,
        )
        yield from read_parquet(storage, path, asked)
        return
    names = list(selection.columns)
    if selection.where is None:
        batches = _all_rows(storage, path, names, selection.types)
    else:
        batches = _matching_rows(storage, path, selection, selection.where)
    for batch in batches:
        for start in range(0, batch.num_rows, BATCH_ROWS):
            yield batch.slice(start, BATCH_ROWS)


def base_schema(storage: Storage, path: str) -> pa.Schema:
    """Return the columns of a base file.

    Raises:
        CorruptTableError: the file is missing or damaged.
        UnsupportedError: a file of a format that this release cannot read.
    """
    extension = file_extension(path)
    if extension == _PARQUET:
        return parquet_schema(storage, path)
    if extension == _ORC:
        return orc_schema(storage, path)
    if extension == _HFILE:
        with about_file(path, _HFILE_KIND), storage.open(path) as file:
            return avro_to_arrow(_schema_json(HFileReader(file, file.size())), with_unions=True)
    raise _unsupported(path, extension)


def is_parquet(path: str) -> bool:
    """Tell whether a base file is a Parquet file."""
    return file_extension(path) == _PARQUET


def _matching_rows(
    storage: Storage, path: str, selection: Selection, where: pc.Expression
) -> Iterator[pa.RecordBatch]:
    schema, constants = base_schema(storage, path), selection.constants
    known = pa.schema([(name, value.type) for name, value in constants.items()])
    bound = bound_columns(where, with_table_types(known, with_table_types(schema, selection.types)))
    wanted = [name for name in selection.columns if name in schema.names]
    looks_at = [name for name in bound.names if name in schema.names and name not in constants]
    needed = list(dict.fromkeys([*wanted, *looks_at]))
    for batch in _all_rows(storage, path, needed, selection.types):
        yield keep_rows(batch, where, bound, constants).select(wanted)


def _all_rows(
    storage: Storage, path: str, columns: Sequence[str], types: pa.Schema | None
) -> Iterator[pa.RecordBatch]:
    for batch in _stored_rows(storage, path, columns):
        yield batch if types is None else conform(batch, _typed(batch.schema, types))


def _stored_rows(storage: Storage, path: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    extension = file_extension(path)
    if extension == _ORC:
        yield from read_orc(storage, path, columns)
    elif extension == _HFILE:
        with about_file(path, _HFILE_KIND), storage.open(path) as file:
            reader = HFileReader(file, file.size())
            for batch in read_hfile_records(reader.scan(), _schema_json(reader), columns):
                yield batch.select([name for name in columns if name in batch.schema.names])
    else:
        raise _unsupported(path, extension)


def _schema_json(reader: HFileReader) -> str:
    schema_json = reader.schema_json
    if schema_json is None:
        raise CorruptTableError("the HFile does not say what its records are: restore it from a backup")
    return schema_json


def _typed(stored: pa.Schema, types: pa.Schema) -> pa.Schema:
    """Return the columns of a file with the table's types, where the table has them."""
    return pa.schema(
        [types.field(each.name).with_nullable(True) if each.name in types.names else each for each in stored]
    )


def _unsupported(path: str, extension: str) -> UnsupportedError:
    if extension == _LANCE:
        return UnsupportedError(
            "Lance base files cannot be read yet: read the table with Apache Hudi and the package lance",
            path=path,
        )
    return UnsupportedError(
        f"base files {extension or 'without an ending'} cannot be read: only Parquet, ORC and HFile ones",
        path=path,
    )
