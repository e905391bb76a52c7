"""Read the column chunks of Parquet files as bytes, and write new files from copied and encoded chunks.

    footer of a source ──> row groups ──> chunks ── copied byte by byte ──┐
    rows ── Arrow's writer, in memory ──> chunks ─────────────────────────┴──> new file, new footer

`ChunkSink` makes new chunks for the meta column with the file's own name, of one value. Page indexes and
Parquet's own bloom filters are optional and are omitted.

Footers are in Thrift's compact protocol (`decode_struct`, `encode_struct`):

    struct   (delta << 4 | type, or type and zigzag id) value ... 0
    list     (size << 4 | type; size 15: a varint follows) value ...
    numbers  zigzag varints; text and bytes: varint length, bytes; double: 8 bytes, little-endian

A struct is a dictionary from field ids to types and values, so that unknown fields are preserved.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from drawstring.base.errors import REPAIR, CorruptTableError
from drawstring.formats.bloom_footer import FILTER, FILTER_TYPE, LARGEST_KEY, SMALLEST_KEY
from drawstring.formats.errors import about_file
from drawstring.schema.fields import FILE_NAME
from drawstring.storage.protocol import Storage

Struct: TypeAlias = dict[int, tuple[int, Any]]
"""Type and value by field id."""

TRUE: Final = 1
FALSE: Final = 2
BYTE: Final = 3
INT16: Final = 4
INT32: Final = 5
INT64: Final = 6
DOUBLE: Final = 7
BINARY: Final = 8
LIST: Final = 9
SET: Final = 10
STRUCT: Final = 12

_INTEGERS: Final = frozenset((INT16, INT32, INT64))
_DEPTH_MAX: Final = 32
_LONG: Final = 15


def decode_struct(data: bytes) -> Struct:
    """Return a struct.

    Raises:
        ValueError: the bytes are not a struct.
    """
    try:
        return _struct(data, 0, 0)[0]
    except IndexError:
        raise ValueError("the bytes end within a value") from None


def encode_struct(struct: Struct) -> bytes:
    """Return the bytes of a struct."""
    out = bytearray()
    _put_struct(out, struct)
    return bytes(out)


def _struct(data: bytes, at: int, depth: int) -> tuple[Struct, int]:
    """Return the struct at a place, and the one behind it; numbers of one byte are decoded here, faster."""
    if depth > _DEPTH_MAX:
        raise ValueError("structs are nested too deeply")
    fields: Struct = {}
    number = 0
    while (head := data[at]) != 0:
        at += 1
        kind = head & 15
        if head >> 4:
            number += head >> 4
        else:
            number, at = _zigzag(data, at)
        if kind in _INTEGERS and (first := data[at]) < 128:
            fields[number] = (kind, first >> 1 ^ -(first & 1))
            at += 1
        else:
            value, at = _value(data, at, kind, depth)
            fields[number] = (kind, value)
    return fields, at + 1


def _value(data: bytes, at: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind in _INTEGERS:
        return _zigzag(data, at)
    if kind == BINARY:
        size, at = _varint(data, at)
        return _take(data, at, size)
    if kind == STRUCT:
        return _struct(data, at, depth + 1)
    if kind in (TRUE, FALSE):
        return kind == TRUE, at
    if kind in (LIST, SET):
        return _list(data, at, depth)
    if kind == DOUBLE:
        return _take(data, at, 8)
    if kind == BYTE:
        return data[at], at + 1
    raise ValueError(f"there is no type {kind} in a footer")


def _list(data: bytes, at: int, depth: int) -> tuple[tuple[int, list[Any]], int]:
    head = data[at]
    kind, size = head & 15, head >> 4
    at += 1
    if size == _LONG:
        size, at = _varint(data, at)
    if size > len(data) - at:
        raise ValueError("a list is longer than the bytes")
    if kind in (TRUE, FALSE):
        return (kind, [byte == TRUE for byte in data[at : at + size]]), at + size
    values = []
    for _ in range(size):
        value, at = _value(data, at, kind, depth)
        values.append(value)
    return (kind, values), at


def _take(data: bytes, at: int, size: int) -> tuple[bytes, int]:
    end = at + size
    if end > len(data):
        raise ValueError("the bytes end within a text")
    return data[at:end], end


def _varint(data: bytes, at: int) -> tuple[int, int]:
    byte = data[at]
    value = byte & 127
    shift = 7
    while byte > 127:
        if shift > 63:
            raise ValueError("a number is too long")
        at += 1
        byte = data[at]
        value |= (byte & 127) << shift
        shift += 7
    return value, at + 1


def _zigzag(data: bytes, at: int) -> tuple[int, int]:
    value, at = _varint(data, at)
    return value >> 1 ^ -(value & 1), at


def _put_struct(out: bytearray, struct: Struct) -> None:
    before = 0
    for number, (kind, value) in sorted(struct.items()):
        if kind in (TRUE, FALSE):
            kind = TRUE if value else FALSE
        if 0 < number - before <= _LONG:
            out.append(number - before << 4 | kind)
        else:
            out.append(kind)
            _put_zigzag(out, number)
        before = number
        if kind in _INTEGERS and 0 <= value < 64:
            out.append(value << 1)
        elif kind not in (TRUE, FALSE):
            _put(out, kind, value)
    out.append(0)


def _put(out: bytearray, kind: int, value: Any) -> None:
    if kind == BYTE:
        out.append(value)
    elif kind in _INTEGERS:
        _put_zigzag(out, value)
    elif kind == DOUBLE:
        out += value
    elif kind == BINARY:
        _put_varint(out, len(value))
        out += value
    elif kind == STRUCT:
        _put_struct(out, value)
    else:
        _put_list(out, *value)


def _put_list(out: bytearray, kind: int, values: list[Any]) -> None:
    out.append(min(len(values), _LONG) << 4 | kind)
    if len(values) >= _LONG:
        _put_varint(out, len(values))
    for value in values:
        if kind in (TRUE, FALSE):
            out.append(TRUE if value else FALSE)
        else:
            _put(out, kind, value)


def _put_varint(out: bytearray, value: int) -> None:
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)


def _put_zigzag(out: bytearray, value: int) -> None:
    _put_varint(out, value << 1 if value >= 0 else (-value << 1) - 1)


Chunk: TypeAlias = tuple[pa.Buffer, Struct]
"""The bytes of an encoded column chunk, and its metadata in a file with other chunks."""

Chunks: TypeAlias = Mapping[bytes, Chunk]
"""Encoded column chunks by the dotted paths of their columns."""

DAMAGE_ERRORS: Final = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""Errors with which a damaged footer shows itself."""

