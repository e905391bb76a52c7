"""One schema for rows from several files, and their rows as one stream."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from drawstring.base.errors import CorruptTableError, DrawstringError, InvalidError, UnavailableError
from drawstring.schema.evolve import conform, evolve


def merged(schemas: Iterable[tuple[str, pa.Schema]]) -> pa.Schema:
    """Return the schema that can hold the rows of several files.

    Args:
        schemas: name and columns of each file.

    Raises:
        InvalidError: a column has types in two files that no type takes in.
    """
    result = pa.schema([])
    for name, schema in schemas:
        try:
            result = evolve(result, optional(schema))
        except InvalidError as error:
            raise error.at(path=name) from error.__cause__
    return result


def optional(schema: pa.Schema) -> pa.Schema:
    """Return a schema whose columns may all be null, without those that are nothing but null."""
    return pa.schema([field.with_nullable(True) for field in schema if not pt.is_null(field.type)])


def reader_of(
    schema: pa.Schema, files: Iterable[tuple[str, Iterable[pa.RecordBatch]]]
) -> pa.RecordBatchReader:
    """Return the rows of files as one stream.

    Args:
        schema: the columns.
        files: name and rows of each file.
    """

    def rows() -> Iterator[pa.RecordBatch]:
        for name, batches in files:
            with source_file(name):
                for batch in batches:
                    yield conform(batch, schema)

    return pa.RecordBatchReader.from_batches(schema, rows())


@contextmanager
def source_file(name: str) -> Iterator[None]:
    """Translate what goes wrong with a file of a source, which is no file of the table.

    Raises:
        InvalidError: the file cannot be read as what it should be.
        UnavailableError: the file is gone.
    """
    try:
        yield
    except FileNotFoundError as error:
        raise UnavailableError("A file of the source was deleted before it was read.", path=name) from error
    except CorruptTableError as error:
        message = "A file of the source cannot be read: it is damaged, or of another format. Move it away."
        raise InvalidError(message, path=name) from error
    except DrawstringError as error:
        raise error.at(path=name) from error.__cause__
    except pa.ArrowInvalid as error:
        told = " ".join(str(error).split())
        raise InvalidError(
            f"A file of the source cannot be read ({told}). Move it away, or give the types of its columns"
            " with hoodie.streamer.schemaprovider.source.schema.file.",
            path=name,
        ) from error


def with_times(table: pa.Table, known: pa.Schema) -> pa.Table:
    """Return rows whose times are no longer text, where the type of the column is known.

    Args:
        table: the rows.
        known: columns whose types are known. A time zone that the text lacks is UTC.
    """
    for at, field in enumerate(table.schema):
        kind = known.field(field.name).type if field.name in known.names else None
        if kind is not None and pt.is_timestamp(kind) and pt.is_string(field.type):
            table = table.set_column(at, field.name, _times(table.column(at), kind))
    return table


def _times(texts: pa.ChunkedArray, kind: pa.TimestampType) -> pa.ChunkedArray:
    if kind.tz is None:
        return texts.cast(kind)
    try:
        return texts.cast(kind)
    except pa.ArrowInvalid:
        return pc.assume_timezone(texts.cast(pa.timestamp(kind.unit)), kind.tz)
