r"""Read base files and Parquet log blocks as a stream of record batches.

    footer -> row groups that `where` cannot rule out -> batches -> rows that `where` keeps
          \-> nothing, where `where` is about record keys that the footer's bloom filter lacks

One row group is in memory at a time (several small ones together); of a large one, a piece of each
column. Pages that have a checksum, as parquet-mr writes it, are held to it: but for GZIP, a flipped bit is
a wrong number otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from drawstring.base.bounds import BATCH_ROWS
from drawstring.formats.bloom.key_summary import (
    FILTER,
    FILTER_TYPE,
    LARGEST_KEY,
    SMALLEST_KEY,
    StoredSummary,
    may_hold_any,
)
from drawstring.formats.conditions import bound_columns, keep_rows, with_table_types
from drawstring.formats.file_errors import about_file
from drawstring.formats.parquet.folded import check_row_count, folded_columns, unfolded
from drawstring.formats.parquet.row_groups import groups_that_may_match
from drawstring.formats.partition_match import guarantee
from drawstring.storage.protocol import Storage
from drawstring.storage.streams import RangeFile

READ_AHEAD_BYTES: Final = 32 << 20
"""Uncompressed bytes of small row groups that are read together."""

WHOLE_BYTES_MAX: Final = 64 << 20
"""Compressed bytes of a row group's columns that are fetched at once; of larger ones, piece by piece."""

PART_WHOLE_BYTES_MAX: Final = 2 << 20
"""Bytes of a Parquet file within a file up to which it is read whole, not column by column."""

_PIECE_BYTES: Final = 4 << 20

_SMALL_FILE_BYTES: Final = 1 << 20
"""A file up to which all of it is fetched at once, and decoded without the help of other threads."""


@dataclass(frozen=True, slots=True)
class ParquetQuery:
    """What to read of a file.

    Attributes:
        columns: top-level columns to yield, in this order; those that the file lacks are left out.
            None yields all.
        where: which rows to yield; a column that the file lacks is null in it.
        batch_rows: most rows in a batch.
        types: types that `where` sees its columns with, when the file may hold narrower ones.
        constants: columns whose value is known: `where` sees it in every row, whatever the file
            says. They are not among the columns yielded unless the file has them.
        dictionaries: text columns to yield dictionary-encoded.
        keys: record keys that rows of `where` can have at most; None for any.
    """

    columns: Sequence[str] | None = None
    where: pc.Expression | None = None
    batch_rows: int = BATCH_ROWS
    types: pa.Schema | None = None
    constants: Mapping[str, pa.Scalar] = field(default_factory=dict)
    dictionaries: Sequence[str] = ()
    keys: Sequence[str] | None = None


_EVERYTHING: Final = ParquetQuery()


def read_parquet(storage: Storage, path: str, query: ParquetQuery = _EVERYTHING) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file, in its order, a bounded batch at a time.

    Args:
        storage: where the file is.
        path: its path relative to the table's root.
        query: columns and rows; all by default.

    Raises:
        CorruptTableError: the file is missing or damaged.
        InvalidError: the condition does not fit the columns' types, or fails on a row.
    """
    with about_file(path), storage.open(path) as file:
        yield from _batches(file, query)


def read_parquet_rows(
    storage: Storage,
    path: str,
    columns: Sequence[str],
    dictionaries: Sequence[str],
    metadata: pq.FileMetaData | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield all rows of a file that is going to be written anew.

    Args:
        storage: where the file is.
        path: its path relative to the table's root.
        columns: top-level columns to yield; those that the file lacks are left out.
        dictionaries: text columns to yield dictionary-encoded, as the writer wants them.
        metadata: the file's footer, if it was read before.

    Raises:
        CorruptTableError: the file is missing or damaged.
    """
    with about_file(path), storage.open(path) as file:
        yield from _batches(file, ParquetQuery(columns, dictionaries=dictionaries), metadata)


