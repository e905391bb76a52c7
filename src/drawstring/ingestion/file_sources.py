"""Ingest files that arrive in a folder: Avro, CSV, JSON, Parquet and ORC.

`FileSource` takes the files in the order of their modification times and names:

    checkpoint    the modification time of the last file, in milliseconds, as Hudi's path selector has it
    state         short hashes of the names of the files of that millisecond; a file that arrives after them
                  is new

Files of one millisecond are never divided between batches: Hudi, which goes on after a time, would not see
the rest. As with Hudi, a name that begins with `.` or `_` hides a file, or a folder with all in it, and a
file has to appear with its whole content at a time that is not before those already seen.

Columns of Avro files come from the schemas in them, those of Parquet and ORC files from their footers. CSV
and JSON files (an object per line) are uncompressed by their endings (`open_decompressed`).

JSON: Arrow infers the types of values, with two exceptions. Text that looks like a time stays text, as for
Spark, unless the column is known to be a time. Columns that are known to be text or decimals are read as
such. If Arrow fails, `parse_records` finds the records that it fails on by halving.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.json as pj
import pyarrow.types as pt

from drawstring.base.clock import Clock
from drawstring.base.errors import InvalidError
from drawstring.base.resources import EXCHANGE_BYTES_MAX
from drawstring.formats.avro.file_rows import avro_file_schema, read_avro_file
from drawstring.formats.data_file import Selection, base_schema, read_base
from drawstring.ingestion.checkpoints import Checkpoint
from drawstring.ingestion.source_protocol import (
    BufferedRows,
    InspectedPiece,
    Pieces,
    Reading,
    Rejected,
    SourceBatch,
    merged_schema,
    optional,
    reader_of,
    source_file,
    type_conflict,
    with_known_types,
)
from drawstring.model.files import FileStatus
from drawstring.storage import open_spec
from drawstring.storage.protocol import Storage, StorageSpec


def read_avro_files(storage: Storage, paths: Sequence[str], reading: Reading) -> pa.RecordBatchReader:
    """Read files; see `ReadFiles`."""
    schemas = [(path, _schema(storage, path)) for path in paths]
    return reader_of(merged_schema(schemas), ((path, _rows(storage, path)) for path in paths))


def _schema(storage: Storage, path: str) -> pa.Schema:
    with source_file(path), storage.open(path) as file:
        return avro_file_schema(file)


def _rows(storage: Storage, path: str) -> Iterator[pa.RecordBatch]:
    with storage.open(path) as file:
        yield from read_avro_file(file)


_EMPTY: Final = pa.schema([])
Place: TypeAlias = Callable[[int], str]
"""Says where a record is, given its number."""


@dataclass(frozen=True, slots=True)
class ParsedRecords:
    """Records that were read.

    Attributes:
        rows: one for each record that could be read.
        kept: their numbers; None if all could be read.
    """

    rows: pa.Table
    kept: Sequence[int] | None


def parse_records(records: Sequence[bytes], reading: Reading, place: Place) -> ParsedRecords:
    """Return the rows of JSON objects.

    Args:
        records: the objects.
        reading: known columns, and what takes records that are no objects.
        place: says where a record is.

    Raises:
        InvalidError: the values of a column are of types that have nothing in common.
    """
    if not records:
        return ParsedRecords(_EMPTY.empty_table(), None)
    explicit = pa.schema(
        [each.with_type(kind) for each in reading.known if (kind := _type_hint(each.type)) is not None]
    )
    try:
        return ParsedRecords(_fitting(records, explicit, reading), None)
    except pa.ArrowInvalid:
        return _parse_some(records, explicit, reading, place)


def _parse_some(
    records: Sequence[bytes], explicit: pa.Schema, reading: Reading, place: Place
) -> ParsedRecords:
    kept: list[int] = []
    parts: list[pa.Table] = []

    def look(first: int, stop: int) -> None:
        try:
            parts.append(_fitting(records[first:stop], explicit, reading))
            kept.extend(range(first, stop))
        except pa.ArrowInvalid as error:
            if stop - first > 1:
                middle = (first + stop) // 2
                look(first, middle)
                look(middle, stop)
            else:
                reason = " ".join(str(error).split()).removesuffix(" in row 0")
                reading.reject(Rejected(place(first), records[first], reason))

    look(0, len(records))
    return ParsedRecords(concat_rows(parts), kept)


def concat_rows(parts: Sequence[pa.Table]) -> pa.Table:
    """Return the rows of several tables as one.

    Raises:
        InvalidError: the values of a column are of types that have nothing in common.
    """
    try:
        return pa.concat_tables(parts, promote_options="permissive") if parts else _EMPTY.empty_table()
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        told = " ".join(str(error).split())
        raise InvalidError(
            f"Records have values of different types ({told}). Give the types of their columns with"
            " hoodie.streamer.schemaprovider.source.schema.file."
        ) from error


def _fitting(records: Sequence[bytes], explicit: pa.Schema, reading: Reading) -> pa.Table:
    """Return the rows of objects with the known types of columns.

    Raises:
        pa.ArrowInvalid: a record is no object, or a value does not fit its column.
    """
    rows = with_known_types(_parse(records, explicit), reading.known)
    wrong = type_conflict(rows, reading.known) if reading.is_strict else None
    if wrong is not None:
        raise pa.ArrowInvalid(wrong)
    return rows


def _parse(records: Sequence[bytes], explicit: pa.Schema) -> pa.Table:
    """Return the rows of objects.

    Raises:
        pa.ArrowInvalid: a record is no object, or a value does not fit its column.
    """
    data = b"\n".join(records)
    while True:
        rows = pj.read_json(
            pa.BufferReader(data),
            pj.ReadOptions(use_threads=False, block_size=len(data) + 1),
            pj.ParseOptions(explicit_schema=explicit),
        )
        timely = [each for each in rows.schema if _has_found_times(each.type)]
        if not timely:
            break
        names = {each.name for each in timely}
        others = [each for each in explicit if each.name not in names]
        explicit = pa.schema([*others, *(each.with_type(_as_text(each.type)) for each in timely)])
    if rows.num_rows != len(records):
        raise pa.ArrowInvalid(f"{len(records)} records have {rows.num_rows} objects")
    missing = [name for name in explicit.names if rows.column(name).null_count == rows.num_rows]
    return rows.drop_columns(missing)


def _type_hint(kind: pa.DataType) -> pa.DataType | None:
    """Return what Arrow has to be told of the type of a column; None for nothing."""
    if pt.is_string(kind) or pt.is_binary(kind) or pt.is_decimal(kind):
        return kind
    if pt.is_list(kind):
        item = _type_hint(kind.value_type)
        return None if item is None else pa.list_(item)
    if pt.is_struct(kind):
        fields = [
            each.with_type(inner) for each in kind.fields if (inner := _type_hint(each.type)) is not None
        ]
        return pa.struct(fields) if fields else None
    return None


def _has_found_times(kind: pa.DataType) -> bool:
    if pt.is_list(kind):
        return _has_found_times(kind.value_type)
    if pt.is_struct(kind):
        return any(_has_found_times(each.type) for each in kind.fields)
    return bool(pt.is_temporal(kind))


def _as_text(kind: pa.DataType) -> pa.DataType:
    """Return a type with text instead of times."""
    if pt.is_list(kind):
        return pa.list_(_as_text(kind.value_type))
    if pt.is_struct(kind):
        return pa.struct([each.with_type(_as_text(each.type)) for each in kind.fields])
    return pa.string() if pt.is_temporal(kind) else kind


def read_columnar_files(storage: Storage, paths: Sequence[str], reading: Reading) -> pa.RecordBatchReader:
    """Read Parquet or ORC files; see `ReadFiles`."""
    schemas = {path: _parquet_schema(storage, path) for path in paths}
    files = ((path, read_base(storage, path, Selection(schema.names))) for path, schema in schemas.items())
    return reader_of(merged_schema(schemas.items()), files)


def inspect_columnar_file(storage: Storage, path: str, reading: Reading) -> InspectedPiece:
    """Find out what a Parquet or ORC file has, by its footer and its first column; see `InspectFile`."""
    schema = _parquet_schema(storage, path)
    with source_file(path):
        rows = sum(batch.num_rows for batch in read_base(storage, path, Selection(schema.names[:1])))
    return InspectedPiece(path, merged_schema([(path, schema)]), rows)


def _parquet_schema(storage: Storage, path: str) -> pa.Schema:
    with source_file(path):
        return base_schema(storage, path)


ReadFiles: TypeAlias = Callable[[Storage, Sequence[str], Reading], pa.RecordBatchReader]
"""Reads files of a format."""

InspectFile: TypeAlias = Callable[[Storage, str, Reading], InspectedPiece]
"""Finds out what a file has without reading it all."""

_LIMIT_BYTES: Final = 1 << 30
_HASH_DIGITS: Final = 12


@dataclass(frozen=True, slots=True)
class FileSource:
    """Files below a folder.

    Attributes:
        storage: the folder.
        read: reads files of the format.
        clock: tells how old a file is.
        min_age_ms: how old a file has to be.
        limit_bytes: default size of a batch.
        look: finds out what a file has; None to read it.
    """

    storage: Storage
    read: ReadFiles
    clock: Clock
    min_age_ms: int = 0
    limit_bytes: int = _LIMIT_BYTES
    look: InspectFile | None = None

    @property
    def unit(self) -> str:
        return "bytes"

    def limited(self, limit_bytes: int) -> FileSource:
        """Return the source with another default size of a batch."""
        return replace(self, limit_bytes=limit_bytes)

    def after(self, checkpoint: Checkpoint | None, limit: int | None) -> SourceBatch | None:
        new = self._new_files(checkpoint)
        taken = _within(new, self.limit_bytes if limit is None else limit)
        if not taken:
            return None
        last_ms = taken[-1].modified_ms
        hashes = {_hash(file) for file in taken if file.modified_ms == last_ms}
        if checkpoint is not None and _time_of(checkpoint) == last_ms:
            hashes |= set(checkpoint.state.split())
        paths = [file.path for file in taken]
        return SourceBatch(
            Checkpoint(str(last_ms), " ".join(sorted(hashes))),
            sum(file.size_bytes for file in taken),
            sum(file.size_bytes for file in new[len(taken) :]),
            partial(self.read, self.storage, paths),
            Pieces(
                paths,
                partial(_look, self.look, self.read, self.storage.spec),
                partial(_read, self.read, self.storage.spec),
            ),
        )

    def committed(self, checkpoint: Checkpoint) -> None:
        """Do nothing: the files stay where they are."""

    def close(self) -> None:
        """Do nothing."""

    def _new_files(self, checkpoint: Checkpoint | None) -> list[FileStatus]:
        newest_ms = self.clock.now_ms() - self.min_age_ms if self.min_age_ms else None
        files = [
            file
            for file in self.storage.list_tree("")
            if file.size_bytes
            and not any(part.startswith((".", "_")) for part in file.path.split("/"))
            and (newest_ms is None or file.modified_ms <= newest_ms)
        ]
        files.sort(key=lambda file: (file.modified_ms, file.path))
        if checkpoint is None:
            return files
        time_ms, known = _time_of(checkpoint), set(checkpoint.state.split())
        return [
            file
            for file in files
            if file.modified_ms > time_ms
            or (known and file.modified_ms == time_ms and _hash(file) not in known)
        ]


def _look(
    look: InspectFile | None, read: ReadFiles, folder: StorageSpec, path: str, reading: Reading
) -> InspectedPiece:
    if look is not None:
        return look(open_spec(folder), path, reading)
    rows = _read(read, folder, path, reading)
    return InspectedPiece(path, rows.schema, sum(batch.num_rows for batch in rows))


def _read(read: ReadFiles, folder: StorageSpec, path: str, reading: Reading) -> pa.RecordBatchReader:
    return read(open_spec(folder), [path], reading)


def _within(files: Sequence[FileStatus], limit_bytes: int) -> Sequence[FileStatus]:
    """Return the first files up to a limit, those of one millisecond together; at least one."""
    taken: list[FileStatus] = []
    size_bytes = 0
    for _, together in groupby(files, lambda file: file.modified_ms):
        group = list(together)
        size_bytes += sum(file.size_bytes for file in group)
        if taken and size_bytes > limit_bytes:
            break
        taken += group
    return taken


def _time_of(checkpoint: Checkpoint) -> int:
    try:
        return int(checkpoint.key)
    except ValueError:
        raise InvalidError(
            f"The checkpoint {checkpoint.key!r} is no modification time in milliseconds: the rows came from"
            " another kind of source. Give checkpoint, or ignore_checkpoint to begin with the first file."
        ) from None


def _hash(file: FileStatus) -> str:
    return hashlib.sha256(file.path.encode()).hexdigest()[:_HASH_DIGITS]


_CODECS: Final = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}


@contextmanager
def open_decompressed(storage: Storage, path: str) -> Iterator[pa.NativeFile]:
    """Open a file to read it once, from its beginning."""
    codec = next((codec for ending, codec in _CODECS.items() if path.endswith(ending)), None)
    with storage.open(path) as file:
        if codec is None:
            yield file
            return
        with pa.CompressedInputStream(file, codec) as plain:
            yield plain


_BLOCK_BYTES: Final = 8 << 20
"""Bytes that are looked at to find out the types of a file's columns."""


