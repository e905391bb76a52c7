"""What the peers without Spark share: inputs as streams, results from Arrow tables."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

TOTALS = ["fare", "ts", "driver_id"]


def stream(file: str) -> pa.RecordBatchReader:
    """Return a Parquet file's rows as a stream, a batch at a time.

    A scan of a dataset decodes up to a gigabyte of rows ahead of its reader, and a file with buffers keeps
    the bytes of all row groups that it read.
    """
    rows = pq.ParquetFile(file, pre_buffer=False)
    return pa.RecordBatchReader.from_batches(rows.schema_arrow, rows.iter_batches())


def totals(rows: pa.Table) -> list[float]:
    """Return the count, the sum of the fares, the newest ts and the number of drivers."""
    drivers = pc.count_distinct(rows["driver_id"]).as_py()
    return [rows.num_rows, round(pc.sum(rows["fare"]).as_py(), 2), pc.max(rows["ts"]).as_py(), drivers]


def total_distance(rows: pa.Table) -> float:
    """Return the sum of the distances."""
    return round(pc.sum(rows["distance"]).as_py() or 0.0, 1)
