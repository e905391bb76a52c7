"""Write base files and Parquet log blocks.

A base file's footer carries what other writers of the table look for (wire format: Base files,
Footer keys):

    parquet.avro.schema             the record schema, meta columns included
    writer.model.name               avro
    org.apache.hudi.bloomfilter     which record keys may be in the file, base64
    hoodie_bloom_filter_type_code   DYNAMIC_V0
    hoodie_min_record_key           smallest key, in the order of Java strings
    hoodie_max_record_key           largest key

Arrow's own schema is left out of the file: every reader takes the types from Parquet's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from drawstring.base.bounds import ROW_GROUP_ROWS
from drawstring.base.errors import InternalError, InvalidError
from drawstring.base.javahash import java_min_max
from drawstring.formats.bloom import BloomFilter
from drawstring.schema.meta import with_meta_fields
from drawstring.storage.protocol import Storage

ROW_GROUP_BYTES_MAX: Final = 128 << 20
"""Bytes of Arrow data in one row group of a base file."""

RECORD_KEY: Final = "_hoodie_record_key"
_REPEATING: Final = frozenset(("_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_file_name"))
_UNIQUE: Final = frozenset(("_hoodie_commit_seqno", RECORD_KEY))
_CODECS: Final = {"uncompressed": "none", "lz4_raw": "lz4"}
_LEVELS: Final = {"gzip": 6}
_COMPRESSION_GUESS: Final = 0.5


class ParquetSink:
    """A base file being written, row group by row group.

    Args:
        storage: where the file goes.
        path: its path relative to the table's root.
        schema: its columns, the meta columns among them.
        table_avro_schema: the record schema as Avro JSON; meta columns are added if it lacks them.
        compression: Parquet codec by name (`snappy`, `zstd`, `gzip`, `lz4_raw`, `uncompressed`).
        bloom: whether the footer gets a bloom filter and the smallest and largest record key.
        row_group_rows: rows in a row group; wide rows end it earlier.
    """

    def __init__(
        self,
        storage: Storage,
        path: str,
        schema: pa.Schema,
        *,
        table_avro_schema: str,
        compression: str,
        bloom: bool,
        row_group_rows: int = ROW_GROUP_ROWS,
    ) -> None:
        self._storage = storage
        self._path = path
        self._rows_max = row_group_rows
        self._schema = _physical(schema)
        self._avro = table_avro_schema
        self._keys = _KeySummary() if bloom and RECORD_KEY in schema.names else None
        self._pending: list[pa.RecordBatch] = []
        self._pending_rows = 0
        self._pending_bytes = 0
        self._flushed_bytes = 0
        self._file = storage.create(path)
        self._writer = _writer(self._file, self._schema, compression)

    @property
    def bytes_written(self) -> int:
        """Bytes that the file will have if it ends here, an estimate: a row group may be waiting."""
        on_disk = int(self._file.tell())
        ratio = on_disk / self._flushed_bytes if self._flushed_bytes else _COMPRESSION_GUESS
        return on_disk + int(self._pending_bytes * ratio)

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows. Meta columns that repeat may come dictionary-encoded: those are cheapest.

        Args:
            batch: the file's columns, in any order.
        """
        if self._keys is not None:
            self._keys.add(_named(batch, RECORD_KEY))
        self._pending.append(batch)
        self._pending_rows += batch.num_rows
        self._pending_bytes += batch.nbytes
        if self._pending_rows >= self._rows_max or self._pending_bytes >= ROW_GROUP_BYTES_MAX:
            self._flush(everything=False)

    def close(self) -> int:
        """Write what is left and the footer.

        Returns:
            The file's size in bytes.
        """
        self._flush(everything=True)
        self._writer.add_key_value_metadata(_footer(self._avro, self._keys))
        self._writer.close()
        size_bytes = int(self._file.tell())
        self._file.close()
        return size_bytes

    def abort(self) -> None:
        """Give up the file and remove what was written of it."""
        self._pending = []
        with suppress(OSError, ValueError, pa.ArrowException):
            self._writer.close()
        with suppress(OSError, ValueError, pa.ArrowException):
            self._file.close()
        self._storage.delete([self._path])

    def _flush(self, *, everything: bool) -> None:
        rows = self._pending_rows
        if self._pending_bytes < ROW_GROUP_BYTES_MAX and not everything:
            rows -= rows % self._rows_max
        if rows == 0:
            return
        rest = _write_rows(self._writer, self._schema, self._pending, rows, self._rows_max)
        rest_bytes = sum(batch.nbytes for batch in rest)
        self._flushed_bytes += self._pending_bytes - rest_bytes
        self._pending = rest
        self._pending_rows -= rows
        self._pending_bytes = rest_bytes


def encode_parquet_block(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, avro_schema_json: str, compression: str
) -> bytes:
    """Return records as a Parquet file in memory, the content of a log block.

    Args:
        batches: the records.
        schema: their columns.
        avro_schema_json: the record schema as Avro JSON.
        compression: Parquet codec by name.
    """
    target = pa.BufferOutputStream()
    physical = _physical(schema)
    writer = _writer(target, physical, compression)
    rows = list(batches)
    _write_rows(writer, physical, rows, sum(batch.num_rows for batch in rows), ROW_GROUP_ROWS)
    writer.add_key_value_metadata(_footer(avro_schema_json, None))
    writer.close()
    return bytes(target.getvalue())


