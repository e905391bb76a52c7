"""Copy row groups of Parquet files without decoding: stitch files together, or write the successor of one.

Stitching (`concat_files`): files with the same schema become one file.

    PAR1 | row groups of file 1 | row groups of file 2 | ... | one footer with all of them

Only the meta column with the file's own name differs between the files. Its chunks are rewritten with the new
name, and the bytes of all other columns are copied (`footer`). Record keys are read to build the bloom filter
of the new footer.

Successor of a file in which few rows change (`PatchedSink`):

    row group ── no row changes ───────────> copied
              ├─ values of columns change ─> the chunks of these columns are encoded, the others copied
              └─ rows come or go ──────────> encoded

New chunks have the encoding of those that they replace.

`parquet_parts` returns the row groups of a file, so that a caller can divide its rows among tasks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from drawstring.base.errors import TABLE_DISK, disk_errors
from drawstring.base.resources import ROW_GROUP_BYTES_MAX
from drawstring.formats.bloom_footer import KeySummary
from drawstring.formats.errors import about_file
from drawstring.formats.parquet.footer import (
    DAMAGE_ERRORS,
    Chunk,
    ChunkSink,
    ChunkSource,
    FileNames,
    GroupFacts,
    chunk_source,
    chunks_of,
    columns_in,
    damaged,
    metadata_of,
)
from drawstring.formats.parquet.reader import (
    ParquetQuery,
    check_row_count,
    columns_of,
    expanding_columns,
    fetch_if_small,
    group_rows,
    is_small,
    open_file,
    open_in_table_units,
    read_parquet,
)
from drawstring.formats.parquet.statistics import footer_summaries
from drawstring.formats.parquet.writer import (
    REPEATING,
    Encodings,
    NewFile,
    arrow_codec,
    physical_schema,
    writer_of,
)
from drawstring.model.commit import ColumnSummary
from drawstring.schema.fields import RECORD_KEY, leaf_type
from drawstring.storage.protocol import Storage


@dataclass(frozen=True, slots=True)
class ParquetParts:
    """The parts of a footer that are needed to divide the rows of a file among tasks.

    Attributes:
        columns: the schema.
        entries: the key-value entries.
        sizes_bytes: uncompressed size of each row group.
    """

    columns: pa.Schema
    entries: Mapping[str, str]
    sizes_bytes: tuple[int, ...]


def parquet_parts(storage: Storage, path: str) -> ParquetParts:
    """Return the schema, key-value entries and row group sizes of a file.

    Raises:
        CorruptTableError: the file is missing or damaged.
    """
    with about_file(path), storage.open(path) as file:
        parquet = open_file(file)
        metadata = parquet.metadata
        stored: Mapping[bytes, bytes] = metadata.metadata or {}
        entries = {
            key.decode(errors="replace"): text.decode(errors="replace") for key, text in stored.items()
        }
        sizes = (metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups))
        return ParquetParts(columns_of(parquet), entries, tuple(sizes))


def read_parquet_groups(
    storage: Storage, path: str, schema: pa.Schema, groups: Sequence[int]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of some row groups of a file.

    Args:
        storage: storage of the file.
        path: path of the file, relative to the storage's root.
        schema: top-level columns to yield, with the types of the table.
        groups: numbers of the row groups.

    Raises:
        CorruptTableError: the file is missing or damaged.
    """
    with about_file(path), storage.open(path) as file:
        query = ParquetQuery(types=schema)
        yield from group_rows(file, open_in_table_units(file, query), groups, schema.names)


ROW_GROUPS_MAX: Final = 32_767
"""Row groups in a file: their ordinals have 16 bits."""


def can_concat(sources: Sequence[ChunkSource]) -> bool:
    """Return whether the row groups of files can be copied into one file."""
    first = sources[0]
    match = all(source.schema == first.schema and source.entries == first.entries for source in sources)
    return match and sum(len(source.row_groups) for source in sources) <= ROW_GROUPS_MAX


def concat_files(
    storage: Storage, sources: Sequence[ChunkSource], path: str, name: str | None, *, bloom: float
) -> int:
    """Write one file with the row groups of several.

    Args:
        storage: storage of the table.
        sources: the source files, in order; `can_concat` returned True for them.
        path: path of the new file.
        name: file name for the meta column; None copies that column, too.
        bloom: rate of false positives of the bloom filter that the footer gets beside the smallest and
            largest key, 0 for neither.

    Returns:
        The file's size in bytes.

    Raises:
        CorruptTableError: a source is missing or damaged.
    """
    keys = _keys(storage, sources, bloom) if bloom else {}
    target = storage.create(path)
    try:
        with disk_errors(TABLE_DISK, path):
            return _concatenated(storage, sources, target, sources[0].names(name), keys)
    finally:
        with suppress(OSError):
            target.close()