@dataclass(frozen=True, slots=True)
class CsvFiles:
    """Reads CSV files; see `ReadFiles`.

    Attributes:
        separator, quote, escape: what separates and encloses values, and what precedes a quote in one.
        null: the text of nulls.
        has_header: whether the first line names the columns.
        is_multi_line: whether values contain line ends.
        names: the columns of files without a header; `_c0`, `_c1`, ... if there are none.
    """

    separator: str = ","
    quote: str = '"'
    escape: str | None = None
    null: str = ""
    has_header: bool = False
    is_multi_line: bool = False
    names: Sequence[str] = field(default_factory=tuple)

    def __call__(self, storage: Storage, paths: Sequence[str], reading: Reading) -> pa.RecordBatchReader:
        """Read files."""
        schema = merged_schema((path, self._schema(storage, path, reading.known)) for path in paths)
        return reader_of(schema, ((path, self._rows(storage, path, schema)) for path in paths))

    def _schema(self, storage: Storage, path: str, known: pa.Schema) -> pa.Schema:
        """Return the columns of a file; those in which nothing is found are text."""
        with source_file(path), open_decompressed(storage, path) as file:
            found = self._renamed(self._open(file, known).schema)
        kinds = {each.name: each.type for each in known}
        return pa.schema(
            [
                each.with_type(kinds.get(each.name, pa.string() if pt.is_null(each.type) else each.type))
                for each in found
            ]
        )

    def _rows(self, storage: Storage, path: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        with open_decompressed(storage, path) as file:
            for batch in self._open(file, schema):
                rows = pa.Table.from_arrays(batch.columns, schema=self._renamed(batch.schema))
                yield from with_known_types(rows, schema).to_batches()

    def _open(self, file: pa.NativeFile, types: pa.Schema) -> pc.CSVStreamingReader:
        names = [] if self.has_header else list(self.names)
        return pc.open_csv(
            file,
            pc.ReadOptions(
                use_threads=False,
                block_size=_BLOCK_BYTES,
                column_names=names or None,
                autogenerate_column_names=not (self.has_header or names),
            ),
            pc.ParseOptions(
                delimiter=self.separator,
                quote_char=self.quote or False,
                escape_char=self.escape or False,
                newlines_in_values=self.is_multi_line,
            ),
            pc.ConvertOptions(
                column_types={_plain_name(each.name): _parsed_type(each.type) for each in types},
                null_values=[self.null],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )

    def _renamed(self, schema: pa.Schema) -> pa.Schema:
        if self.has_header or self.names:
            return schema
        return pa.schema([each.with_name(f"_c{at}") for at, each in enumerate(schema)])


def _parsed_type(kind: pa.DataType) -> pa.DataType:
    """Return the type that Arrow parses values as: it takes no time without a zone for one with a zone."""
    return pa.string() if pt.is_timestamp(kind) and kind.tz else kind


def _plain_name(name: str) -> str:
    """Return the name that Arrow gives to a column without one, which is `_c0` as in Spark."""
    return f"f{name[2:]}" if name.startswith("_c") and name[2:].isdigit() else name


JSON_LIMIT_BYTES: Final = 256 << 20
"""Default size of a batch: what columns it has is known after the last line."""

_CHUNK_BYTES: Final = 16 << 20


def read_json_files(storage: Storage, paths: Sequence[str], reading: Reading) -> pa.RecordBatchReader:
    """Read files; see `ReadFiles`."""
    held = BufferedRows(EXCHANGE_BYTES_MAX)
    for path in paths:
        for rows in _tables(storage, path, reading):
            held.add(path, rows)
    return held.reader()


def _tables(storage: Storage, path: str, reading: Reading) -> Iterator[pa.Table]:
    with source_file(path):
        first = 1
        for lines in _chunks(storage, path):
            at = [number for number, line in enumerate(lines, first) if line and not line.isspace()]
            records = [lines[number - first] for number in at]
            rows = parse_records(records, reading, [f"{path}:{number}" for number in at].__getitem__).rows
            first += len(lines)
            yield rows.select(optional(rows.schema).names)


def _chunks(storage: Storage, path: str) -> Iterator[list[bytes]]:
    """Yield the lines of a file, many at a time."""
    rest = b""
    with open_decompressed(storage, path) as file:
        while data := file.read(_CHUNK_BYTES):
            lines = (rest + data).split(b"\n")
            rest = lines.pop()
            yield lines
    if rest:
        yield [rest]
