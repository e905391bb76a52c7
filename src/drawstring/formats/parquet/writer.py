"""Write Parquet base files and log blocks, and choose the encodings of their columns.

    NewFile ── KeyedFile ──┬── ParquetSink    row groups
       │                   └── EncodedSink    other formats (`data_file`)
       └── PatchedSink                        parts of another file (`parquet.row_group_copy`)

`NewFile` begins, ends and aborts the files of all formats.

Footer of a base file: the entries that other writers of the table need (wire format: Base files, Footer
keys).

    parquet.avro.schema             the record schema, meta columns included
    writer.model.name               avro
    hoodie.vector.columns           the VECTOR columns, such as `a:VECTOR(3)`; only if there are some
    org.apache.hudi.bloomfilter     which record keys may be in the file, base64
    hoodie_bloom_filter_type_code   DYNAMIC_V0
    hoodie_min_record_key           smallest key, in the order of Java strings
    hoodie_max_record_key           largest key

Arrow's own schema is not stored: readers take the types from Parquet's schema.

Dictionaries: a dictionary of values that hardly repeat costs time and makes the file larger. It outgrows its
page, and the codec cannot compress similar adjacent values. So a sample of the first rows of a file decides:

    meta columns that repeat       a dictionary always; their Arrow type is a dictionary, too
    record key, sequence number    no dictionary
    booleans, nested columns       Arrow's default
    any other                      a dictionary if the sample repeats as expected with `DISTINCT_SHARE`

Compression: a codec that saves next to nothing does not pay. Writing and reading random numbers with it takes
several times as long as without. The same sample decides:

    meta column of one value       no compression, since its pages have a few bytes
    with a dictionary              the codec; the next rows may have long and many values
    plain, or a boolean            the codec, if it saves `GAIN_MIN` of the sample; of few rows, only floats
                                   are tested, the type with the least savings

A column of less than `FEW_BYTES` in a log block is stored plain and not compressed, unless it is a meta
column that repeats, which gets a dictionary. The frames of a codec take most of the bytes that it would save,
and calling it for each column takes longer than everything else, for the reader as well. Small upserts write
many such blocks.

The small files of a write share a choice (`SharedEncodings`), and so do some log files or blocks of a table
that one process writes one after the other. For some hundred rows the choice takes longer than the encoding,
and rows of other partitions or of the next write are hardly of another kind.

The default codec is zstd at level 1, where Hudi's default is gzip: a million rows of 19 columns take a fifth
of gzip's time and fewer bytes. Hudi's main branch writes zstd as well. A table may have files of several
codecs.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from drawstring.base.errors import TABLE_DISK, InternalError, InvalidError, disk_errors
from drawstring.base.resources import ROW_GROUP_BYTES_MAX, ROW_GROUP_ROWS
from drawstring.formats.bloom import BloomFilter
from drawstring.formats.bloom_footer import KeySummary
from drawstring.formats.parquet.statistics import WrittenSummaries
from drawstring.model.commit import ColumnSummary
from drawstring.schema.avro import avro_to_arrow
from drawstring.schema.evolution import replace_hidden_nulls
from drawstring.schema.fields import (
    COMMIT_SEQNO,
    COMMIT_TIME,
    FILE_NAME,
    PARTITION_PATH,
    RECORD_KEY,
    with_meta_fields,
)
from drawstring.schema.logical_types import (
    VECTOR_COLUMNS,
    is_vector,
    vector_bytes,
    vector_columns,
    vector_width,
)
from drawstring.storage.protocol import Storage

SAMPLE_RUNS_MAX: Final = 16
SAMPLE_RUNS_MIN: Final = 4
SAMPLE_RUN_ROWS: Final = 128
"""Number and length of the runs of rows in a sample; runs, because adjacent rows often repeat values."""

ROWS_PER_SAMPLE_RUN: Final = 1_024
"""Rows of a file for each run of its sample: of a small one a full sample would take a tenth of a load."""

DISTINCT_SHARE: Final = 1 / 3
"""Ratio of distinct values to rows up to which a column gets a dictionary."""

GAIN_MIN: Final = 1 / 10
"""Fraction of a plain column's bytes that a codec has to save."""

