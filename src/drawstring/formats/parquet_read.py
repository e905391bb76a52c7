"""Read base files and Parquet log blocks as a stream of record batches.

    footer -> row groups that `where` cannot rule out -> batches -> rows that `where` keeps

One row group is in memory at a time (several small ones together).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from drawstring.base.bounds import BATCH_ROWS
from drawstring.base.errors import REPAIR, CorruptTableError, InvalidError, UnavailableError, UnsupportedError
from drawstring.formats.bloom import BloomFilter
from drawstring.formats.key_summary import FILTER, FILTER_TYPE, reusable_filter
from drawstring.formats.partition_match import guarantee
from drawstring.formats.row_groups import groups_that_may_match
from drawstring.storage.protocol import Storage

READ_AHEAD_BYTES: Final = 32 << 20
"""Uncompressed bytes of small row groups that are read together."""

_INDEX: Final = "\0row"
_NO_MATCH: Final = re.compile(r"No match for FieldRef\.(?:Nested\(FieldRef\.)?Name\((.*?)\)[ )]")


def read_parquet(
    storage: Storage,
    path: str,
    *,
    columns: Sequence[str] | None = None,
    where: pc.Expression | None = None,
    batch_rows: int = BATCH_ROWS,
    types: pa.Schema | None = None,
    constants: Mapping[str, pa.Scalar] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file, in its order, a bounded batch at a time.

    Args:
        storage: where the file is.
        path: its path relative to the table's root.
        columns: top-level columns to yield, in this order; those that the file lacks are left out.
            None yields all.
        where: which rows to yield; a column that the file lacks is null in it.
        batch_rows: most rows in a batch.
        types: types that `where` sees its columns with, when the file may hold narrower ones.
        constants: columns whose value is known: `where` sees it in every row, whatever the file
            says. They are not among the columns yielded unless the file has them.

    Raises:
        CorruptTableError: the file is missing or damaged.
        InvalidError: `where` does not fit the columns' types, or fails on a row.
    """
    with _about(path), storage.open(path) as file:
        yield from _batches(file, _Query(columns, where, batch_rows, types, constants or {}))


def read_parquet_rows(
    storage: Storage, path: str, columns: Sequence[str], dictionaries: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield all rows of a file that is going to be written anew.

    Args:
        storage: where the file is.
        path: its path relative to the table's root.
        columns: top-level columns to yield; those that the file lacks are left out.
        dictionaries: text columns to yield dictionary-encoded, as the writer wants them.

    Raises:
        CorruptTableError: the file is missing or damaged.
    """
    with _about(path), storage.open(path) as file:
        yield from _batches(file, _Query(columns, None, BATCH_ROWS, None, dictionaries=dictionaries))


def read_parquet_bytes(
    data: bytes | pa.Buffer,
    columns: Sequence[str] | None = None,
    *,
    where: pc.Expression | None = None,
    batch_rows: int = BATCH_ROWS,
    types: pa.Schema | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a Parquet file in memory; see `read_parquet`."""
    with _about(None):
        yield from _batches(pa.BufferReader(data), _Query(columns, where, batch_rows, types))


def parquet_schema(storage: Storage, path: str) -> pa.Schema:
    """Return the columns of a file.

    Raises:
        CorruptTableError: the file is missing or damaged.
    """
    with _about(path), storage.open(path) as file:
        return _columns_of(_open(file))


def parquet_footer(storage: Storage, path: str) -> dict[str, str]:
    """Return the key-value entries of a file's footer.

    Raises:
        CorruptTableError: the file is missing or damaged.
    """
    with _about(path), storage.open(path) as file:
        entries: Mapping[bytes, bytes] = pq.read_metadata(file).metadata or {}
        return {key.decode(): value.decode() for key, value in entries.items()}


def former_filter(storage: Storage, path: str) -> BloomFilter | None:
    """Return the bloom filter of a file for the file that takes its place; None when that needs a new one.

    Raises:
        CorruptTableError: the file is missing or damaged.
    """
    with _about(path), storage.open(path) as file:
        metadata = pq.read_metadata(file)
        entries: Mapping[bytes, bytes] = metadata.metadata or {}
        texts = {name: entries.get(name.encode(), b"").decode() for name in (FILTER, FILTER_TYPE)}
        return reusable_filter(texts, metadata.num_rows)


def where_columns(where: pc.Expression, types: pa.Schema) -> list[str]:
    """Return the top-level columns that an expression looks at, whether or not `types` has them.

    Arrow has no call for this, but binding names the first column that it misses: bind to a growing
    schema until it fits.

    Args:
        where: the expression.
        types: types of the columns known; others are taken as null.

    Raises:
        InvalidError: the expression does not fit the types.
    """
    return list(_bound(where, types).names)


def matching_rows(rows: pa.Table, where: pc.Expression) -> pa.Table:
    """Return the rows that an expression keeps.

    Args:
        rows: rows with the expression's columns.
        where: the expression.

    Raises:
        InvalidError: it fails on a value, a sum too large for its type for instance.
    """
    try:
        return rows.filter(where)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidError(f"The condition {where} fails on a row: {_one_line(error)}; change it.") from error


@dataclass(frozen=True, slots=True)
class _Query:
    columns: Sequence[str] | None
    where: pc.Expression | None
    batch_rows: int
    types: pa.Schema | None
    constants: Mapping[str, pa.Scalar] = field(default_factory=dict)
    dictionaries: Sequence[str] = ()


@contextmanager
def _about(path: str | None) -> Iterator[None]:
    """Turn what Arrow and the file system raise into our errors, which name the file."""
    try:
        yield
    except FileNotFoundError as error:
        message = (
            "A data file of the table is missing: restore it, or list again if it was cleaned meanwhile."
        )
        raise CorruptTableError(message, path=path) from error
    except pa.ArrowNotImplementedError as error:
        message = f"Arrow cannot read this Parquet file: {_one_line(error)}"
        raise UnsupportedError(message, path=path) from error
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowKeyError, UnicodeDecodeError) as error:
        raise _damaged(error, path) from error
    except OSError as error:
        # Arrow reports damaged pages as OSError as well, but those carry no error number.
        if error.errno is None:
            raise _damaged(error, path) from error
        message = f"The Parquet file cannot be read now: {_one_line(error)}"
        raise UnavailableError(message, path=path) from error


