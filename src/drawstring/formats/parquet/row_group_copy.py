"""Concatenation of Parquet files with the same schema by copying their row groups without decoding.

    PAR1 | row groups of file 1 | row groups of file 2 | ... | one footer with all of them

Only the meta column with the file's own name differs between the files: its chunks are rewritten with the new
name, and the bytes of all other columns are copied. Page indexes and Parquet's own bloom filters are optional
and are omitted; record keys are read to build the footer's bloom filter.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from drawstring.base.disk_errors import TABLE_DISK, disk_errors
from drawstring.base.errors import REPAIR, CorruptTableError
from drawstring.formats.bloom.key_summary import FILTER, FILTER_TYPE, LARGEST_KEY, SMALLEST_KEY, KeySummary
from drawstring.formats.file_errors import about_file
from drawstring.formats.parquet.read import ParquetQuery, read_parquet
from drawstring.formats.parquet.thrift import (
    BINARY,
    INT16,
    INT64,
    LIST,
    STRUCT,
    Struct,
    decode_struct,
    encode_struct,
)
from drawstring.schema.meta import FILE_NAME, RECORD_KEY
from drawstring.storage.protocol import Storage

_MAGIC: Final = b"PAR1"
_TAIL: Final = 8
_COPY_BYTES: Final = 8 << 20
_ROW_GROUPS_MAX: Final = 32_767
_STRANGE: Final = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
_OF_KEYS: Final = frozenset({FILTER, FILTER_TYPE, SMALLEST_KEY, LARGEST_KEY})

# Field ids of parquet.thrift.
_SCHEMA, _ROWS, _GROUPS, _ENTRIES, _ENCRYPTION = 2, 3, 4, 5, 8
_COLUMNS, _GROUP_BYTES, _GROUP_ROWS, _GROUP_OFFSET, _GROUP_COMPRESSED, _GROUP_ORDINAL = 1, 2, 3, 5, 6, 7
_CHUNK_FILE, _CHUNK_OFFSET, _CHUNK_META, _CHUNK_COPIED = 1, 2, 3, (2, 3)
_PATH, _UNCOMPRESSED, _COMPRESSED, _DATA_PAGE, _INDEX_PAGE, _DICTIONARY_PAGE = 3, 6, 7, 9, 10, 11
_OFFSETS, _BLOOM = (_DATA_PAGE, _INDEX_PAGE, _DICTIONARY_PAGE), (14, 15)
_ELEMENT_NAME, _REPETITION, _REQUIRED = 4, 3, 0


@dataclass(frozen=True, slots=True)
class StitchSource:
    """A source file.

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
    def entries(self) -> dict[str, str]:
        """Its key-value entries, except the key summary."""
        entries = self.footer.get(_ENTRIES, (LIST, (STRUCT, [])))[1][1]
        pairs = {entry[1][1].decode(): entry[2][1].decode() for entry in entries if 2 in entry}
        return {key: value for key, value in pairs.items() if key not in _OF_KEYS}


def stitch_source(storage: Storage, path: str) -> StitchSource | None:
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
            raise _damaged("it is longer than the file")
        try:
            source = StitchSource(path, decode_struct(file.read_at(length, size - _TAIL - length)))
            return source if _is_plain(source) else None
        except _STRANGE as error:
            raise _damaged(error) from error


def can_stitch(sources: Sequence[StitchSource]) -> bool:
    """Return whether the row groups of files can be copied into one file."""
    first = sources[0]
    match = all(source.schema == first.schema and source.entries == first.entries for source in sources)
    return match and sum(len(source.row_groups) for source in sources) <= _ROW_GROUPS_MAX


def stitch(
    storage: Storage, sources: Sequence[StitchSource], path: str, name: str | None, *, bloom: bool
) -> int:
    """Write one file with the row groups of several.

    Args:
        storage: storage of the table.
        sources: the source files, in order; `can_stitch` returned True for them.
        path: path of the new file.
        name: file name for the meta column; None copies that column, too.
        bloom: whether the footer gets a bloom filter and the smallest and largest key.

    Returns:
        The file's size in bytes.

    Raises:
        CorruptTableError: a source is missing or damaged.
    """
    keys = _keys(storage, sources) if bloom else {}
    target = storage.create(path)
    try:
        with disk_errors(TABLE_DISK, path):
            return _stitched(storage, sources, target, _names(sources[0], name), keys)
    finally:
        with suppress(OSError):
            target.close()


def _stitched(
    storage: Storage,
    sources: Sequence[StitchSource],
    target: pa.NativeFile,
    names: _Names | None,
    keys: Mapping[str, str],
) -> int:
    target.write(_MAGIC)
    writer = _Stitching(target, names)
    for source in sources:
        with about_file(source.path), storage.open(source.path) as file:
            try:
                for group in source.row_groups:
                    writer.copy(file, group)
            except _STRANGE as error:
                raise _damaged(error) from error
    footer = encode_struct(_footer(sources, writer.row_groups, {**sources[0].entries, **keys}))
    target.write(footer + struct.pack("<i", len(footer)) + _MAGIC)
    size_bytes = int(target.tell())
    target.close()
    return size_bytes


