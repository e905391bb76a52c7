"""Summaries of the columns of a Parquet file: bounds and counts from its footer, or else from its rows.

    footer   bounds of a chunk       texts longer than 4 KiB have none, nor have many writers' floats
    rows     of columns without      only these columns are read

Arrow and others leave NaN out of the bounds of a chunk; parquet-mr leaves bounds out of a chunk with NaN.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import types as pt

from drawstring.formats.avro.encoder import decimals_of_bytes
from drawstring.formats.errors import about_file
from drawstring.formats.parquet.reader import ParquetQuery, open_in_table_units, read_parquet
from drawstring.model.commit import ColumnSummary, bounds_of, merged
from drawstring.schema.fields import leaf_type, top_level, values_of
from drawstring.storage.protocol import Storage

_COUNTS_NAN: Final = "parquet-mr"
"""Beginning of the name of the writer whose bounds of floats hold for NaN as well."""


def column_summaries(
    storage: Storage, path: str, columns: Sequence[str], types: pa.Schema
) -> tuple[dict[str, ColumnSummary], int]:
    """Return the summaries of those columns that a file has, and its number of rows.

    Args:
        storage: storage of the table.
        path: path of the file, relative to the table's root.
        columns: names of columns; those of fields of structs are joined by dots.
        types: the columns of the table.

    Raises:
        CorruptTableError: the file is missing or damaged.
    """
    with about_file(path), storage.open(path) as file:
        parquet = open_in_table_units(file, ParquetQuery(types=types))
        metadata, schema = parquet.metadata, parquet.schema_arrow
    known = ((name, leaf_type(schema, name)) for name in columns)
    found = footer_summaries(metadata, {name: kind for name, kind in known if kind is not None})
    unknown = [each.column for each in found.values() if each.lacks_bounds]
    if unknown:
        batches = read_parquet(storage, path, ParquetQuery(top_level(unknown, schema), types=types))
        for name, summary in summaries_of_rows(batches, unknown).items():
            stored = found[name]
            found[name] = replace(summary, size_bytes=stored.size_bytes, plain_bytes=stored.plain_bytes)
    return found, metadata.num_rows


class WrittenSummaries:
    """Makes the summaries of a file that is being written: those of floats of its rows, others by its footer.

    Args:
        columns: names of columns; those of fields of structs are joined by dots.
        schema: the columns of the file.
    """

    def __init__(self, columns: Sequence[str], schema: pa.Schema) -> None:
        known = ((name, leaf_type(schema, name)) for name in columns)
        self._types = {
            name: kind.value_type if pt.is_dictionary(kind) else kind
            for name, kind in known
            if kind is not None
        }
        self._floats = {
            name: ColumnSummary(name, pa.nulls(2), 0, 0)
            for name, kind in self._types.items()
            if pt.is_floating(kind)
        }

    def add(self, rows: pa.Table) -> None:
        """Take rows of the file."""
        for batch in rows.select(top_level(list(self._floats), rows.schema)).to_batches():
            for name, summary in self._floats.items():
                own = ColumnSummary.of(name, values_of(batch, name))
                self._floats[name] = merged([summary, own])

    def finished(self, metadata: pq.FileMetaData) -> tuple[ColumnSummary, ...] | None:
        """Return the summaries; None if the footer has no bounds of a column, which has long texts.

        Args:
            metadata: the footer.
        """
        found = footer_summaries(metadata, self._types)
        for name, each in self._floats.items():
            stored = found[name]
            found[name] = replace(each, size_bytes=stored.size_bytes, plain_bytes=stored.plain_bytes)
        return None if any(each.lacks_bounds for each in found.values()) else tuple(found.values())


class RowSummaries:
    """Makes the summaries of a log file that is being written, by its rows.

    Args:
        columns: names of columns; those of fields of structs are joined by dots.
        schema: the columns of the file.
    """

    def __init__(self, columns: Sequence[str], schema: pa.Schema) -> None:
        known = ((name, leaf_type(schema, name)) for name in columns)
        self._types = {name: kind for name, kind in known if kind is not None and _has_order(kind)}
        self._found = summaries_of_rows((), list(self._types))

    def add(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Take rows of the file."""
        for name, own in summaries_of_rows(batches, list(self._types)).items():
            self._found[name] = merged([self._found[name], own])

    def finished(self) -> tuple[ColumnSummary, ...]:
        """Return the summaries."""
        return tuple(
            replace(each, bounds=each.bounds.cast(self._types[name])) if each.values else each
            for name, each in self._found.items()
        )