_MAGIC: Final = b"PAR1"
_TAIL: Final = 8
_COPY_BYTES: Final = 8 << 20
_KEY_ENTRIES: Final = frozenset({FILTER, FILTER_TYPE, SMALLEST_KEY, LARGEST_KEY})

# Field ids of parquet.thrift.
_SCHEMA, _ROWS, _GROUPS, _ENTRIES, _ENCRYPTION = 2, 3, 4, 5, 8
_COLUMNS, _GROUP_BYTES, _GROUP_ROWS, _GROUP_OFFSET, _GROUP_COMPRESSED, _GROUP_ORDINAL = 1, 2, 3, 5, 6, 7
_CHUNK_FILE, _CHUNK_OFFSET, _CHUNK_META, _CHUNK_COPIED = 1, 2, 3, (2, 3)
_CODEC = 4
_PATH, _UNCOMPRESSED, _COMPRESSED, _DATA_PAGE, _INDEX_PAGE, _DICTIONARY_PAGE = 3, 6, 7, 9, 10, 11
_OFFSETS, _BLOOM = (_DATA_PAGE, _INDEX_PAGE, _DICTIONARY_PAGE), (14, 15)
_CODECS: Final = {0: "none", 1: "snappy", 2: "gzip", 6: "zstd", 7: "lz4"}
_ELEMENT_NAME, _REPETITION, _REQUIRED = 4, 3, 0


