"""Read and write base files and log files in any format, which their file extension determines.

                read                                                 write
    .parquet    columns, row groups and rows are filtered while      row group by row group
                reading (`parquet.reader`)                           (`parquet.writer`)
    .orc        columns are filtered while reading, rows             stripe by stripe
                afterwards (`orc.reader`)                            (`orc.writer`)
    .lance      columns are filtered while reading, rows             by the package `lance`,
                afterwards                                           an optional extra (`lance`)
    .hfile      the values are Avro records of the file's own        no writer here
                schema; a block at a time

Footers (`BaseFooter`) have entries and the facts on the rows. The entries are the key-value metadata of
Parquet, the user metadata of ORC, and the metadata of the schema of Lance.

`EncodedSink` writes files in formats other than Parquet. Its encoder writes batches, and at the end the
entries of the footer:

    rows ──> key summary, summaries of columns ──> columns of the file ──> encoder ──> file
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import orc

from drawstring.base.errors import TABLE_DISK, CorruptTableError, UnsupportedError, disk_errors
from drawstring.base.resources import VALUE_BYTES
from drawstring.formats.bloom import BloomFilter
from drawstring.formats.bloom_footer import KeySummary, StoredSummary, reusable_filter
from drawstring.formats.errors import about_file
from drawstring.formats.filter import RowSelection, bound_columns, keep_rows, with_table_types
from drawstring.formats.hfile import HFileReader, read_hfile_records
from drawstring.formats.lance import LanceEncoder, lance_footer, open_lance_schema, read_open_lance
from drawstring.formats.orc.footer import OrcFooter
from drawstring.formats.orc.reader import open_orc_schema, read_open_orc
from drawstring.formats.orc.writer import OrcEncoder
from drawstring.formats.parquet import (
    ParquetQuery,
    ParquetSink,
    RowGroups,
    parquet_schema,
    read_parquet,
    stored_summary,
)
from drawstring.formats.parquet import SharedEncodings as parquet_SharedEncodings
from drawstring.formats.parquet.reader import in_table_units
from drawstring.formats.parquet.statistics import RowSummaries
from drawstring.formats.parquet.writer import KeyedFile, SharedEncodings
from drawstring.formats.predicate_bounds import ranges_that_match
from drawstring.model.commit import ColumnSummary
from drawstring.model.files import FORMAT_NAMES, HFILE, LANCE, ORC, PARQUET, file_extension
from drawstring.schema.avro import avro_to_arrow
from drawstring.schema.evolution import conform
from drawstring.schema.fields import RECORD_KEY, with_meta_fields
from drawstring.storage.protocol import Storage


@dataclass(frozen=True, slots=True)
class BaseFooter:
    """The footer of a base file, or of a native log file.

    Attributes:
        entries: its entries.
        rows, columns: their numbers.
        plain_bytes: about how much memory the rows of a file take that is not a Parquet file.
        parquet: all metadata of a Parquet file.
    """

    entries: Mapping[str, str]
    rows: int
    columns: int
    plain_bytes: int = 0
    parquet: pq.FileMetaData | None = None

    @property
    def metadata(self) -> pq.FileMetaData:
        """All metadata of a file that is known to be a Parquet file."""
        assert self.parquet is not None
        return self.parquet

    def reusable_filter(self, rate: float) -> BloomFilter | None:
        """Return the bloom filter if the file that replaces this one can extend it, else None.

        Args:
            rate: rate of false positives that it may have.
        """
        return reusable_filter(self.entries, self.rows, rate)

    def bloom_filter(self) -> BloomFilter | None:
        """Return the bloom filter; None if there is none, or it cannot be read."""
        return StoredSummary.of(self.entries, self.rows).bloom_filter()

    def greatest(self, column: str) -> Any:
        """Return the greatest value of a column that is not nested; None if it is unknown."""
        bounds = self._bounds(column)
        return None if bounds is None else bounds[1]

    def may_have(self, asked: RowSelection) -> bool:
        """Return whether the file may have some rows, by the summary of its record keys.

        Args:
            asked: the rows.
        """
        summary = StoredSummary.of(self.entries, self.rows)
        if asked.keys is not None and not summary.may_hold_any(asked.keys):
            return False
        bounds = summary.bounds()
        if asked.where is None or bounds is None or RECORD_KEY not in asked.bound.names:
            return True
        key = pc.field(RECORD_KEY)
        try:
            return any(ranges_that_match(asked.where, asked.bound, [(key >= bounds[0]) & (key <= bounds[1])]))
        except pa.ArrowException:
            return True  # the condition fails on a value; evaluating it on rows reports the error

    def key_bounds(self) -> tuple[str, str] | None:
        """Return bounds of the record keys in the order of their UTF-8 bytes; None if they are unknown."""
        if self.parquet is None:
            return StoredSummary.of(self.entries, self.rows).bounds()
        bounds = self._bounds(RECORD_KEY)
        return bounds if bounds is not None and all(isinstance(each, str) for each in bounds) else None

    def last_keys(self) -> list[bytes] | None:
        """Return bounds of the last keys of the row groups of a Parquet file; None if one is unknown."""
        metadata = self.metadata
        places = range(metadata.num_columns if metadata.num_row_groups else 0)
        place = next((at for at in places if metadata.schema.column(at).path == RECORD_KEY), None)
        if place is None:
            return None
        groups = map(metadata.row_group, range(metadata.num_row_groups))
        chunks = [group.column(place).statistics for group in groups]
        ends = [each.max_raw for each in chunks if each is not None and each.has_min_max]
        is_known = len(ends) == len(chunks) and all(isinstance(each, bytes) for each in ends)
        return ends if is_known else None

    def decoded_bytes(self) -> int:
        """Return about how much memory the rows take."""
        metadata = self.parquet
        groups = () if metadata is None else map(metadata.row_group, range(metadata.num_row_groups))
        stored: int = self.plain_bytes + sum(group.total_byte_size for group in groups)
        return max(stored, VALUE_BYTES * self.rows * self.columns)  # dictionaries grow

    def _bounds(self, column: str) -> tuple[Any, Any] | None:
        """Return the least and the greatest value of a column that is not nested, by Parquet's statistics."""
        metadata, least, greatest = self.parquet, [], []
        groups = () if metadata is None else map(metadata.row_group, range(metadata.num_row_groups))
        place: int | None = None
        for group in groups:
            if place is None:
                paths = (group.column(at).path_in_schema for at in range(group.num_columns))
                place = next((at for at, path in enumerate(paths) if path == column), None)
            statistics = None if place is None else group.column(place).statistics
            if statistics is None or not statistics.has_min_max:
                return None
            least.append(statistics.min)
            greatest.append(statistics.max)
        return (min(least), max(greatest)) if least else None


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
        if extension not in _READERS:
            raise UnsupportedError(f"Files {extension} have no footer that this release knows.")
        return _READERS[extension](file)