def _concatenated(
    storage: Storage,
    sources: Sequence[ChunkSource],
    target: pa.NativeFile,
    names: FileNames | None,
    keys: Mapping[str, str],
) -> int:
    sink = ChunkSink(target, names)
    for source in sources:
        with about_file(source.path), storage.open(source.path) as file:
            try:
                for group in source.row_groups:
                    sink.copy(file, group)
            except DAMAGE_ERRORS as error:
                raise damaged(error) from error
    sink.finish(sources[0].footer, {**sources[0].entries, **keys})
    size_bytes = int(target.tell())
    target.close()
    return size_bytes


def _keys(storage: Storage, sources: Sequence[ChunkSource], rate: float) -> dict[str, str]:
    """Return the key summary for the footer, for which only the record key column is read."""
    summary = KeySummary(rate=rate)
    for source in sources:
        for batch in read_parquet(storage, source.path, ParquetQuery(columns=[RECORD_KEY])):
            summary.add(batch.column(RECORD_KEY))
    return summary.footer()


_GROUP_BYTES_MAX: Final = 2 * ROW_GROUP_BYTES_MAX
_GROUP_ROWS_MAX: Final = 1 << 20
"""Size of a row group up to which it is decoded as a whole."""

_SPAN_BYTES: Final = 32 << 20
"""Decoded size of the columns of a row group that are read together."""


class PatchedFile:
    """The open file that is to be replaced.

    Args:
        file: the file.
        source: its footer, as a source of row groups.
        metadata: the same, as Arrow has it.
    """

    def __init__(self, file: pa.NativeFile, source: ChunkSource, metadata: pq.FileMetaData) -> None:
        self.file = file
        self.source = source
        self._metadata = metadata
        parquet = open_file(file, metadata)
        check_row_count(metadata.num_rows, file.size())
        self._is_small = is_small(file)
        groups = range(metadata.num_row_groups)
        texts = expanding_columns(parquet, groups, columns_of(parquet).names, REPEATING)
        self._parquet = open_file(file, metadata, [*REPEATING, *texts])

    @property
    def group_rows(self) -> list[int]:
        """The number of rows of each row group."""
        return [self._metadata.row_group(group).num_rows for group in range(self._metadata.num_row_groups)]

    @property
    def group_bytes(self) -> list[int]:
        """The decoded size of each row group."""
        return [
            self._metadata.row_group(group).total_byte_size for group in range(self._metadata.num_row_groups)
        ]

    def bounds(self, group: int, column: str) -> tuple[Any, Any] | None:
        """Return the least and the greatest value of a column as they are stored; None if unknown."""
        row_group = self._metadata.row_group(group)
        for place in range(row_group.num_columns):
            chunk = row_group.column(place)
            if chunk.path_in_schema == column and chunk.statistics and chunk.statistics.has_min_max:
                return chunk.statistics.min_raw, chunk.statistics.max_raw
        return None

    def columns(self, group: int, names: Sequence[str]) -> pa.Table:
        """Return columns of a row group; texts that repeat are dictionaries."""
        rows = self._parquet.read_row_group(group, list(names), use_threads=not self._is_small)
        return rows.select(list(names)).replace_schema_metadata(None)

    def spans(self, group: int, names: Sequence[str]) -> Iterator[list[str]]:
        """Divide columns of a row group into those that are read together."""
        row_group = self._metadata.row_group(group)
        sizes: dict[str, int] = {}
        for place in range(row_group.num_columns):
            chunk = row_group.column(place)
            name = chunk.path_in_schema.partition(".")[0]
            sizes[name] = sizes.get(name, 0) + chunk.total_uncompressed_size
        span: list[str] = []
        size_bytes = 0
        for name in names:
            if span and size_bytes + sizes.get(name, 0) > _SPAN_BYTES:
                yield span
                span, size_bytes = [], 0
            span.append(name)
            size_bytes += sizes.get(name, 0)
        if span:
            yield span