@dataclass(frozen=True, slots=True)
class ChunkSource:
    """A file whose row groups are copied.

    Attributes:
        path: its path, relative to the table's root.
        footer: its decoded footer.
    """

    path: str
    footer: Struct

    @property
    def rows(self) -> int:
        """Rows in the file."""
        return int(self.footer[_ROWS][1])

    @property
    def row_groups(self) -> list[Struct]:
        """Its row groups."""
        groups: list[Struct] = self.footer[_GROUPS][1][1]
        return groups

    @property
    def schema(self) -> Any:
        """Its schema, for comparison."""
        return self.footer[_SCHEMA]

    @property
    def columns(self) -> list[Struct]:
        """The columns of its schema at all depths, without the name of the whole."""
        elements: list[Struct] = self.schema[1][1]
        return elements[1:]

    @property
    def entries(self) -> dict[str, str]:
        """Its key-value entries, except the key summary."""
        entries = self.footer.get(_ENTRIES, (LIST, (STRUCT, [])))[1][1]
        pairs = {entry[1][1].decode(): entry[2][1].decode() for entry in entries if 2 in entry}
        return {key: value for key, value in pairs.items() if key not in _KEY_ENTRIES}

    def names(self, name: str | None) -> FileNames | None:
        """Return the chunks of the meta column with a file's name; None if it is copied, or is not there."""
        for element in self.columns:
            if name is not None and element.get(_ELEMENT_NAME, (BINARY, b""))[1] == FILE_NAME.encode():
                return FileNames(name, is_required=element.get(_REPETITION, (0, 1))[1] == _REQUIRED)
        return None


def chunk_source(storage: Storage, path: str) -> ChunkSource | None:
    """Return a file as a source of row groups; None if they cannot be copied.

    Raises:
        CorruptTableError: the file is missing or damaged.
    """
    with about_file(path), storage.open(path) as file:
        size = file.size()
        tail = file.read_at(_TAIL, max(0, size - _TAIL))
        if len(tail) < _TAIL or tail[4:] != _MAGIC:
            raise CorruptTableError(
                f"The file has no Parquet magic at its end. To repair the table, {REPAIR}."
            )
        length = struct.unpack("<i", tail[:4])[0]
        if not 0 < length <= size - _TAIL - len(_MAGIC):
            raise damaged("it is longer than the file")
        try:
            source = ChunkSource(path, decode_struct(file.read_at(length, size - _TAIL - length)))
            return source if _is_plain(source) else None
        except DAMAGE_ERRORS as error:
            raise damaged(error) from error


def _is_plain(source: ChunkSource) -> bool:
    if _ENCRYPTION in source.footer or source.rows != sum(int(g[_GROUP_ROWS][1]) for g in source.row_groups):
        return False
    _ = source.entries, source.names(FILE_NAME)  # decodes them, so that damage is reported here
    return all(
        _CHUNK_FILE not in chunk and _CHUNK_META in chunk and int(group[_GROUP_ROWS][1]) > 0
        for group in source.row_groups
        for chunk in group[_COLUMNS][1][1]
    )


def damaged(why: object) -> CorruptTableError:
    """Return the error about a damaged footer."""
    return CorruptTableError(f"The footer of the file is damaged ({why}). To repair the table, {REPAIR}.")