FEW_BYTES: Final = 512
"""Size in memory below which a column of a log block is stored as it is."""

SHARED_ROWS_MAX: Final = 32_768
"""Rows of a file up to which it takes the encodings of another one of about its size."""

REPEATING: Final = frozenset((COMMIT_TIME, PARTITION_PATH, FILE_NAME))
_UNIQUE: Final = frozenset((COMMIT_SEQNO, RECORD_KEY))


_SCHEMAS_KEPT: Final = 64
"""Each file and log block of a write has the same schema."""


@lru_cache(maxsize=_SCHEMAS_KEPT)
def physical_schema(schema: pa.Schema) -> pa.Schema:
    """Return the columns as Arrow's writer gets them: dictionary types, and vectors as bytes."""
    " vectors as bytes."
    return pa.schema([_physical_field(field) for field in with_dictionary_types(schema)])


def _physical_field(field: pa.Field) -> pa.Field:
    return field.with_type(pa.binary(vector_width(field.type))) if is_vector(field.type) else field


@lru_cache(maxsize=_SCHEMAS_KEPT)
def with_dictionary_types(schema: pa.Schema) -> pa.Schema:
    """Return a schema in which repeating meta columns have a dictionary type, so that writes copy indices."""
    return pa.schema([_repeating_field(field) for field in schema])


def _repeating_field(field: pa.Field) -> pa.Field:
    if field.name not in REPEATING:
        return field
    return pa.field(field.name, pa.dictionary(pa.int32(), pa.string()), field.nullable)


@dataclass(frozen=True, slots=True)
class Encodings:
    """The encodings of the leaf columns of a file.

    Attributes:
        dictionaries: names of the columns with dictionary encoding.
        codecs: the codec of each column; those that are not named are not compressed.
    """

    dictionaries: list[str]
    codecs: dict[str, str]


def encodings_of(rows: pa.Table, codec: str) -> Encodings:
    """Choose the encodings of a file.

    Args:
        rows: the first rows of the file.
        codec: Arrow's name of the codec for columns that it compresses well.
    """
    chosen = Encodings([], {})
    sample = _sample(rows)
    for field, column in zip(rows.schema, sample.columns, strict=True):
        has_dictionary, is_compressed = _encoding_by_sample(field, column, rows.num_rows)
        leaves = _leaves(field.type, field.name)
        if has_dictionary:
            chosen.dictionaries.extend(leaves)
        chosen.codecs.update(dict.fromkeys(leaves, codec if is_compressed else "none"))
    return chosen


class SharedEncodings:
    """Chooses the encodings of files with the same columns. Several threads may use it.

    Args:
        files_max: number of files after which a choice is made anew; None for never.
    """

    def __init__(self, files_max: int | None = None) -> None:
        self._files_max = files_max
        self._chosen: dict[tuple[int, str], tuple[Encodings, int]] = {}
        self._lock = threading.Lock()

    def of(self, rows: pa.Table, codec: str) -> Encodings:
        """Return the encodings of a file; see `encodings_of`."""
        return self._shared(rows, codec, encodings_of)

    def of_block(self, rows: pa.Table, codec: str) -> Encodings:
        """Return the encodings of a log block; see `block_encodings`."""
        return self._shared(rows, codec, block_encodings)

    def _shared(self, rows: pa.Table, codec: str, choose: Callable[[pa.Table, str], Encodings]) -> Encodings:
        count = rows.num_rows
        if not 0 < count <= SHARED_ROWS_MAX:
            return choose(rows, codec)
        size = count.bit_length(), codec
        with self._lock:
            chosen, files = self._chosen.get(size, (None, 0))
            if chosen is None or files == self._files_max:
                chosen, files = choose(rows, codec), 0
            self._chosen[size] = chosen, files + 1
        return chosen


