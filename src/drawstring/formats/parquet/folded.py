"""Text columns of Parquet files that expand to a multiple of their stored size in memory.

A dictionary stores a text once, and with run lengths further rows take no bytes: a file of 4 kB can have
60,000 rows of 40 kB each. Text columns with few stored bytes per row are therefore read as dictionaries, and
decoded in pieces of bounded size.
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
"""Largest size of the decoded texts of a batch, unless it has a single row."""

_ROWS_ALWAYS: Final = 1 << 20
_ROWS_A_BYTE: Final = 256
"""Largest number of rows per stored byte of a file with more than `_ROWS_ALWAYS`; distinct keys take more."""

_FOLDED_BYTES_A_ROW: Final = 4
_LITTLE_BYTES: Final = 1 << 20
"""Stored bytes up to which a column counts as folded, regardless of its number of rows."""

_FEW_ROWS: Final = 1_000
_DICTIONARIES: Final = frozenset({"PLAIN_DICTIONARY", "RLE_DICTIONARY"})


def check_row_count(rows: int, size_bytes: int) -> None:
    """Refuse a file that claims more rows than its size allows.

    Args:
        rows: number of rows according to the footer.
        size_bytes: size of the file.

    Raises:
        pa.ArrowInvalid: there are too many rows.
    """
    if rows > _ROWS_ALWAYS + _ROWS_A_BYTE * size_bytes:
        raise pa.ArrowInvalid(f"it claims {rows} rows in {size_bytes} bytes")


def folded_columns(
    parquet: pq.ParquetFile, groups: Sequence[int], names: Collection[str], others: Collection[str]
) -> list[str]:
    """Return the text columns that may take far more memory than their stored size.

    Args:
        parquet: the file.
        groups: numbers of the row groups to read.
        names: columns to read.
        others: columns that remain dictionaries anyway.
    """
    metadata = parquet.metadata
    if metadata.num_rows <= _FEW_ROWS:
        return []
    texts = {
        field.name
        for field in parquet.schema_arrow
        if field.name in names and field.name not in others and _is_text(field.type)
    }
    if not texts:
        return []
    places = [(at, path) for at in range(metadata.num_columns) if (path := _path(metadata, at)) in texts]
    return [path for at, path in places if any(_is_folded(metadata.row_group(group), at) for group in groups)]


def unfolded(batch: pa.RecordBatch, folded: Collection[str]) -> Iterator[pa.RecordBatch]:
    """Yield a batch with its folded columns decoded, in pieces of bounded size.

    Args:
        batch: rows with dictionary-encoded columns.
        folded: columns to decode.
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
    """Yield start and end of pieces that do not exceed the bound or have a single row."""
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