class _KeySummary:
    """The record keys of a file, as its footer tells them.

    A file with fewer keys than the default filter is made for gets a filter of its own size: the
    default one takes 430 KB of every footer.
    """

    def __init__(self) -> None:
        self._waiting: list[pa.Array] = []
        self._waiting_rows = 0
        self._bloom: BloomFilter | None = None
        self._ends: list[str | None] = []

    def add(self, keys: pa.Array) -> None:
        if pa.types.is_dictionary(keys.type):
            keys = keys.cast(pa.string())
        self._ends.extend(java_min_max(keys))
        if self._bloom is not None:
            self._bloom.add(keys)
            return
        self._waiting.append(keys)
        self._waiting_rows += len(keys)
        if self._waiting_rows > BloomFilter.DEFAULT_CAPACITY:
            self._bloom = BloomFilter.empty()
            self._drain(self._bloom)

    def _drain(self, bloom: BloomFilter) -> None:
        for keys in self._waiting:
            bloom.add(keys)
        self._waiting = []

    def footer(self) -> dict[str, str]:
        bloom = self._bloom
        if bloom is None:
            bloom = BloomFilter.empty(max(1, self._waiting_rows))
            self._drain(bloom)
        entries = {
            "org.apache.hudi.bloomfilter": bloom.encode(),
            "hoodie_bloom_filter_type_code": bloom.type_code,
        }
        smallest, largest = java_min_max(pa.array(self._ends, pa.string()))
        if smallest is not None and largest is not None:
            entries |= {"hoodie_min_record_key": smallest, "hoodie_max_record_key": largest}
        return entries


def _footer(avro_schema_json: str, keys: _KeySummary | None) -> dict[str, str]:
    footer = {"parquet.avro.schema": with_meta_fields(avro_schema_json), "writer.model.name": "avro"}
    return footer | keys.footer() if keys is not None else footer


def _writer(target: pa.NativeFile, schema: pa.Schema, compression: str) -> pq.ParquetWriter:
    codec = compression.lower()
    try:
        return pq.ParquetWriter(
            target,
            schema,
            version="2.6",
            compression=_CODECS.get(codec, codec),
            compression_level=_LEVELS.get(codec),
            use_dictionary=_leaves_with_dictionary(schema),
            write_page_index=True,
            store_schema=False,
        )
    except (pa.ArrowException, OSError) as error:
        raise InvalidError(f"Cannot write Parquet with codec {compression!r}: {error}") from error


def _physical(schema: pa.Schema) -> pa.Schema:
    """Give the repeating meta columns a dictionary type: writing then copies indices, not texts."""
    return pa.schema([_physical_field(field) for field in schema])


def _physical_field(field: pa.Field) -> pa.Field:
    if field.name not in _REPEATING:
        return field
    return pa.field(field.name, pa.dictionary(pa.int32(), pa.string()), field.nullable)


def _leaves_with_dictionary(schema: pa.Schema) -> list[str]:
    """Name the leaf columns to dictionary-encode: all but those whose values never repeat."""
    return [leaf for field in schema if field.name not in _UNIQUE for leaf in _leaves(field.type, field.name)]


def _leaves(kind: pa.DataType, path: str) -> list[str]:
    if pa.types.is_struct(kind):
        return [leaf for child in kind for leaf in _leaves(child.type, f"{path}.{child.name}")]
    if pa.types.is_map(kind):
        return [
            *_leaves(kind.key_type, f"{path}.key_value.key"),
            *_leaves(kind.item_type, f"{path}.key_value.value"),
        ]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _leaves(kind.value_type, f"{path}.list.element")
    return [path]


def _write_rows(
    writer: pq.ParquetWriter,
    schema: pa.Schema,
    batches: Sequence[pa.RecordBatch],
    rows: int,
    rows_max: int,
) -> list[pa.RecordBatch]:
    """Write the first `rows` rows as row groups and return what is left."""
    columns = [_column(batches, field) for field in schema]
    table = pa.Table.from_arrays(columns, schema=schema)
    try:
        writer.write_table(table.slice(0, rows), rows_max)
    except pa.ArrowInvalid as error:
        raise InvalidError(f"The rows do not fit the file's schema: {error}") from error
    rest: list[pa.RecordBatch] = table.slice(rows).to_batches()
    return rest


def _column(batches: Sequence[pa.RecordBatch], field: pa.Field) -> pa.ChunkedArray:
    chunks = [_as_field(_named(batch, field.name), field) for batch in batches]
    column = pa.chunked_array(chunks, type=field.type)
    return column.unify_dictionaries() if pa.types.is_dictionary(field.type) else column


def _named(batch: pa.RecordBatch, name: str) -> pa.Array:
    try:
        return batch.column(name)
    except KeyError as error:
        raise InternalError(f"A batch lacks column {name} of the file that it goes to.") from error


def _as_field(values: pa.Array, field: pa.Field) -> pa.Array:
    if values.type == field.type:
        return values
    if pa.types.is_dictionary(field.type) and not pa.types.is_dictionary(values.type):
        values = pc.dictionary_encode(values)
    return values.cast(field.type)
