"""Define the protocols of ingestion sources, and combine the rows and schemas of several files.

A `Source` has rows, and a `SourceProvider` makes one of the options of an ingestion. Providers that need a
library are plug-ins: entry points of the group `drawstring.sources`, whose name is that of the source. Those
of drawstring are in `drawstring.plugins`; users add their own.

`is_within` decides whether two addresses are one place, or one is inside the other.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias, runtime_checkable

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from drawstring.base.clock import Clock
from drawstring.base.errors import (
    CorruptTableError,
    DrawstringError,
    InvalidError,
    UnavailableError,
    UnsupportedError,
)
from drawstring.config.keys.ingest import IngestOptions
from drawstring.engine.spill import SpillingTables
from drawstring.ingestion.checkpoints import Checkpoint
from drawstring.query.scan import Scan
from drawstring.schema.evolution import conform, evolve


@dataclass(frozen=True, slots=True)
class Rejected:
    """A record that cannot be read.

    Attributes:
        place: where it is: a file and the number of the record in it, or a topic, partition and offset.
        content: its bytes.
        reason: what is wrong with it.
    """

    place: str
    content: bytes
    reason: str


Reject: TypeAlias = Callable[[Rejected], None]
"""Takes a record that cannot be read, or raises an `InvalidError` that says so."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How the rows of a batch are read.

    Attributes:
        known: columns whose types are known. They decide where what is read says less, as text does; other
            columns come as they are.
        reject: takes records that cannot be read.
        is_strict: whether records whose values do not fit the known columns are rejected.
    """

    known: pa.Schema
    reject: Reject
    is_strict: bool = False

    def type_of(self, column: str) -> pa.DataType | None:
        """Return the type of a column, None if it is not known."""
        at = self.known.get_field_index(column)
        return self.known.field(at).type if at >= 0 else None


@dataclass(frozen=True, slots=True)
class InspectedPiece:
    """What a piece of a batch has.

    Attributes:
        name: of the piece, for errors.
        schema: its columns.
        rows: number of its rows.
    """

    name: str
    schema: pa.Schema
    rows: int


@dataclass(frozen=True, slots=True)
class Pieces:
    """A batch in pieces that tasks read, each alone; they can be sent to other processes.

    Attributes:
        items: the pieces, in the order of their rows.
        look: finds out what a piece has, and rejects its bad records.
        read: reads the rows of a piece.
    """

    items: Sequence[Any]
    look: Callable[[Any, Reading], InspectedPiece]
    read: Callable[[Any, Reading], pa.RecordBatchReader]


@dataclass(frozen=True, slots=True)
class TableRows:
    """A batch that is what a query of a Hudi table finds.

    Attributes:
        scan: plans the query.
    """

    scan: Callable[[], Scan]


@dataclass(frozen=True, slots=True)
class SparkQuery:
    """A batch that is the result of a query.

    Attributes:
        text: the query, in Spark's dialect.
    """

    text: str


Parts: TypeAlias = Pieces | TableRows | SparkQuery
"""How an engine of several processes reads a batch by itself."""


@dataclass(frozen=True, slots=True)
class SourceBatch:
    """What a source has after a checkpoint, within limits; its rows have not been read.

    Attributes:
        checkpoint: where the source goes on after the batch.
        size: of the batch, in the unit of the source.
        left: what the source had after the batch, in the same unit.
        read: reads the rows in this process.
        parts: how an engine of several processes reads the same rows; None if it gets those of `read`.
    """

    checkpoint: Checkpoint
    size: int
    left: int
    read: Callable[[Reading], pa.RecordBatchReader]
    parts: Parts | None = None


@runtime_checkable
class Source(Protocol):
    """Rows that come in an order, from a checkpoint on."""

    @property
    def unit(self) -> str:
        """What sizes and limits count, for people: `bytes`, `records` or `commits`."""
        ...

    def after(self, checkpoint: Checkpoint | None, limit: int | None) -> SourceBatch | None:
        """Plan the next batch.

        Args:
            checkpoint: where the last batch ended; None for the beginning.
            limit: largest size of the batch, of which at least the smallest piece of the source is taken;
                None for the default of the source.

        Returns:
            The batch; None if there is nothing new.

        Raises:
            InvalidError: the checkpoint or the options do not fit the source.
            UnavailableError: the source does not answer.
        """
        ...

    def committed(self, checkpoint: Checkpoint) -> None:
        """Learn that the table has everything up to a checkpoint."""
        ...

    def close(self) -> None:
        """Let go of what the source holds."""
        ...


@dataclass(frozen=True, slots=True)
class SourceContext:
    """What sources are made of.

    Attributes:
        options: of the ingestion.
        storage_options: of object stores.
        schema: columns of the source, if the user gave them.
        clock: tells the time.
        given: all options, among them those of clients.
        target: root of the table that is ingested into.
    """

    options: IngestOptions
    storage_options: Mapping[str, str]
    schema: pa.Schema | None
    clock: Clock
    given: Mapping[str, Any]
    target: str


class SourceProvider(Protocol):
    """Makes a source. A plug-in is a class whose objects, made without arguments, follow this protocol."""

    def check(self, context: SourceContext) -> object:
        """Check the options, without asking a store, a server or a database.

        Args:
            context: what the source is made of. Options of object stores do not matter here.

        Raises:
            InvalidError: one is missing or wrong.
        """
        ...

    def make(self, context: SourceContext) -> Source:
        """Return the source.

        Args:
            context: what it is made of.

        Raises:
            InvalidError: an option is missing or wrong, or a package that the source needs is not installed.
            UnavailableError: a server or a database does not answer.
        """
        ...


_NOTHING: Final = pa.schema([])


def merged_schema(schemas: Iterable[tuple[str, pa.Schema]]) -> pa.Schema:
    """Return the schema that can hold the rows of several files.

    Numbers of which one file has fractions are double, in whichever order the files come: text says of 1 and
    of 1.5 no more than that they are numbers.

    Args:
        schemas: name and columns of each file.

    Raises:
        InvalidError: a column has types in two files that no type takes in.
    """
    result = pa.schema([])
    for name, schema in schemas:
        try:
            found = optional(schema)
            result = evolve(_with_fractions(result, found), found)
        except InvalidError as error:
            raise InvalidError(
                f"{_conflict(result, schema)}. While there is no table, nothing says which of them is right:"
                " create the table first, or give the types of its columns with"
                " hoodie.streamer.schemaprovider.source.schema.file.",
                path=name,
            ) from error
    return result


def _with_fractions(known: pa.Schema, found: pa.Schema) -> pa.Schema:
    """Return known columns, those of whole numbers as double where others with fractions were found."""
    kinds = {field.name: field.type for field in found}
    return pa.schema([each.with_type(_fractional(each.type, kinds.get(each.name))) for each in known])


def _fractional(known: pa.DataType, found: pa.DataType | None) -> pa.DataType:
    if found is None:
        return known
    if pt.is_integer(known) and pt.is_floating(found):
        return pa.float64()
    if pt.is_struct(known) and pt.is_struct(found):
        kinds = {field.name: field.type for field in found.fields}
        return pa.struct(
            [each.with_type(_fractional(each.type, kinds.get(each.name))) for each in known.fields]
        )
    if pt.is_list(known) and pt.is_list(found):
        return pa.list_(known.value_field.with_type(_fractional(known.value_type, found.value_type)))
    return known


def _conflict(known: pa.Schema, schema: pa.Schema) -> str:
    """Say which column has values of types that no type holds."""
    for field in optional(schema):
        if field.name in known.names:
            earlier = known.field(field.name)
            try:
                evolve(pa.schema([earlier]), pa.schema([field]))
            except InvalidError:
                return f"Column {field.name!r} has values of {earlier.type} and of {field.type} in the source"
    return "The columns of the source do not fit together"


def optional(schema: pa.Schema) -> pa.Schema:
    """Return a schema whose columns may be null, without columns and fields of which nothing is known."""
    kinds = ((field.name, _without_nulls(field.type)) for field in schema)
    return pa.schema([(name, kind) for name, kind in kinds if kind is not None])


def _without_nulls(kind: pa.DataType) -> pa.DataType | None:
    if pt.is_struct(kind):
        kinds = ((each, _without_nulls(each.type)) for each in kind.fields)
        fields = [each.with_type(inner) for each, inner in kinds if inner is not None]
        return pa.struct(fields) if fields else None
    if pt.is_list(kind):
        item = _without_nulls(kind.value_type)
        return None if item is None else pa.list_(kind.value_field.with_type(item))
    return None if pt.is_null(kind) else kind


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


class BufferedRows:
    """Rows whose common columns are known once all of them were parsed, with bounded memory.

    Args:
        memory_bytes: bytes of rows kept in memory; the others are in temporary files.
    """

    def __init__(self, memory_bytes: int) -> None:
        self._rows = SpillingTables(memory_bytes)
        self._schemas: dict[pa.Schema, str] = {}

    def add(self, name: str, rows: pa.Table) -> None:
        """Append rows; the name of where they are from is for errors."""
        if rows.num_rows:
            self._rows.add(rows)
            self._schemas.setdefault(rows.schema, name)

    def reader(self, known: pa.Schema = _NOTHING) -> pa.RecordBatchReader:
        """Return the rows as one stream, which can be read once.

        Args:
            known: the columns if there are no rows.

        Raises:
            InvalidError: a column has types that no type takes in.
        """
        if not self._schemas:
            return known.empty_table().to_reader()
        schema = merged_schema((name, found) for found, name in self._schemas.items())
        rows = (conform(batch, schema) for batch in self._rows.drain())
        return pa.RecordBatchReader.from_batches(schema, rows)


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
    except (CorruptTableError, UnsupportedError) as error:
        message = (
            "A file of the source cannot be read: it is damaged, or of another format. Move it away, or use"
            " the source (--source) of its format."
        )
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


def with_known_types(table: pa.Table, known: pa.Schema) -> pa.Table:
    """Return rows with the known types of columns, where these hold what was found.

    Text becomes times, numbers become dates, times and narrower numbers. A time zone that text lacks is UTC.
    Columns whose values do not fit stay as they are.

    Args:
        table: the rows.
        known: columns whose types are known.
    """
    kinds = {field.name: field.type for field in known}
    for at, field in enumerate(table.schema):
        wanted = _wanted(field.type, kinds.get(field.name, field.type))
        if wanted != field.type:
            with suppress(InvalidError, pa.ArrowInvalid):
                table = table.set_column(at, field.name, _cast(table.column(at), wanted))
    return table


def type_conflict(table: pa.Table, known: pa.Schema) -> str | None:
    """Say which column does not have the type that is known of it, or lacks values; None if all fit.

    Args:
        table: rows with the known types where these hold what was found.
        known: columns whose types are known.
    """
    present = {*table.column_names}
    for field in known:
        column = table.column(field.name) if field.name in present else None
        if column is not None and not _is_like(column.type, field.type):
            return f"column {field.name!r} has {column.type}, not {field.type}"
        if not field.nullable and (column is None or column.null_count) and table.num_rows:
            return f"column {field.name!r} must not be null"
    return None


def _is_like(found: pa.DataType, known: pa.DataType) -> bool:
    """Tell whether what was found of a column fits; of null and map columns nothing was found out."""
    if pt.is_null(found) or pt.is_map(known):
        return True
    if pt.is_struct(found) and pt.is_struct(known):
        kinds = {field.name: field.type for field in known.fields}
        return all(_is_like(each.type, kinds.get(each.name, each.type)) for each in found.fields)
    if pt.is_list(found) and pt.is_list(known):
        return _is_like(found.value_type, known.value_type)
    return bool(found == known)


def _wanted(found: pa.DataType, known: pa.DataType) -> pa.DataType:
    """Return the known type, with the fields that were found besides."""
    if pt.is_struct(found) and pt.is_struct(known):
        kinds = {field.name: field.type for field in known.fields}
        return pa.struct(
            [each.with_type(_wanted(each.type, kinds.get(each.name, each.type))) for each in found.fields]
        )
    if pt.is_list(found) and pt.is_list(known):
        return pa.list_(_wanted(found.value_type, known.value_type))
    if pt.is_nested(found) or pt.is_nested(known):
        return found
    return known


def _cast(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    if pt.is_timestamp(kind) and pt.is_string(column.type):
        return _times(column, kind)
    if pt.is_date32(kind) and pt.is_integer(column.type):
        return column.cast(pa.int32()).cast(kind)
    schema = pa.schema([("", kind)])
    batches = pa.Table.from_arrays([column], [""]).to_batches()
    return pa.Table.from_batches([conform(batch, schema) for batch in batches], schema).column(0)


def _times(texts: pa.ChunkedArray, kind: pa.TimestampType) -> pa.ChunkedArray:
    if kind.tz is None:
        return texts.cast(kind)
    try:
        return texts.cast(kind)
    except pa.ArrowInvalid:
        return pc.assume_timezone(texts.cast(pa.timestamp(kind.unit)), kind.tz)


_SAME_STORES: Final = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfss": "abfs"}
"""Schemes that name the same store, by the one that stands for both."""


def is_within(inner: str, outer: str) -> bool:
    """Tell whether an address is that of a folder, or below it."""
    return comparable(inner).startswith(comparable(outer))


def comparable(uri: str) -> str:
    """Return an address that ends in a slash; links and relative parts of local ones are followed."""
    plain = uri.removeprefix("file://") if uri.startswith("file:///") else uri.removeprefix("file:")
    scheme, mark, rest = plain.partition("://")
    if not mark:
        return os.path.realpath(plain).rstrip("/") + "/"
    return f"{_SAME_STORES.get(scheme, scheme)}://{posixpath.normpath(rest)}/"
