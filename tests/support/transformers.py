"""Transformers of ingestions, named by tests."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc


def shouted(rows: pa.RecordBatchReader) -> pa.Table:
    table = rows.read_all()
    return table.set_column(1, "city", pc.utf8_upper(table["city"]))


def broken(rows: pa.RecordBatchReader) -> pa.Table:
    raise ValueError("no")