def _has_order(kind: pa.DataType) -> bool:
    try:
        bounds_of(pa.nulls(0, kind))
    except pa.ArrowNotImplementedError:
        return False
    return True


def footer_summaries(metadata: pq.FileMetaData, types: Mapping[str, pa.DataType]) -> dict[str, ColumnSummary]:
    """Return the summaries of columns by the footer of a file; some may lack bounds.

    Args:
        metadata: the footer.
        types: the types of the columns.
    """
    is_mr = (metadata.created_by or "").startswith(_COUNTS_NAN)
    found: dict[str, ColumnSummary] = {
        name: ColumnSummary(name, pa.nulls(2, kind), 0, 0) for name, kind in types.items()
    }
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        for number in range(row_group.num_columns):
            chunk = row_group.column(number)
            kind = types.get(chunk.path_in_schema)
            if kind is None:
                continue
            summary = _of_chunk(chunk, kind, counts_nan=is_mr)
            found[summary.column] = merged([found[summary.column], summary])
    return found


def _of_chunk(chunk: pq.ColumnChunkMetaData, kind: pa.DataType, *, counts_nan: bool) -> ColumnSummary:
    statistics = chunk.statistics
    nulls, bounds = 0, None
    if statistics is not None and statistics.has_null_count:
        nulls = statistics.null_count
        if statistics.has_min_max and (counts_nan or not pt.is_floating(kind)):
            bounds = _stored_bounds(statistics, kind)
    sizes = (chunk.total_compressed_size, chunk.total_uncompressed_size)
    known = pa.nulls(2, kind) if bounds is None else bounds
    return ColumnSummary(chunk.path_in_schema, known, chunk.num_values, nulls, *sizes)


def _stored_bounds(statistics: pq.Statistics, kind: pa.DataType) -> pa.Array | None:
    """Return the bounds of a chunk as values; None if they cannot be."""
    try:
        bounds = _typed([statistics.min_raw, statistics.max_raw], kind)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        return None
    if pt.is_floating(kind):
        if pc.any(pc.is_nan(bounds)).as_py():
            return None
        least, greatest = bounds.to_pylist()
        return pa.array([-0.0 if least == 0 else least, 0.0 if greatest == 0 else greatest], kind)
    return None if pc.greater(bounds[0], bounds[1]).as_py() else bounds


def _typed(raw: list[Any], kind: pa.DataType) -> pa.Array:
    """Return stored values as values of a type."""
    if pt.is_decimal(kind):
        if isinstance(raw[0], int):
            raw = [each.to_bytes(16, "big", signed=True) for each in raw]
        return decimals_of_bytes(pa.array(raw, pa.binary()), kind)
    if pt.is_string(kind) or pt.is_large_string(kind):
        return pa.array([each.decode() for each in raw], kind)
    if pt.is_temporal(kind):
        return pa.array(raw, pa.int32() if kind.bit_width == 32 else pa.int64()).cast(kind)
    return pa.array(raw, kind)


def summaries_of_rows(batches: Iterable[pa.RecordBatch], columns: Sequence[str]) -> dict[str, ColumnSummary]:
    """Return the summaries of columns by their values; without rows those of no values.

    Args:
        batches: the rows.
        columns: names of columns that the rows have; those of fields of structs are joined by dots.
    """
    found = {name: ColumnSummary(name, pa.nulls(2), 0, 0) for name in columns}
    for batch in batches:
        for name in columns:
            found[name] = merged([found[name], ColumnSummary.of(name, values_of(batch, name))])
    return found
