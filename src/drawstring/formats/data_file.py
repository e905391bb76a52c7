"""Read and write base files and log files in any format, which their file extension determines.

                read                                                 write
    .parquet    columns, row groups and rows are filtered while      row group by row group
                reading (`parquet.reader`)                           (`parquet.writer`)
    others      columns are filtered while reading, rows             by the encoder of the format
                afterwards (`file_format.FileFormat`)                (`EncodedSink`)

`EncodedSink` writes files in formats other than Parquet. Its encoder writes batches, and at the end the
entries of the footer:

    rows ──> key summary, summaries of columns ──> columns of the file ──> encoder ──> file
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.errors import TABLE_DISK, UnsupportedError, disk_errors
from drawstring.formats.bloom import BloomFilter
from drawstring.formats.bloom_footer import KeySummary, StoredSummary
from drawstring.formats.errors import about_file
from drawstring.formats.file_format import (
    BaseFooter,
    FileEncoder,
    FileSpec,
    format_of,
    not_read,
    not_written,
    parquet_footer,
)
from drawstring.formats.filter import RowSelection, bound_columns, keep_rows, with_table_types
from drawstring.formats.parquet import (
    ParquetQuery,
    ParquetSink,
    parquet_schema,
    read_parquet,
    stored_summary,
)
from drawstring.formats.parquet.reader import in_table_units
from drawstring.formats.parquet.statistics import RowSummaries
from drawstring.formats.parquet.writer import KeyedFile, SharedEncodings
from drawstring.model.commit import ColumnSummary
from drawstring.model.files import FORMAT_NAMES, PARQUET, file_extension
from drawstring.schema.evolution import conform
from drawstring.schema.fields import with_meta_fields
from drawstring.storage.protocol import Storage


def base_footer(storage: Storage, path: str, types: pa.Schema | None = None) -> BaseFooter:
    """Read the footer of a base file.

    Args:
        storage: storage of the table.
        path: path of the file, relative to the table's root.
        types: the columns of the table by their names in the file, whose units timestamps get; None if they
            do not matter.

    Raises:
        CorruptTableError: the file is missing or damaged.
        UnsupportedError: files of its format have none that is known.
    """
    with storage.open(path) as file:
        footer = open_footer(file, path)
    if footer.parquet is None:
        return footer
    return replace(footer, parquet=in_table_units(footer.parquet, types))


def open_footer(file: pa.NativeFile, path: str, extension: str | None = None) -> BaseFooter:
    """Read the footer of an open file; see `base_footer`.

    Args:
        file: the file.
        path: its path or name.
        extension: tells its format; that of the name by default.
    """
    extension = extension or file_extension(path)
    with about_file(path, FORMAT_NAMES.get(extension, extension)):
        if extension == PARQUET:
            return parquet_footer(file)
        file_format = format_of(extension)
        if file_format is None:
            raise UnsupportedError(f"Files {extension} have no footer that this release knows.")
        return file_format.footer(file)


def has_footer(path: str) -> bool:
    """Return whether files of a format have a footer that this release knows."""
    extension = file_extension(path)
    if extension == PARQUET:
        return True
    file_format = format_of(extension)
    return file_format is not None and file_format.has_footer


def key_summary(storage: Storage, path: str) -> StoredSummary | None:
    """Return the key summary in the footer of a base file; None if files of its format have none.

    Raises:
        CorruptTableError: the file is missing or damaged.
    """
    extension = file_extension(path)
    if extension == PARQUET:
        return stored_summary(storage, path)
    if not has_footer(path):
        return None
    with about_file(path, FORMAT_NAMES[extension]):
        footer = base_footer(storage, path)
    return StoredSummary.of(footer.entries, footer.rows)


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
        yield from _rows(storage, path, RowSelection(names), selection.types)
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
    asked = RowSelection(needed, where, bound, constants.keys(), selection.keys)
    for batch in _rows(storage, path, asked, selection.types):
        yield keep_rows(batch, where, bound, constants).select(requested)


def _rows(
    storage: Storage, path: str, asked: RowSelection, types: pa.Schema | None
) -> Iterator[pa.RecordBatch]:
    extension = file_extension(path)
    with about_file(path, FORMAT_NAMES.get(extension, extension)), storage.open(path) as file:
        for batch in open_rows(file, extension, storage.local_path(path), asked):
            yield batch if types is None else conform(batch, with_types(batch.schema, types))


def open_rows(
    file: pa.NativeFile, extension: str, local: str | None, asked: RowSelection
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
    file_format = format_of(extension)
    if file_format is None:
        raise not_read(extension)
    yield from file_format.rows(file, local, asked)


def open_schema(file: pa.NativeFile, extension: str, local: str | None) -> pa.Schema:
    """Return the schema of an open file in a format other than Parquet; see `open_rows`."""
    file_format = format_of(extension)
    if file_format is None:
        raise not_read(extension)
    return file_format.schema(file, local)


def with_types(stored: pa.Schema, types: pa.Schema) -> pa.Schema:
    """Return the columns of a file, with the table's types for columns that the table has."""
    return pa.schema(
        [types.field(each.name).with_nullable(True) if each.name in types.names else each for each in stored]
    )


_COMPRESSION_GUESS: Final = 0.5
_HEAD_BYTES_MAX: Final = 4 << 10
"""Bytes of a file in which there need not be rows."""