def block_encodings(rows: pa.Table, codec: str) -> Encodings:
    """Choose the encodings of a log block; see `encodings_of`.

    Args:
        rows: all its rows.
        codec: Arrow's name of the codec for columns that it compresses well.
    """
    if not _is_known(codec):
        return encodings_of(rows, codec)
    sizes = zip(rows.schema, (column.nbytes for column in rows.columns), strict=True)
    small = [field for field, size_bytes in sizes if size_bytes < FEW_BYTES]
    repeating = [field.name for field in small if pa.types.is_dictionary(field.type)]
    asked = {*rows.column_names}.difference(field.name for field in small)
    chosen = encodings_of(rows.select([name for name in rows.column_names if name in asked]), codec)
    return Encodings([*repeating, *chosen.dictionaries], chosen.codecs)


def _is_known(codec: str) -> bool:
    """Return whether there is such a codec; the writer tells what is wrong with others."""
    try:
        return codec == "none" or pa.Codec.is_available(codec)
    except ValueError:
        return False


@lru_cache(maxsize=_SCHEMAS_KEPT)
def statistics_leaves(schema: pa.Schema) -> Sequence[str]:
    """Return the leaf columns that get min/max statistics: all except floats.

    Arrow ignores NaN in statistics, while in Spark NaN is greater than any number: for `fare > 5` it would
    skip row groups that have NaN. Spark's own writer stores no statistics for a chunk with NaN, but Arrow has
    to know this before it writes the first row.
    """
    return [
        leaf
        for field in schema
        for leaf, kind in _typed_leaves(field.type, field.name)
        if not _is_float(kind)
    ]


def _is_float(kind: pa.DataType) -> bool:
    return bool(pa.types.is_floating(kind))


def _encoding_by_sample(field: pa.Field, sample: pa.ChunkedArray, rows: int) -> tuple[bool, bool]:
    """Return whether a column gets a dictionary, and whether it is compressed; `rows` is its total length."""
    kind = field.type
    if pa.types.is_nested(kind) or pa.types.is_null(kind) or not rows:
        return True, True
    is_small = len(sample) == rows
    values = sample.drop_null()
    if pa.types.is_boolean(kind) or field.name in _UNIQUE:
        return field.name not in _UNIQUE, is_small or _compresses_well(values)
    distinct = len(pc.unique(values))
    if pa.types.is_dictionary(kind):
        return True, distinct > 1
    repeating = _distinct_expected(len(values), rows * len(values) / len(sample) * DISTINCT_SHARE)
    if distinct <= max(1.0, repeating):
        return True, True
    return False, (is_small and not _is_float(kind)) or _compresses_well(values)


def _compresses_well(values: pa.ChunkedArray) -> bool:
    """Return whether a codec compresses plain non-null values well; zstd is representative of all codecs."""
    if not len(values):
        return True
    buffers = pa.concat_arrays(values.chunks).buffers()[1:]
    plain = b"".join(bytes(buffer) for buffer in buffers if buffer is not None)
    return len(pa.compress(plain, codec="zstd", asbytes=True)) < len(plain) * (1 - GAIN_MIN)