def has_footer(path: str) -> bool:
    """Return whether files of a format have a footer that this release knows."""
    return file_extension(path) in _READERS


def key_summary(storage: Storage, path: str) -> StoredSummary | None:
    """Return the key summary in the footer of a base file; None if files of its format have none.

    Raises:
        CorruptTableError: the file is missing or damaged.
    """
    extension = file_extension(path)
    if extension == PARQUET:
        return stored_summary(storage, path)
    if extension not in _READERS:
        return None
    with about_file(path, FORMAT_NAMES[extension]):
        footer = base_footer(storage, path)
    return StoredSummary.of(footer.entries, footer.rows)


def _of_parquet(file: pa.NativeFile) -> BaseFooter:
    metadata = pq.read_metadata(file)
    stored: Mapping[bytes, bytes] = metadata.metadata or {}
    entries = {_text(name): _text(value) for name, value in stored.items()}
    return BaseFooter(entries, metadata.num_rows, metadata.num_columns, parquet=metadata)


def _of_orc(file: pa.NativeFile) -> BaseFooter:
    opened = orc.ORCFile(file)
    stored: Mapping[bytes, bytes] = opened.metadata or {}
    entries = {_text(name): _text(value) for name, value in stored.items()}
    return BaseFooter(entries, opened.nrows, len(opened.schema), OrcFooter.of(opened).plain_bytes())