class _Stitching:
    """Writes a file by copying row groups."""

    def __init__(self, target: pa.NativeFile, names: _Names | None) -> None:
        self._target = target
        self._names = names
        self.row_groups: list[Struct] = []

    def copy(self, file: pa.NativeFile, group: Struct) -> None:
        """Append a row group."""
        start = int(self._target.tell())
        rows = int(group[_GROUP_ROWS][1])
        chunks = [self._chunk(file, chunk, rows) for chunk in group[_COLUMNS][1][1]]
        compressed = sum(int(each[_CHUNK_META][1][_COMPRESSED][1]) for each in chunks)
        copied = dict(group)
        copied[_COLUMNS] = (LIST, (STRUCT, chunks))
        copied[_GROUP_BYTES] = (INT64, sum(int(each[_CHUNK_META][1][_UNCOMPRESSED][1]) for each in chunks))
        copied[_GROUP_OFFSET] = (INT64, start)
        copied[_GROUP_COMPRESSED] = (INT64, compressed)
        copied[_GROUP_ORDINAL] = (INT16, len(self.row_groups))
        self.row_groups.append(copied)

    def _chunk(self, file: pa.NativeFile, chunk: Struct, rows: int) -> Struct:
        if self._names is not None and _path_of(chunk) == [FILE_NAME.encode()]:
            data, own = self._names.chunk(rows)
            return self._placed(own, iter((data,)), _start_of(own))
        start, size = _start_of(chunk), int(chunk[_CHUNK_META][1][_COMPRESSED][1])
        pieces = (
            file.read_at(min(_COPY_BYTES, start + size - at), at)
            for at in range(start, start + size, _COPY_BYTES)
        )
        return self._placed(chunk, pieces, start)

    def _placed(self, chunk: Struct, pieces: Iterator[bytes], start: int) -> Struct:
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


class _Names:
    """Column chunks that have the same file name in every row."""

    def __init__(self, name: str, *, is_required: bool) -> None:
        self._name = name
        self._field = pa.field(FILE_NAME, pa.string(), nullable=not is_required)
        self._chunks: dict[int, tuple[bytes, Struct]] = {}

    def chunk(self, rows: int) -> tuple[bytes, Struct]:
        """Return the bytes of a chunk, and its metadata in a file with only this chunk."""
        if rows not in self._chunks:
            self._chunks[rows] = self._make(rows)
        return self._chunks[rows]

    def _make(self, rows: int) -> tuple[bytes, Struct]:
        column = pa.repeat(pa.scalar(self._name), rows).dictionary_encode()
        sink = pa.BufferOutputStream()
        schema = pa.schema([pa.field(FILE_NAME, column.type, nullable=self._field.nullable)])
        with pq.ParquetWriter(sink, schema, compression="snappy", store_schema=False) as writer:
            writer.write_table(pa.Table.from_arrays([column], schema=schema), row_group_size=max(1, rows))
        data = sink.getvalue().to_pybytes()
        length = struct.unpack("<i", data[-_TAIL:-4])[0]
        footer = decode_struct(data[-_TAIL - length : -_TAIL])
        chunk: Struct = footer[_GROUPS][1][1][0][_COLUMNS][1][1][0]
        start = _start_of(chunk)
        return data[start : start + int(chunk[_CHUNK_META][1][_COMPRESSED][1])], chunk


def _is_plain(source: StitchSource) -> bool:
    if _ENCRYPTION in source.footer or source.rows != sum(int(g[_GROUP_ROWS][1]) for g in source.row_groups):
        return False
    can_stitch([source])  # decodes entries and schema, so that damage is reported here
    _names(source, FILE_NAME)
    return all(
        _CHUNK_FILE not in chunk and _CHUNK_META in chunk and int(group[_GROUP_ROWS][1]) > 0
        for group in source.row_groups
        for chunk in group[_COLUMNS][1][1]
    )


def _names(source: StitchSource, name: str | None) -> _Names | None:
    elements: list[Struct] = source.schema[1][1]
    for element in elements:
        if name is not None and element.get(_ELEMENT_NAME, (BINARY, b""))[1] == FILE_NAME.encode():
            return _Names(name, is_required=element.get(_REPETITION, (0, 1))[1] == _REQUIRED)
    return None


def _damaged(why: object) -> CorruptTableError:
    return CorruptTableError(f"The footer of the file is damaged ({why}). To repair the table, {REPAIR}.")


def _path_of(chunk: Struct) -> list[bytes]:
    path: list[bytes] = chunk[_CHUNK_META][1][_PATH][1][1]
    return path


def _start_of(chunk: Struct) -> int:
    meta: Struct = chunk[_CHUNK_META][1]
    first = int(meta[_DATA_PAGE][1])
    dictionary = int(meta[_DICTIONARY_PAGE][1]) if _DICTIONARY_PAGE in meta else 0
    return min(first, dictionary) if dictionary > 0 else first


def _keys(storage: Storage, sources: Sequence[StitchSource]) -> dict[str, str]:
    """Return the key summary for the footer, for which only the record key column is read."""
    summary = KeySummary()
    for source in sources:
        for batch in read_parquet(storage, source.path, ParquetQuery(columns=[RECORD_KEY])):
            summary.add(batch.column(RECORD_KEY))
    return summary.footer()


def _footer(sources: Sequence[StitchSource], groups: list[Struct], entries: Mapping[str, str]) -> Struct:
    pairs: list[Struct] = [
        {1: (BINARY, key.encode()), 2: (BINARY, value.encode())} for key, value in entries.items()
    ]
    return {
        **sources[0].footer,
        _ROWS: (INT64, sum(each.rows for each in sources)),
        _GROUPS: (LIST, (STRUCT, groups)),
        _ENTRIES: (LIST, (STRUCT, pairs)),
    }
