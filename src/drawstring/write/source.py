"""What a user may hand over as rows, as a stream of Arrow record batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from drawstring.base.bounds import BATCH_ROWS
from drawstring.base.errors import InvalidError


def batches_of(data: Any) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Open user data as a stream.

    Args:
        data: an object with the Arrow C stream or array interface (pyarrow, polars, DuckDB, ...),
            or a pandas DataFrame.

    Returns:
        The schema and the batches, each of at most `BATCH_ROWS` rows; read once.

    Raises:
        InvalidError: the object is none of these.
    """
    reader = _reader(data)
    return reader.schema, _bounded(reader)


def _reader(data: Any) -> pa.RecordBatchReader:
    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(data)
    if hasattr(data, "__arrow_c_array__"):
        batch = pa.record_batch(data)
        return pa.RecordBatchReader.from_batches(batch.schema, [batch])
    if type(data).__module__.partition(".")[0] == "pandas":
        return pa.Table.from_pandas(data, preserve_index=False).to_reader()
    raise InvalidError(
        f"cannot read rows from {type(data).__name__}: hand over a pyarrow Table or RecordBatchReader,"
        " a pandas or polars DataFrame, or anything with the Arrow C stream interface"
    )


def _bounded(reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    for batch in reader:
        for start in range(0, batch.num_rows, BATCH_ROWS):
            yield batch.slice(start, BATCH_ROWS)
