"""Columns of Parquet files that take little room in the file and much in memory.

A dictionary has a text once, and run lengths have a row in no bytes: a file of 4 kB can hold 60,000 rows of
40 kB each. Text columns that are stored in few bytes a row are read as dictionaries, and made texts again in
pieces whose size is known before.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import types as pt

UNFOLDED_BYTES_MAX: Final = 32 << 20
"""Bytes of the texts of a batch, of several rows, that were read as dictionaries."""

_ROWS_ALWAYS: Final = 1 << 20
_ROWS_A_BYTE: Final = 256
"""Rows that a byte of a file may stand for, in a file of more than `_ROWS_ALWAYS`: keys need more."""

_FOLDED_BYTES_A_ROW: Final = 4
_LITTLE_BYTES: Final = 1 << 20
"""Stored bytes of a column up to which it counts as folded, however few its rows."""

_FEW_ROWS: Final = 1_000
_DICTIONARIES: Final = frozenset({"PLAIN_DICTIONARY", "RLE_DICTIONARY"})


def check_row_count(rows: int, size_bytes: int) -> None:
    """Refuse a file that claims more rows than its bytes can tell apart.

    Args:
        rows: of the file, as its footer says.
        size_bytes: of the file.

    Raises:
        pa.ArrowInvalid: there are too many.
    """
    if rows > _ROWS_ALWAYS + _ROWS_A_BYTE * size_bytes:
        raise pa.ArrowInvalid(f"it claims {rows} rows in {size_bytes} bytes")


def folded_columns(
    parquet: pq.ParquetFile, groups: Sequence[int], names: Collection[str], others: Collection[str]
) -> list[str]:
    """Return the text columns whose values may take far more memory than they take in the file.

    Args:
        parquet: the file.
        groups: numbers of the row groups that are read.
        names: columns that are read.
        others: those that are left as dictionaries anyway.
    """
    metadata = parquet.metadata
    if metadata.num_rows <= _FEW_ROWS:
        return []
    texts = {
        field.name
        for field in parquet.schema_arrow
        if field.name in names and field.name not in others and _is_text(field.type)
    }
    places = [(at, path) for at in range(metadata.num_columns) if (path := _path(metadata, at)) in texts]
    return [path for at, path in places if any(_is_folded(metadata.row_group(group), at) for group in groups)]


def unfolded(batch: pa.RecordBatch, folded: Collection[str]) -> Iterator[pa.RecordBatch]:
    """Yield a batch with columns of texts in place of dictionaries, in pieces of bounded size.

    Args:
        batch: rows as they were read.
        folded: columns to make texts of.
    """
    places = [at for at, name in enumerate(batch.schema.names) if name in folded]
    if not places:
        yield batch
        return
    for start, stop in _pieces([batch.column(at) for at in places], batch.num_rows):
        columns = batch.slice(start, stop - start).columns
        for at in places:
            columns[at] = columns[at].dictionary_decode()
        yield pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _pieces(columns: Sequence[pa.DictionaryArray], rows: int) -> Iterator[tuple[int, int]]:
    """Yield where pieces begin and end that stay below the bound, or have one row."""
    lengths = [pc.binary_length(each.dictionary).fill_null(0).to_numpy().astype(np.int64) for each in columns]
    if sum(int(each.max(initial=0)) for each in lengths) * rows <= UNFOLDED_BYTES_MAX:
        yield 0, rows
        return
    ends = np.cumsum(sum(map(_bytes_of_rows, columns, lengths)))
    start = 0
    while start < rows:
        before = int(ends[start - 1]) if start else 0
        stop = int(np.searchsorted(ends, before + UNFOLDED_BYTES_MAX, side="right"))
        yield start, max(stop, start + 1)
        start = max(stop, start + 1)


def _bytes_of_rows(column: pa.DictionaryArray, lengths: Any) -> Any:
    indices = column.indices.fill_null(0).to_numpy(zero_copy_only=False)
    return lengths[indices] if len(lengths) else np.zeros(len(indices), np.int64)


def _is_folded(group: pq.RowGroupMetaData, at: int) -> bool:
    column = group.column(at)
    stored_bytes = column.total_compressed_size
    is_little = stored_bytes <= max(_LITTLE_BYTES, _FOLDED_BYTES_A_ROW * group.num_rows)
    return is_little and not _DICTIONARIES.isdisjoint(column.encodings)


def _path(metadata: pq.FileMetaData, at: int) -> str:
    return str(metadata.schema.column(at).path)


def _is_text(kind: pa.DataType) -> bool:
    return any(matches(kind) for matches in (pt.is_string, pt.is_binary))
