"""Reading tables with hudi-rs."""

from __future__ import annotations

import pyarrow as pa
from hudi import HudiTableBuilder


def read_with_hudi_rs(path: str) -> pa.Table:
    """Return the rows that hudi-rs reads."""
    table = HudiTableBuilder.from_base_uri(path).build()
    return pa.Table.from_batches([pa.record_batch(batch) for batch in table.read()])
