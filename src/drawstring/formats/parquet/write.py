"""The writers of Parquet base files and log blocks.

The footer of a base file has the entries that other writers of the table need (wire format: Base files,
Footer keys):

    parquet.avro.schema             the record schema, meta columns included
    writer.model.name               avro
    hoodie.vector.columns           the VECTOR columns, such as `a:VECTOR(3)`; only if there are some
    org.apache.hudi.bloomfilter     which record keys may be in the file, base64
    hoodie_bloom_filter_type_code   DYNAMIC_V0
    hoodie_min_record_key           smallest key, in the order of Java strings
    hoodie_max_record_key           largest key

Arrow's own schema is not stored: readers take the types from Parquet's schema.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from drawstring.base.bounds import ROW_GROUP_BYTES_MAX, ROW_GROUP_ROWS
from drawstring.base.disk_errors import TABLE_DISK, disk_errors
from drawstring.base.errors import InternalError, InvalidError
from drawstring.formats.bloom.filters import BloomFilter
from drawstring.formats.new_file import KeyedFile
from drawstring.formats.parquet.encoding import (
    Encodings,
    SharedEncodings,
    block_encodings,
    encodings_of,
    physical,
    statistics_leaves,
)
from drawstring.formats.parquet.summaries import WrittenSummaries
from drawstring.model.column_summary import ColumnSummary
from drawstring.schema.avro import avro_to_arrow
from drawstring.schema.logical_types import VECTOR_COLUMNS, is_vector, vector_bytes, vector_columns
from drawstring.schema.meta import with_meta_fields
from drawstring.schema.normal import replace_hidden_nulls
from drawstring.storage.protocol import Storage

PAGE_BYTES: Final = 128 << 10
"""Uncompressed size of a page: it has to fit a core's cache together with its input rows."""

_CODECS: Final = {"uncompressed": "none", "lz4_raw": "lz4"}
_LEVELS: Final = {"gzip": 6}
_COMPRESSION_GUESS: Final = 0.5