class EncodedSink(KeyedFile):
    """Writes a base or log file; see `ParquetSink`, whose methods it has.

    Args:
        storage: storage of the table.
        path: path of the file, relative to the table's root.
        schema: its columns, including meta columns.
        encoder: makes the encoder of the opened file.
        entries: entries of the footer.
        bloom: as of `KeyedFile`.
    """

    def __init__(
        self,
        storage: Storage,
        path: str,
        schema: pa.Schema,
        encoder: Callable[[pa.NativeFile], FileEncoder],
        entries: Mapping[str, str],
        bloom: float | BloomFilter,
    ) -> None:
        super().__init__(storage, path, entries, schema, bloom)
        self._schema = schema
        self._summaries: RowSummaries | None = None
        self._plain = self._stored = self._stored_plain = 0
        try:
            self._encoder = encoder(self._file)
        except BaseException:
            self._discard()
            raise

    @property
    def bytes_written(self) -> int:
        """Estimated size of the file if it ended here, including rows that the encoder holds."""
        ratio = self._stored / self._stored_plain if self._stored_plain else _COMPRESSION_GUESS
        return self._encoder.bytes_written + int((self._plain - self._stored_plain) * ratio)

    def write(self, batch: pa.RecordBatch, *, is_known: bool = False) -> None:
        """Add rows.

        Args:
            batch: the file's columns, in any order.
            is_known: whether the file that this one replaces had all the keys.
        """
        self._note_keys(batch, is_known=is_known)
        rows = _without_offsets(conform(batch, self._schema))
        if self._summaries is not None:
            self._summaries.add([rows])
        with disk_errors(TABLE_DISK, self._path):
            self._encoder.write(rows)
        self._plain += rows.nbytes
        stored = self._encoder.bytes_written
        if stored > self._stored + _HEAD_BYTES_MAX:
            self._stored, self._stored_plain = stored, self._plain

    def flush(self) -> bool:
        """Return that encoders store rows when they have enough of them, and not before."""
        return False

    def summarize(self, columns: Sequence[str]) -> None:
        """Have the summaries of some columns made, before any rows are written."""
        self._summaries = RowSummaries(columns, self._schema) if columns else None

    def share(self, encodings: SharedEncodings) -> None:
        """Do nothing: the encodings of Parquet are not those of other formats."""

    def summaries(self) -> tuple[ColumnSummary, ...] | None:
        """Return the summaries of the closed file; None if none were wanted."""
        return None if self._summaries is None else self._summaries.finished()

    def _finish(self, entries: Mapping[str, str]) -> None:
        self._encoder.finish(entries)

    def _give_up(self) -> None:
        self._encoder.abort()


def _without_offsets(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch whose nested arrays begin with their buffers.

    Of slices of structs with nested fields Arrow's ORC writer stores values of other rows, and Lance panics.
    """
    columns = [pa.concat_arrays([each]) if each.type.num_fields else each for each in batch.columns]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


_PARQUET_SCHEMA_ENTRY: Final = "parquet.avro.schema"


class FileSink(Protocol):
    """Writes a base or log file.

    Attributes:
        keys: what the footer says of the record keys; None if it says nothing.
    """

    keys: KeySummary | None

    @property
    def bytes_written(self) -> int:
        """Estimated size of the file if it ended here."""

    def write(self, batch: pa.RecordBatch, *, is_known: bool = False) -> None:
        """Add rows; `is_known` tells whether the file that this one replaces had all their keys."""

    def flush(self) -> bool:
        """Store the rows so far, which take no memory then; return whether the format can."""

    def close(self) -> int:
        """Finish the file and return its size in bytes."""

    def abort(self) -> None:
        """Discard the file and delete its written part."""

    def summarize(self, columns: Sequence[str]) -> None:
        """Have the summaries of some columns made, before any rows are written."""

    def share(self, encodings: SharedEncodings) -> None:
        """Choose the encodings together with other files, before any rows are written."""

    def add_entries(self, entries: Mapping[str, str]) -> None:
        """Add entries to the footer; they take the place of those with the same names."""

    def summaries(self) -> tuple[ColumnSummary, ...] | None:
        """Return the summaries of the closed file; None if none were wanted, or if one is unknown."""


def open_sink(storage: Storage, path: str, form: FileSpec) -> FileSink:
    """Open a new file for writing.

    Args:
        storage: storage of the table.
        path: path of the file, relative to the table's root; its extension tells the format.
        form: what it is to look like.

    Raises:
        InvalidError: a package that the format needs is not installed, or the format lacks a type.
        UnsupportedError: this release cannot write the format.
    """
    extension = file_extension(path)
    if extension == PARQUET:
        return ParquetSink(
            storage,
            path,
            form.schema,
            table_avro_schema=form.avro_schema,
            compression=form.compression,
            bloom=form.bloom,
            row_groups=form.row_groups,
        )
    file_format = format_of(extension)
    if file_format is None:
        raise not_written(extension)
    entries = schema_entry(path, with_meta_fields(form.avro_schema))
    return EncodedSink(storage, path, form.schema, file_format.encoder(form), entries, form.bloom)


def schema_entry(path: str, schema_json: str) -> dict[str, str]:
    """Return the entry of a file's footer that has the record schema; Lance files have the schema of Arrow.

    Args:
        path: path of the file, whose extension tells the format.
        schema_json: the record schema as Avro JSON.
    """
    extension = file_extension(path)
    file_format = format_of(extension)
    name = _PARQUET_SCHEMA_ENTRY if extension == PARQUET else file_format and file_format.schema_entry
    return {name: schema_json} if name else {}