@contextmanager
def patched_file(storage: Storage, source: ChunkSource, metadata: pq.FileMetaData) -> Iterator[PatchedFile]:
    """Open a file that is to be replaced.

    Raises:
        CorruptTableError: the file is missing or damaged.
    """
    with about_file(source.path), storage.open(source.path) as opened:
        yield PatchedFile(fetch_if_small(opened), source, metadata)


def patch_source(storage: Storage, path: str, schema: pa.Schema, compression: str) -> ChunkSource | None:
    """Return a file as the source of its successor; None if that has to be written as a whole.

    Args:
        storage: storage of the table.
        path: path of the file, relative to the table's root.
        schema: the columns of the successor.
        compression: its codec.

    Raises:
        CorruptTableError: the file is missing or damaged.
    """
    source = chunk_source(storage, path)
    if source is None or source.columns != _stored_columns(physical_schema(schema)):
        return None
    if not 0 < len(source.row_groups) < ROW_GROUPS_MAX - 1:
        return None
    groups = [GroupFacts.of(group) for group in source.row_groups]
    if any(group.rows > _GROUP_ROWS_MAX or group.size_bytes > _GROUP_BYTES_MAX for group in groups):
        return None
    codecs = {chunk.codec for group in groups for chunk in group.chunks.values()}
    return source if codecs <= {"none", arrow_codec(compression)} else None


class PatchedSink(NewFile):
    """Writes the successor.

    Args:
        storage: storage of the table.
        path: path of the successor, relative to the table's root.
        source: the file that it replaces.
        schema: the columns.
        compression: the codec of new chunks.
        summarized: columns of which summaries are made.
    """

    def __init__(
        self,
        storage: Storage,
        path: str,
        source: ChunkSource,
        schema: pa.Schema,
        compression: str,
        summarized: Sequence[str],
    ) -> None:
        super().__init__(storage, path, source.entries)
        self._source = source
        self._types = _types(schema, summarized)
        self._codec = arrow_codec(compression)
        self._sink = ChunkSink(self._file, source.names(path.rpartition("/")[2]))
        self._footer = b""

    def copy(self, file: pa.NativeFile, group: int, changed: pa.Table | None = None) -> None:
        """Append a row group of the source.

        Args:
            file: the source.
            group: number of the row group.
            changed: columns with other values.
        """
        stored = self._source.row_groups[group]
        with disk_errors(TABLE_DISK, self._path):
            self._sink.copy(file, stored, self._encoded(changed, group) if changed is not None else None)

    def add(self, rows: pa.Table, like: int) -> None:
        """Append rows as a row group.

        Args:
            rows: the rows, at least one.
            like: number of the row group of the source whose encodings they get.
        """
        with disk_errors(TABLE_DISK, self._path):
            self._sink.add(rows.num_rows, self._encoded(rows, like))

    def summaries(self) -> tuple[ColumnSummary, ...] | None:
        """Return the summaries of the closed file; None if none were wanted, or if one is unknown."""
        if not self._types:
            return None
        found = footer_summaries(metadata_of(self._footer), self._types)
        return None if any(each.lacks_bounds for each in found.values()) else tuple(found.values())

    def _finish(self, entries: Mapping[str, str]) -> None:
        self._footer = self._sink.finish(self._source.footer, entries)

    def _encoded(self, rows: pa.Table, like: int) -> dict[bytes, Chunk]:
        stored = GroupFacts.of(self._source.row_groups[like]).chunks
        own = {path: chunk for path, chunk in stored.items() if path.partition(".")[0] in rows.schema.names}
        dictionaries = [path for path, chunk in own.items() if chunk.has_dictionary]
        codecs = {path: self._codec if chunk.has_dictionary else chunk.codec for path, chunk in own.items()}
        target = pa.BufferOutputStream()
        encodings = Encodings(dictionaries, codecs)
        with writer_of(target, rows.schema, encodings, page_index=False) as writer:
            writer.write_table(rows, rows.num_rows)
        return chunks_of(target.getvalue())


@lru_cache(maxsize=16)
def _stored_columns(schema: pa.Schema) -> list[Any]:
    """Return the columns of a schema as they are in the footer of a file."""
    target = pa.BufferOutputStream()
    with writer_of(target, schema, Encodings([], {})) as writer:
        writer.write_table(schema.empty_table())
    return columns_in(target.getvalue())


def _types(schema: pa.Schema, columns: Sequence[str]) -> dict[str, pa.DataType]:
    known = ((name, leaf_type(schema, name)) for name in columns)
    return {name: kind for name, kind in known if kind is not None}