@dataclass(frozen=True, slots=True)
class RowGroups:
    """How large the row groups of a file get.

    Attributes:
        rows: largest number of rows.
        size_bytes: about how many bytes they take in memory, at most.
    """

    rows: int = ROW_GROUP_ROWS
    size_bytes: int = ROW_GROUP_BYTES_MAX

    def rows_of(self, rows: int, size_bytes: int) -> int:
        """Return how many rows a row group has, of some rows with a known size in memory."""
        return min(self.rows, max(1, rows * self.size_bytes // max(1, size_bytes)))


class ParquetSink(KeyedFile):
    """Writes a base file, row group by row group.

    Args:
        storage: storage of the table.
        path: path of the file, relative to the table's root.
        schema: its columns, including meta columns.
        table_avro_schema: the record schema as Avro JSON; missing meta columns are added.
        compression: Parquet codec by name (`snappy`, `zstd`, `gzip`, `lz4_raw`, `uncompressed`).
        bloom: as of `KeyedFile`.
        row_groups: how large they get.
    """

    def __init__(
        self,
        storage: Storage,
        path: str,
        schema: pa.Schema,
        *,
        table_avro_schema: str,
        compression: str,
        bloom: float | BloomFilter,
        row_groups: RowGroups = RowGroups(),
    ) -> None:
        super().__init__(storage, path, entries_of(table_avro_schema), schema, bloom)
        self._groups = row_groups
        self._shared: SharedEncodings | None = None
        self._schema = physical(schema)
        self._compression = compression
        self._pending: list[pa.RecordBatch] = []
        self._pending_rows = 0
        self._pending_bytes = 0
        self._flushed_bytes = 0
        self._writer: pq.ParquetWriter | None = None
        self._footers: list[pq.FileMetaData] = []
        self._summaries: WrittenSummaries | None = None

    @property
    def bytes_written(self) -> int:
        """Estimated size of the file if it ended here, including rows that are not written yet."""
        on_disk = int(self._file.tell())
        ratio = on_disk / self._flushed_bytes if self._flushed_bytes else _COMPRESSION_GUESS
        return on_disk + int(self._pending_bytes * ratio)

    def write(self, batch: pa.RecordBatch, *, is_known: bool = False) -> None:
        """Add rows; dictionary-encoded meta columns are the cheapest.

        Args:
            batch: the file's columns, in any order.
            is_known: whether the file that this one replaces had all the keys.
        """
        self._note_keys(batch, is_known=is_known)
        self._pending.append(batch)
        self._pending_rows += batch.num_rows
        self._pending_bytes += batch.nbytes
        if self._pending_rows >= self._groups.rows or self._pending_bytes >= self._groups.size_bytes:
            with disk_errors(TABLE_DISK, self._path):
                self._flush(everything=False)

    def flush(self) -> bool:
        """Write the rows so far as row groups of their own; return that it was done."""
        with disk_errors(TABLE_DISK, self._path):
            self._flush(everything=True)
        return True

    def summarize(self, columns: Sequence[str]) -> None:
        """Have the summaries of some columns made, before any rows are written."""
        self._summaries = WrittenSummaries(columns, self._schema) if columns else None

    def share(self, encodings: SharedEncodings) -> None:
        """Choose the encodings together with other files, before any rows are written."""
        self._shared = encodings

    def summaries(self) -> tuple[ColumnSummary, ...] | None:
        """Return the summaries of the closed file; None if none were wanted, or if one is unknown."""
        return self._summaries.finished(self._footers[0]) if self._summaries and self._footers else None

    def _give_up(self) -> None:
        self._pending = []
        with suppress(OSError, RuntimeError, ValueError, pa.ArrowException):
            if self._writer is not None:
                self._writer.close()

    def _finish(self, entries: Mapping[str, str]) -> None:
        self._flush(everything=True)
        writer = self._writer or self._open(self._schema.empty_table())
        writer.add_key_value_metadata(entries)
        writer.close()

    def _flush(self, *, everything: bool) -> None:
        rows = self._pending_rows
        if rows == 0:
            return
        group_rows = self._groups.rows_of(rows, self._pending_bytes)
        if not everything:
            rows -= rows % group_rows
        table = table_of(self._pending, self._schema)
        if self._writer is None:
            self._writer = self._open(table)
        _write_rows(self._writer, table.slice(0, rows), group_rows)
        if self._summaries is not None:
            self._summaries.add(table.slice(0, rows))
        rest = table.slice(rows).to_batches()
        rest_bytes = sum(batch.nbytes for batch in rest)
        self._flushed_bytes += self._pending_bytes - rest_bytes
        self._pending = rest
        self._pending_rows -= rows
        self._pending_bytes = rest_bytes

    def _open(self, first: pa.Table) -> pq.ParquetWriter:
        choose = encodings_of if self._shared is None else self._shared.of
        encodings = choose(first, arrow_codec(self._compression))
        return writer_of(self._file, first.schema, encodings, self._footers)


def encode_parquet_block(
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    avro_schema_json: str,
    compression: str,
    entries: Mapping[str, str] | None = None,
    *,
    shared: SharedEncodings | None = None,
) -> bytes:
    """Return records as a Parquet file in memory, for the content of a log block.

    Args:
        batches: the records; may be empty.
        schema: their columns.
        avro_schema_json: the record schema as Avro JSON.
        compression: Parquet codec by name.
        entries: additional entries of the footer.
        shared: what chooses the encodings together with other blocks; None for this block alone.
    """
    target = pa.BufferOutputStream()
    rows = table_of(list(batches), physical(schema))
    choose = block_encodings if shared is None else shared.of_block
    encodings = choose(rows, arrow_codec(compression))
    # Of columns with one page each, an index says nothing that the footer does not.
    writer = writer_of(target, rows.schema, encodings, page_index=rows.nbytes >= PAGE_BYTES)
    if rows.num_rows:
        _write_rows(writer, rows, ROW_GROUP_ROWS)
    writer.add_key_value_metadata({**entries_of(avro_schema_json), **(entries or {})})
    writer.close()
    return bytes(target.getvalue())


def entries_of(avro_schema_json: str) -> dict[str, str]:
    """Return the entries of a footer that Hudi's readers of records need."""
    entries = {"parquet.avro.schema": with_meta_fields(avro_schema_json), "writer.model.name": "avro"}
    vectors = vector_columns(avro_to_arrow(avro_schema_json)) if '"vector"' in avro_schema_json else ""
    return {**entries, VECTOR_COLUMNS: vectors} if vectors else entries


def arrow_codec(compression: str) -> str:
    """Return Arrow's name of a codec."""
    codec = compression.lower()
    return _CODECS.get(codec, codec)


def writer_of(
    target: pa.NativeFile,
    schema: pa.Schema,
    encodings: Encodings,
    footers: list[pq.FileMetaData] | None = None,
    *,
    page_index: bool = True,
) -> pq.ParquetWriter:
    """Open a file.

    Args:
        target: the file.
        schema: its columns, as `physical` has them.
        encodings: their encodings.
        footers: is given the footer when the file is closed.
        page_index: whether the file has page indexes.

    Raises:
        InvalidError: there is no such codec.
    """
    levels = {name: _LEVELS[each] for name, each in encodings.codecs.items() if each in _LEVELS}
    try:
        return pq.ParquetWriter(
            target,
            schema,
            version="2.6",
            compression=encodings.codecs,
            compression_level=levels,
            use_dictionary=encodings.dictionaries,
            write_statistics=statistics_leaves(schema),
            write_page_index=page_index,
            data_page_size=PAGE_BYTES,
            store_schema=False,
            metadata_collector=footers,
        )
    except (pa.ArrowException, OSError) as error:
        # Arrow also reports unknown codecs as OSError, but without an error number.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        codecs = ", ".join(sorted({*encodings.codecs.values()} - {"none"}))
        raise InvalidError(
            f"Parquet files cannot be written with the codec {codecs!r} ({error}). Choose another codec."
        ) from error


def _write_rows(writer: pq.ParquetWriter, rows: pa.Table, rows_max: int) -> None:
    """Write rows as row groups."""
    try:
        writer.write_table(rows, rows_max)
    except pa.ArrowInvalid as error:
        raise InvalidError(f"The rows do not fit the file's schema ({error}). Correct the rows.") from error


def table_of(batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    """Return rows with the columns of a file, in its order and types."""
    return pa.Table.from_arrays([_column(batches, field) for field in schema], schema=schema)


def _column(batches: Sequence[pa.RecordBatch], field: pa.Field) -> pa.ChunkedArray:
    chunks = [_as_field(_named(batch, field.name), field) for batch in batches]
    column = pa.chunked_array(chunks, type=field.type)
    return column.unify_dictionaries() if pa.types.is_dictionary(field.type) else column


def _named(batch: pa.RecordBatch, name: str) -> pa.Array:
    try:
        return batch.column(name)
    except KeyError as error:
        raise InternalError(f"A batch lacks column {name} of its file. Report this defect.") from error


def _as_field(values: pa.Array, field: pa.Field) -> pa.Array:
    if values.type == field.type:
        return replace_hidden_nulls(values)
    if is_vector(values.type):
        values = vector_bytes(values)
    if pa.types.is_dictionary(field.type) and not pa.types.is_dictionary(values.type):
        values = pc.dictionary_encode(values)
    return replace_hidden_nulls(values.cast(field.type))