def _sample(rows: pa.Table) -> pa.Table:
    """Return evenly spread runs of the rows, or all rows if there are few."""
    count = rows.num_rows
    stretches = min(SAMPLE_RUNS_MAX, max(SAMPLE_RUNS_MIN, count // ROWS_PER_SAMPLE_RUN))
    if count <= stretches * SAMPLE_RUN_ROWS:
        return rows
    starts = (number * count // stretches for number in range(stretches))
    return pa.concat_tables([rows.slice(start, SAMPLE_RUN_ROWS) for start in starts]).combine_chunks()


def _distinct_expected(draws: int, values: float) -> float:
    """Return the expected number of distinct values in random draws from equally likely values."""
    return values * -math.expm1(-draws / values) if values else 0.0


def _leaves(kind: pa.DataType, path: str) -> list[str]:
    return [leaf for leaf, _ in _typed_leaves(kind, path)]


def _typed_leaves(kind: pa.DataType, path: str) -> list[tuple[str, pa.DataType]]:
    if pa.types.is_struct(kind):
        return [leaf for child in kind for leaf in _typed_leaves(child.type, f"{path}.{child.name}")]
    if pa.types.is_map(kind):
        return [
            *_typed_leaves(kind.key_type, f"{path}.key_value.key"),
            *_typed_leaves(kind.item_type, f"{path}.key_value.value"),
        ]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _typed_leaves(kind.value_type, f"{path}.list.element")
    return [(path, kind)]


class NewFile:
    """A file that is being written, and deleted if that fails.

    Args:
        storage: storage of the table.
        path: path of the file, relative to the table's root.
        entries: entries of the footer.
    """

    def __init__(self, storage: Storage, path: str, entries: Mapping[str, str]) -> None:
        self._storage = storage
        self._path = path
        self._first_entries = entries
        self._added_entries: dict[str, str] = {}
        self._file = storage.create(path)

    def close(self) -> int:
        """Write the remaining rows and the footer.

        Returns:
            The file's size in bytes.
        """
        try:
            with disk_errors(TABLE_DISK, self._path):
                self._finish(self._entries())
                size_bytes = int(self._file.tell())
                self._file.close()
                return size_bytes
        except BaseException:
            # A deleted file takes disk space as long as it is open.
            self.abort()
            raise

    def add_entries(self, entries: Mapping[str, str]) -> None:
        """Add entries to the footer; they take the place of those with the same names."""
        self._added_entries |= entries

    def abort(self) -> None:
        """Discard the file and delete its written part."""
        self._give_up()
        self._discard()

    def _entries(self) -> dict[str, str]:
        """Return all entries of the footer."""
        return {**self._first_entries, **self._added_entries}

    def _finish(self, entries: Mapping[str, str]) -> None:
        """Write the remaining rows, and a footer with some entries."""
        raise NotImplementedError

    def _give_up(self) -> None:
        """Let go of what writes to the file."""

    def _discard(self) -> None:
        with suppress(OSError, ValueError, pa.ArrowException):
            self._file.close()
        self._storage.delete([self._path])


class KeyedFile(NewFile):
    """A file of rows, whose footer has a summary of their record keys.

    Attributes:
        keys: what the footer says of the record keys; None if it says nothing.

    Args:
        storage, path, entries: as of `NewFile`.
        schema: the columns of the file, including meta columns.
        bloom: rate of false positives of the bloom filter that the footer gets beside the smallest and
            largest record key, 0 for neither; or the filter of the file that this one replaces.
    """

    def __init__(
        self,
        storage: Storage,
        path: str,
        entries: Mapping[str, str],
        schema: pa.Schema,
        bloom: float | BloomFilter,
    ) -> None:
        self.keys = _key_summary(bloom) if bloom and RECORD_KEY in schema.names else None
        super().__init__(storage, path, entries)

    def _entries(self) -> dict[str, str]:
        keys = {} if self.keys is None else self.keys.footer()
        return {**self._first_entries, **keys, **self._added_entries}

    def _note_keys(self, batch: pa.RecordBatch, *, is_known: bool) -> None:
        """Add the keys of rows to the summary; `is_known` tells whether the replaced file had all of them."""
        if self.keys is not None:
            self.keys.add(batch.column(RECORD_KEY), is_known=is_known)


def _key_summary(bloom: float | BloomFilter) -> KeySummary:
    return KeySummary(bloom) if isinstance(bloom, BloomFilter) else KeySummary(rate=bloom)


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
        self._schema = physical_schema(schema)
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
        if self._writer is None:
            return
        try:
            with suppress(OSError, RuntimeError, ValueError, pa.ArrowException):
                self._writer.close()
        finally:
            self._writer.is_open = False  # otherwise its finalizer closes it again, and fails

    def _finish(self, entries: Mapping[str, str]) -> None:
        self._flush(everything=True)
        if self._writer is None:
            self._writer = self._open(self._schema.empty_table())
        self._writer.add_key_value_metadata(entries)
        self._writer.close()

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
    rows = table_of(list(batches), physical_schema(schema))
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
        schema: its columns, as `physical_schema` has them.
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
