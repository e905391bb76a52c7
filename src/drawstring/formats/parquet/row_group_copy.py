"""Parquet files of one schema put together without decoding them: row groups are copied as they are.

    PAR1 | row groups of file 1 | row groups of file 2 | ... | one footer with all of them

What differs from file to file is the meta column with the file's own name: its chunks are written anew, of
one value each, and the bytes of all other columns are copied. Indexes of pages and Parquet's own bloom
filters are left out, they can be done without; keys are read for the footer's bloom filter.
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
from drawstring.base.errors import CorruptTableError
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
_CHUNK_FILE, _CHUNK_OFFSET, _CHUNK_META, _CHUNK_KEPT = 1, 2, 3, (2, 3)
_PATH, _UNCOMPRESSED, _COMPRESSED, _DATA_PAGE, _INDEX_PAGE, _DICTIONARY_PAGE = 3, 6, 7, 9, 10, 11
_OFFSETS, _BLOOM = (_DATA_PAGE, _INDEX_PAGE, _DICTIONARY_PAGE), (14, 15)
_ELEMENT_NAME, _REPETITION, _REQUIRED = 4, 3, 0


@dataclass(frozen=True, slots=True)
class StitchSource:
    """A file to be copied.

    Attributes:
        path: relative to the table's root.
        footer: its footer, decoded.
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
        """Its schema, to be compared."""
        return self.footer[_SCHEMA]

    @property
    def entries(self) -> dict[str, str]:
        """Its key-value entries, but for what they say of its keys."""
        found = self.footer.get(_ENTRIES, (LIST, (STRUCT, [])))[1][1]
        pairs = {each[1][1].decode(): each[2][1].decode() for each in found if 2 in each}
        return {key: value for key, value in pairs.items() if key not in _OF_KEYS}


def stitch_source(storage: Storage, path: str) -> StitchSource | None:
    """Return a file as it can be copied; None when it can only be read and written.

    Raises:
        CorruptTableError: the file is missing or damaged.
    """
    with about_file(path), storage.open(path) as file:
        size = file.size()
        tail = file.read_at(_TAIL, max(0, size - _TAIL))
        if len(tail) < _TAIL or tail[4:] != _MAGIC:
            raise CorruptTableError("the file does not end as a Parquet file does: restore it")
        length = struct.unpack("<i", tail[:4])[0]
        if not 0 < length <= size - _TAIL - len(_MAGIC):
            raise _damaged("it is longer than the file")
        try:
            source = StitchSource(path, decode_struct(file.read_at(length, size - _TAIL - length)))
            return source if _is_plain(source) else None
        except _STRANGE as error:
            raise _damaged(error) from error


def can_stitch(sources: Sequence[StitchSource]) -> bool:
    """Tell whether files can become one."""
    first = sources[0]
    alike = all(each.schema == first.schema and each.entries == first.entries for each in sources)
    return alike and sum(len(each.row_groups) for each in sources) <= _ROW_GROUPS_MAX


def stitch(
    storage: Storage, sources: Sequence[StitchSource], path: str, name: str | None, *, bloom: bool
) -> int:
    """Write one file with the row groups of several.

    Args:
        storage: where the files are.
        sources: what is copied, in order; they have been told to be alike.
        path: of the new file.
        name: what the meta column is to say of the file's name; None leaves it alone.
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
    """A file being put together."""

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
        """Write the bytes of a chunk, and return it as the footer tells of it."""
        shift = int(self._target.tell()) - start
        written = sum(self._target.write(piece) for piece in pieces)
        meta: Struct = {key: value for key, value in chunk[_CHUNK_META][1].items() if key not in _BLOOM}
        if written != meta[_COMPRESSED][1]:
            raise CorruptTableError("the file ends within a row group: restore it")
        for key in _OFFSETS:
            if key in meta:
                meta[key] = (INT64, meta[key][1] + shift)
        kept = {key: value for key, value in chunk.items() if key in _CHUNK_KEPT}
        return {**kept, _CHUNK_OFFSET: (INT64, start + shift), _CHUNK_META: (STRUCT, meta)}


class _Names:
    """Column chunks that say one file name in every row."""

    def __init__(self, name: str, *, is_required: bool) -> None:
        self._name = name
        self._field = pa.field(FILE_NAME, pa.string(), nullable=not is_required)
        self._made: dict[int, tuple[bytes, Struct]] = {}

    def chunk(self, rows: int) -> tuple[bytes, Struct]:
        """Return the bytes of a chunk, and what the footer of a file of its own says of it."""
        if rows not in self._made:
            self._made[rows] = self._make(rows)
        return self._made[rows]

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
    can_stitch([source])  # entries and schema are looked at, so that damage is told here
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
    return CorruptTableError(f"the footer of the file is damaged ({why}): restore it")


def _path_of(chunk: Struct) -> list[bytes]:
    path: list[bytes] = chunk[_CHUNK_META][1][_PATH][1][1]
    return path


def _start_of(chunk: Struct) -> int:
    meta: Struct = chunk[_CHUNK_META][1]
    first = int(meta[_DATA_PAGE][1])
    dictionary = int(meta[_DICTIONARY_PAGE][1]) if _DICTIONARY_PAGE in meta else 0
    return min(first, dictionary) if dictionary > 0 else first


def _keys(storage: Storage, sources: Sequence[StitchSource]) -> dict[str, str]:
    """Return what the footer tells of the keys: the column of these is the only one that is read."""
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