def _damaged(error: Exception, path: str | None) -> CorruptTableError:
    message = f"The Parquet file is damaged ({_one_line(error)}); {REPAIR}."
    return CorruptTableError(message, path=path)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _open(
    file: pa.NativeFile, metadata: pq.FileMetaData | None = None, dictionaries: Sequence[str] = ()
) -> pq.ParquetFile:
    return pq.ParquetFile(
        file,
        metadata=metadata,
        read_dictionary=list(dictionaries),
        coerce_int96_timestamp_unit="us",
        pre_buffer=not isinstance(file, pa.BufferReader),
    )


def _columns_of(parquet: pq.ParquetFile) -> pa.Schema:
    """Return the file's columns without metadata: the footer's entries would travel with each batch."""
    return pa.schema([field.remove_metadata() for field in parquet.schema_arrow])


def _batches(file: pa.NativeFile, query: _Query) -> Iterator[pa.RecordBatch]:
    if query.where is not None:
        yield from _matching(file, query, query.where)
        return
    parquet = _open(file, dictionaries=query.dictionaries)
    names = _wanted(query, _columns_of(parquet))
    yield from _rows(parquet, range(parquet.num_row_groups), names, query.batch_rows)


def _matching(file: pa.NativeFile, query: _Query, where: pc.Expression) -> Iterator[pa.RecordBatch]:
    files = ds.ParquetFileFormat(coerce_int96_timestamp_unit="us")
    fragment = files.make_fragment(file, partition_expression=guarantee(query.constants))
    parquet = _open(file, fragment.metadata, query.dictionaries)
    present = _columns_of(parquet)
    known = pa.schema([(name, value.type) for name, value in query.constants.items()])
    bound = _bound(where, _typed(known, _typed(present, query.types)))
    wanted = _wanted(query, present)
    looks_at = [name for name in bound.names if name in present.names and name not in query.constants]
    needed = [*wanted, *(name for name in looks_at if name not in wanted)]
    groups = groups_that_may_match(fragment, where, bound, _typed(present, known))
    for batch in _rows(parquet, groups, needed, query.batch_rows):
        kept = _keep(batch, where, bound, query.constants)
        if kept.num_rows:
            yield kept.select(wanted)


def _wanted(query: _Query, present: pa.Schema) -> list[str]:
    if query.columns is None:
        return list(present.names)
    return [name for name in query.columns if name in present.names]


def _rows(
    parquet: pq.ParquetFile, groups: Sequence[int], names: Sequence[str], batch_rows: int
) -> Iterator[pa.RecordBatch]:
    for span in _spans(parquet.metadata, groups):
        for batch in parquet.iter_batches(batch_rows, row_groups=span, columns=names):
            yield batch.select(names).replace_schema_metadata(None)


def _spans(metadata: pq.FileMetaData, groups: Sequence[int]) -> Iterator[list[int]]:
    """Put small neighbouring row groups together, so that each span reads about as much."""
    span: list[int] = []
    size_bytes = 0
    for group in groups:
        group_bytes = metadata.row_group(group).total_byte_size
        if span and size_bytes + group_bytes > READ_AHEAD_BYTES:
            yield span
            span, size_bytes = [], 0
        span.append(group)
        size_bytes += group_bytes
    if span:
        yield span


def _typed(present: pa.Schema, types: pa.Schema | None) -> pa.Schema:
    """Return the file's columns with the table's types, and the table's columns that it lacks."""
    if types is None:
        return present
    extra = [field for field in present if field.name not in types.names]
    return pa.schema([*types, *extra])


def _bound(where: pc.Expression, types: pa.Schema) -> pa.Schema:
    """Return the columns of an expression, typed; those without a known type are null."""
    fields: dict[str, pa.Field] = {}
    while True:
        schema = pa.schema(fields.values())
        try:
            ds.dataset([], schema=schema).scanner(filter=where)
            return schema
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
            missing = _NO_MATCH.match(str(error))
            if missing is None or missing[1] in fields:
                raise InvalidError(f"The condition {where} does not fit the columns: {error}") from error
            name = missing[1]
            fields[name] = types.field(name) if name in types.names else pa.field(name, pa.null())


def _keep(
    batch: pa.RecordBatch, where: pc.Expression, bound: pa.Schema, constants: Mapping[str, pa.Scalar]
) -> pa.RecordBatch:
    """Return the rows that match, with null for the columns that the file lacks."""
    columns = [
        pa.repeat(constants[field.name], batch.num_rows)
        if field.name in constants
        else _condition_column(batch, field)
        for field in bound
    ]
    index = pa.array(np.arange(batch.num_rows, dtype=np.int32))
    facts = pa.table([*columns, index], names=[*bound.names, _INDEX])
    kept = matching_rows(facts, where).column(_INDEX).combine_chunks()
    return batch if len(kept) == batch.num_rows else batch.take(kept)


def _condition_column(batch: pa.RecordBatch, field: pa.Field) -> pa.Array:
    if field.name not in batch.schema.names:
        return pa.nulls(batch.num_rows, field.type)
    column = batch.column(field.name)
    return column if column.type == field.type else column.cast(field.type)