@dataclass(frozen=True, slots=True)
class ParquetParts:
    """What the footer of a file tells who wants to divide its rows.

    Attributes:
        columns: its columns.
        entries: its key-value entries.
        sizes_bytes: uncompressed size of each row group.
    """

    columns: pa.Schema
    entries: Mapping[str, str]
    sizes_bytes: tuple[int, ...]


def parquet_parts(storage: Storage, path: str) -> ParquetParts:
    """Return what rows a file has, and where.

    Raises:
        CorruptTableError: the file is missing or damaged.
    """
    with about_file(path), storage.open(path) as file:
        parquet = _open(file)
        metadata = parquet.metadata
        stored: Mapping[bytes, bytes] = metadata.metadata or {}
        entries = {
            key.decode(errors="replace"): text.decode(errors="replace") for key, text in stored.items()
        }
        sizes = (metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups))
        return ParquetParts(_columns_of(parquet), entries, tuple(sizes))


def read_parquet_groups(
    storage: Storage, path: str, columns: Sequence[str], groups: Sequence[int]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of some row groups of a file.

    Args:
        storage: where the file is.
        path: its path relative to the storage's root.
        columns: top-level columns to yield.
        groups: numbers of the row groups.

    Raises:
        CorruptTableError: the file is missing or damaged.
    """
    with about_file(path), storage.open(path) as file:
        yield from _rows(file, _open(file), groups, columns, _EVERYTHING)


def read_parquet_bytes(
    data: bytes | pa.Buffer,
    columns: Sequence[str] | None = None,
    *,
    where: pc.Expression | None = None,
    batch_rows: int = BATCH_ROWS,
    types: pa.Schema | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a Parquet file in memory; see `read_parquet`."""
    with about_file(None):
        yield from _batches(pa.BufferReader(data), ParquetQuery(columns, where, batch_rows, types))


def read_parquet_part(
    file: pa.NativeFile, offset: int, size: int, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a Parquet file that is a part of a file; of a large one only these columns are read.

    Args:
        file: what it is in, open for random access.
        offset: where it starts.
        size: its bytes.
        columns: top-level columns to yield; those that it lacks are left out.

    Raises:
        CorruptTableError: it is damaged.
    """

    def fetch(start: int, end: int) -> bytes:
        file.seek(offset + start)
        return bytes(file.read(end - start))

    if size <= PART_WHOLE_BYTES_MAX:
        yield from read_parquet_bytes(fetch(0, size), columns)
        return
    with about_file(None):
        part = pa.PythonFile(RangeFile(fetch, size), mode="r")
        yield from _batches(part, ParquetQuery(columns))


def parquet_schema(storage: Storage, path: str) -> pa.Schema:
    """Return the columns of a file.

    Raises:
        CorruptTableError: the file is missing or damaged.
    """
    with about_file(path), storage.open(path) as file:
        return _columns_of(_open(file))


def parquet_footer(storage: Storage, path: str) -> dict[str, str]:
    """Return the key-value entries of a file's footer.

    Raises:
        CorruptTableError: the file is missing or damaged.
    """
    with about_file(path), storage.open(path) as file:
        entries: Mapping[bytes, bytes] = pq.read_metadata(file).metadata or {}
        return {key.decode(): value.decode() for key, value in entries.items()}


def stored_summary(storage: Storage, path: str) -> StoredSummary:
    """Return what the footer of a file tells of the record keys in it.

    Raises:
        CorruptTableError: the file is missing or damaged.
    """
    with about_file(path), storage.open(path) as file:
        metadata = pq.read_metadata(file)
        entries: Mapping[bytes, bytes] = metadata.metadata or {}
        wanted = (FILTER, FILTER_TYPE, SMALLEST_KEY, LARGEST_KEY)
        texts = {name: entries[name.encode()].decode() for name in wanted if name.encode() in entries}
        return StoredSummary.of(texts, metadata.num_rows)


def _open(
    file: pa.NativeFile,
    metadata: pq.FileMetaData | None = None,
    dictionaries: Sequence[str] = (),
    *,
    in_pieces: bool = False,
) -> pq.ParquetFile:
    return pq.ParquetFile(
        file,
        metadata=metadata,
        read_dictionary=list(dictionaries),
        coerce_int96_timestamp_unit="us",
        pre_buffer=not in_pieces and not isinstance(file, pa.BufferReader),
        buffer_size=_PIECE_BYTES if in_pieces else 0,
        page_checksum_verification=True,
    )


def _columns_of(parquet: pq.ParquetFile) -> pa.Schema:
    """Return the file's columns without metadata: the footer's entries would travel with each batch."""
    return pa.schema([field.remove_metadata() for field in parquet.schema_arrow])


def _batches(
    file: pa.NativeFile, query: ParquetQuery, metadata: pq.FileMetaData | None = None
) -> Iterator[pa.RecordBatch]:
    if not isinstance(file, pa.BufferReader) and file.size() <= _SMALL_FILE_BYTES:
        file = pa.BufferReader(file.read_buffer())
    if query.where is not None:
        yield from _matching(file, query, query.where)
        return
    parquet = _open(file, metadata, query.dictionaries)
    names = _wanted(query, _columns_of(parquet))
    yield from _rows(file, parquet, range(parquet.num_row_groups), names, query)


def _matching(file: pa.NativeFile, query: ParquetQuery, where: pc.Expression) -> Iterator[pa.RecordBatch]:
    files = ds.ParquetFileFormat(coerce_int96_timestamp_unit="us")
    fragment = files.make_fragment(file, partition_expression=guarantee(query.constants))
    if query.keys is not None and not may_hold_any(fragment.metadata.metadata or {}, query.keys):
        return
    parquet = _open(file, fragment.metadata, query.dictionaries)
    present = _columns_of(parquet)
    known = pa.schema([(name, value.type) for name, value in query.constants.items()])
    bound = bound_columns(where, with_table_types(known, with_table_types(present, query.types)))
    wanted = _wanted(query, present)
    looks_at = [name for name in bound.names if name in present.names and name not in query.constants]
    needed = [*wanted, *(name for name in looks_at if name not in wanted)]
    groups = groups_that_may_match(fragment, where, bound, with_table_types(present, known))
    for batch in _rows(file, parquet, groups, needed, query):
        kept = keep_rows(batch, where, bound, query.constants)
        if kept.num_rows:
            yield kept.select(wanted)


def _wanted(query: ParquetQuery, present: pa.Schema) -> list[str]:
    if query.columns is None:
        return list(present.names)
    return [name for name in query.columns if name in present.names]


def _rows(
    file: pa.NativeFile,
    parquet: pq.ParquetFile,
    groups: Sequence[int],
    names: Sequence[str],
    query: ParquetQuery,
) -> Iterator[pa.RecordBatch]:
    is_small = isinstance(file, pa.BufferReader) and file.size() <= _SMALL_FILE_BYTES
    check_row_count(parquet.metadata.num_rows, file.size())
    folded = folded_columns(parquet, groups, names, query.dictionaries)
    for span in _spans(parquet.metadata, groups):
        opened = parquet
        in_pieces = not isinstance(file, pa.BufferReader) and (
            _stored_bytes(parquet, span, names) > WHOLE_BYTES_MAX
        )
        if folded or in_pieces:
            dictionaries = [*query.dictionaries, *folded]
            opened = _open(file, parquet.metadata, dictionaries, in_pieces=in_pieces)
        batches = opened.iter_batches(query.batch_rows, span, columns=names, use_threads=not is_small)
        for batch in batches:
            yield from unfolded(batch.select(names).replace_schema_metadata(None), folded)


def _stored_bytes(parquet: pq.ParquetFile, groups: Sequence[int], names: Sequence[str]) -> int:
    """Return the compressed bytes of some columns; 0 where all columns together are few."""
    found = [parquet.metadata.row_group(group) for group in groups]
    if sum(group.total_byte_size for group in found) <= WHOLE_BYTES_MAX:
        return 0
    columns = [group.column(at) for group in found for at in range(group.num_columns)]
    wanted = set(names)
    return sum(c.total_compressed_size for c in columns if c.path_in_schema.partition(".")[0] in wanted)


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