class ChunkSink:
    """Writes a file row group by row group.

    Args:
        target: the file.
        names: makes the chunks with the file's own name; None to copy that column, too.
    """

    def __init__(self, target: pa.NativeFile, names: FileNames | None) -> None:
        self._target = target
        self._names = names
        self._row_groups: list[Struct] = []

    def copy(self, file: pa.NativeFile, group: Struct, fresh: Chunks | None = None) -> None:
        """Append a row group of a file.

        Args:
            file: the file.
            group: metadata of the row group.
            fresh: chunks that take the place of some of its chunks; without one of the file's own name it is
                made.
        """
        rows = int(group[_GROUP_ROWS][1])
        start = self._start()
        known = fresh or {}
        chunks = [self._copied(file, chunk, rows, known) for chunk in group[_COLUMNS][1][1]]
        self._append(group, start, chunks)

    def add(self, rows: int, chunks: Chunks) -> None:
        """Append a row group of encoded chunks, those of all columns in their order.

        Args:
            rows: number of its rows.
            chunks: its chunks.
        """
        start = self._start()
        placed = [self._placed_anew(chunk) for chunk in chunks.values()]
        self._append({_GROUP_ROWS: (INT64, rows)}, start, placed)

    def finish(self, footer: Struct, entries: Mapping[str, str]) -> bytes:
        """Write the footer, and return its bytes.

        Args:
            footer: the footer of a source.
            entries: the key-value entries.
        """
        pairs: list[Struct] = [
            {1: (BINARY, key.encode()), 2: (BINARY, value.encode())} for key, value in entries.items()
        ]
        groups = self._row_groups
        own = {
            **footer,
            _ROWS: (INT64, sum(int(group[_GROUP_ROWS][1]) for group in groups)),
            _GROUPS: (LIST, (STRUCT, groups)),
            _ENTRIES: (LIST, (STRUCT, pairs)),
        }
        self._start()
        data = with_tail(encode_struct(own))
        self._target.write(data)
        return data

    def _start(self) -> int:
        """Return where the next bytes come; the first ones of the file are the magic."""
        if not self._target.tell():
            self._target.write(_MAGIC)
        return int(self._target.tell())

    def _append(self, group: Struct, start: int, chunks: list[Struct]) -> None:
        metas = [each[_CHUNK_META][1] for each in chunks]
        copied = dict(group)
        copied[_COLUMNS] = (LIST, (STRUCT, chunks))
        copied[_GROUP_BYTES] = (INT64, sum(int(each[_UNCOMPRESSED][1]) for each in metas))
        copied[_GROUP_OFFSET] = (INT64, start)
        copied[_GROUP_COMPRESSED] = (INT64, sum(int(each[_COMPRESSED][1]) for each in metas))
        copied[_GROUP_ORDINAL] = (INT16, len(self._row_groups))
        self._row_groups.append(copied)

    def _copied(self, file: pa.NativeFile, chunk: Struct, rows: int, fresh: Chunks) -> Struct:
        path = path_of(chunk)
        if path in fresh:
            return self._placed_anew(fresh[path])
        if self._names is not None and path == FILE_NAME.encode():
            return self._placed_anew(self._names.chunk(rows))
        start, size = start_of(chunk), int(chunk[_CHUNK_META][1][_COMPRESSED][1])
        pieces = (
            file.read_at(min(_COPY_BYTES, start + size - at), at)
            for at in range(start, start + size, _COPY_BYTES)
        )
        return self._placed(pieces, chunk, start)

    def _placed_anew(self, chunk: Chunk) -> Struct:
        data, meta = chunk
        return self._placed(iter((data,)), meta, start_of(meta))

    def _placed(self, pieces: Iterator[Any], chunk: Struct, start: int) -> Struct:
        """Write the bytes of a chunk, and return its metadata for the footer."""
        shift = int(self._target.tell()) - start
        written = sum(self._target.write(piece) for piece in pieces)
        meta: Struct = {key: value for key, value in chunk[_CHUNK_META][1].items() if key not in _BLOOM}
        if written != meta[_COMPRESSED][1]:
            raise CorruptTableError(f"The file ends within a row group. To repair the table, {REPAIR}.")
        for key in _OFFSETS:
            if key in meta:
                meta[key] = (INT64, meta[key][1] + shift)
        copied = {key: value for key, value in chunk.items() if key in _CHUNK_COPIED}
        return {**copied, _CHUNK_OFFSET: (INT64, start + shift), _CHUNK_META: (STRUCT, meta)}


