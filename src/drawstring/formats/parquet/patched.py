"""The successor of a Parquet file in which few rows change: what stays is copied as it is stored.

    row group ── no row changes ───────────> copied
              ├─ values of columns change ─> the chunks of these columns are encoded, the others copied
              └─ rows come or go ──────────> encoded

New chunks have the encoding of those that they replace.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from drawstring.base.bounds import ROW_GROUP_BYTES_MAX
from drawstring.base.disk_errors import TABLE_DISK, disk_errors
from drawstring.formats.file_errors import about_file
from drawstring.formats.new_file import NewFile
from drawstring.formats.parquet.column_chunks import (
    Chunk,
    ChunkSink,
    ChunkSource,
    GroupFacts,
    chunk_source,
    chunks_of,
    columns_in,
    metadata_of,
)
from drawstring.formats.parquet.encoding import REPEATING, Encodings, physical
from drawstring.formats.parquet.folded import check_row_count, folded_columns
from drawstring.formats.parquet.read import columns_of, fetched_if_small, is_small, open_file
from drawstring.formats.parquet.row_group_copy import ROW_GROUPS_MAX
from drawstring.formats.parquet.summaries import footer_summaries
from drawstring.formats.parquet.write import arrow_codec, writer_of
from drawstring.model.column_summary import ColumnSummary
from drawstring.schema.fields import leaf_type
from drawstring.storage.protocol import Storage

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
        texts = folded_columns(parquet, groups, columns_of(parquet).names, REPEATING)
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
        yield PatchedFile(fetched_if_small(opened), source, metadata)


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
    if source is None or source.columns != _stored_columns(physical(schema)):
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