def _of_lance(file: pa.NativeFile) -> BaseFooter:
    footer = lance_footer(file)
    return BaseFooter(footer.entries, footer.rows, footer.columns, footer.plain_bytes)


def _text(data: bytes) -> str:
    return data.decode(errors="replace")


_READERS: Final[Mapping[str, Callable[[pa.NativeFile], BaseFooter]]] = {
    PARQUET: _of_parquet,
    ORC: _of_orc,
    LANCE: _of_lance,
}


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
    if extension == ORC:
        yield from read_open_orc(file, asked)
    elif extension == LANCE:
        yield from read_open_lance(file, local, asked)
    elif extension == HFILE:
        yield from _hfile_rows(HFileReader(file, file.size()), asked)
    else:
        raise _unsupported(extension)


def _hfile_rows(reader: HFileReader, asked: RowSelection) -> Iterator[pa.RecordBatch]:
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


_COMPRESSION_GUESS: Final = 0.5
_HEAD_BYTES_MAX: Final = 4 << 10
"""Bytes of a file in which there need not be rows."""


class FileEncoder(Protocol):
    """Writes the bytes of a file."""

    @property
    def bytes_written(self) -> int:
        """Number of bytes so far."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows."""

    def finish(self, entries: Mapping[str, str]) -> None:
        """Write what is left, and a footer with some entries."""

    def abort(self) -> None:
        """Give up."""


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


_DEFAULT_GROUPS: Final = RowGroups()
_SCHEMA_ENTRIES: Final = {PARQUET: "parquet.avro.schema", ORC: "orc.avro.schema"}


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

    def share(self, encodings: parquet_SharedEncodings) -> None:
        """Choose the encodings together with other files, before any rows are written."""

    def add_entries(self, entries: Mapping[str, str]) -> None:
        """Add entries to the footer; they take the place of those with the same names."""

    def summaries(self) -> tuple[ColumnSummary, ...] | None:
        """Return the summaries of the closed file; None if none were wanted, or if one is unknown."""


@dataclass(frozen=True, slots=True)
class FileSpec:
    """What a file is to look like.

    Attributes:
        schema: its columns, including meta columns.
        avro_schema: the record schema as Avro JSON; missing meta columns are added.
        compression: Parquet codec by name.
        bloom: rate of false positives of the bloom filter, 0 for no key summary; or the filter of the file
            that this one replaces.
        row_groups: how large its row groups or stripes get.
    """

    schema: pa.Schema
    avro_schema: str
    compression: str
    bloom: float | BloomFilter
    row_groups: RowGroups = _DEFAULT_GROUPS


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
    entries = schema_entry(path, with_meta_fields(form.avro_schema))
    return EncodedSink(storage, path, form.schema, _encoder(extension, form), entries, form.bloom)


def _encoder(extension: str, form: FileSpec) -> Callable[[pa.NativeFile], FileEncoder]:
    if extension == ORC:
        stripe_bytes = form.row_groups.size_bytes
        return partial(
            OrcEncoder, schema=form.schema, compression=form.compression, stripe_bytes=stripe_bytes
        )
    if extension == LANCE:
        return partial(LanceEncoder, schema=form.schema)
    raise UnsupportedError(
        f"Files {extension or 'without an extension'} cannot be written, only Parquet, ORC and Lance. Write"
        " to the table with Apache Hudi."
    )


def schema_entry(path: str, schema_json: str) -> dict[str, str]:
    """Return the entry of a file's footer that has the record schema; Lance files have the schema of Arrow.

    Args:
        path: path of the file, whose extension tells the format.
        schema_json: the record schema as Avro JSON.
    """
    name = _SCHEMA_ENTRIES.get(file_extension(path))
    return {name: schema_json} if name else {}