class FileNames:
    """Column chunks that have the same file name in every row."""

    def __init__(self, name: str, *, is_required: bool) -> None:
        self._name = name
        self._field = pa.field(FILE_NAME, pa.string(), nullable=not is_required)
        self._chunks: dict[int, Chunk] = {}

    def chunk(self, rows: int) -> Chunk:
        """Return the bytes of a chunk, and its metadata in a file with only this chunk."""
        if rows not in self._chunks:
            self._chunks[rows] = self._make(rows)
        return self._chunks[rows]

    def _make(self, rows: int) -> Chunk:
        column = pa.repeat(pa.scalar(self._name), rows).dictionary_encode()
        sink = pa.BufferOutputStream()
        schema = pa.schema([pa.field(FILE_NAME, column.type, nullable=self._field.nullable)])
        with pq.ParquetWriter(sink, schema, compression="snappy", store_schema=False) as writer:
            writer.write_table(pa.Table.from_arrays([column], schema=schema), row_group_size=max(1, rows))
        return chunks_of(sink.getvalue())[FILE_NAME.encode()]


def chunks_of(data: pa.Buffer) -> dict[bytes, Chunk]:
    """Return the chunks of a Parquet file with one row group.

    Args:
        data: the bytes of the file, as Arrow wrote it.
    """
    footer = footer_in(data)
    chunks: dict[bytes, Chunk] = {}
    for chunk in footer[_GROUPS][1][1][0][_COLUMNS][1][1]:
        start, size = start_of(chunk), int(chunk[_CHUNK_META][1][_COMPRESSED][1])
        chunks[path_of(chunk)] = (data.slice(start, size), chunk)
    return chunks


def columns_in(data: pa.Buffer) -> list[Struct]:
    """Return the columns at all depths of a Parquet file in memory; see `ChunkSource.columns`."""
    return ChunkSource("", footer_in(data)).columns


def footer_in(data: pa.Buffer) -> Struct:
    """Return the decoded footer of a Parquet file in memory."""
    length = struct.unpack("<i", data[-_TAIL:-4].to_pybytes())[0]
    return decode_struct(data[-_TAIL - length : -_TAIL].to_pybytes())


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """What the footer says of a row group as a whole.

    Attributes:
        rows: number of its rows.
        size_bytes: uncompressed size of its columns.
        chunks: what the footer says of its columns, by their dotted paths.
    """

    rows: int
    size_bytes: int
    chunks: Mapping[str, ChunkFacts]

    @staticmethod
    def of(group: Struct) -> GroupFacts:
        """Return what the footer says of a row group."""
        chunks = {path_of(chunk).decode(): ChunkFacts.of(chunk) for chunk in group[_COLUMNS][1][1]}
        return GroupFacts(int(group[_GROUP_ROWS][1]), int(group[_GROUP_BYTES][1]), chunks)


@dataclass(frozen=True, slots=True)
class ChunkFacts:
    """What the footer says of a column chunk.

    Attributes:
        codec: Arrow's name of the codec; `other` for one that drawstring does not write.
        has_dictionary: whether the chunk has a dictionary.
    """

    codec: str
    has_dictionary: bool

    @staticmethod
    def of(chunk: Struct) -> ChunkFacts:
        """Return what the footer says of a column chunk."""
        meta: Struct = chunk[_CHUNK_META][1]
        return ChunkFacts(_CODECS.get(int(meta[_CODEC][1]), "other"), _DICTIONARY_PAGE in meta)


def path_of(chunk: Struct) -> bytes:
    """Return the dotted path of the column of a chunk."""
    path: list[bytes] = chunk[_CHUNK_META][1][_PATH][1][1]
    return b".".join(path)


def start_of(chunk: Struct) -> int:
    """Return where the bytes of a chunk begin in its file."""
    meta: Struct = chunk[_CHUNK_META][1]
    first = int(meta[_DATA_PAGE][1])
    dictionary = int(meta[_DICTIONARY_PAGE][1]) if _DICTIONARY_PAGE in meta else 0
    return min(first, dictionary) if dictionary > 0 else first


def with_tail(footer: bytes) -> bytes:
    """Return an encoded footer with what follows it in a file: its length and the magic."""
    return footer + struct.pack("<i", len(footer)) + _MAGIC


def metadata_of(footer: bytes) -> pq.FileMetaData:
    """Return a footer as Arrow's metadata.

    Args:
        footer: its bytes, with its tail.
    """
    return pq.read_metadata(pa.BufferReader(_MAGIC + footer))
