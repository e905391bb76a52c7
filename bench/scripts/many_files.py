"""The rows of a table of many small files: `BENCH_METADATA_GROUPS` files, ten in each partition."""

from __future__ import annotations

import os

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

GROUPS = int(os.environ.get("BENCH_METADATA_GROUPS", "20000"))
BUCKETS = 10
ROWS_OF_A_FILE = 4
WHERE = "id = '12' and place = 'p12'"
"""One of the rows."""


def few_columns() -> pa.Table:
    """Return a key, a partition and a time."""
    numbers = np.arange(ROWS_OF_A_FILE * GROUPS)
    ids = pa.array(numbers).cast(pa.string())
    partitions = pa.array(numbers % (GROUPS // BUCKETS)).cast(pa.string())
    places = pc.binary_join_element_wise("p", partitions, "")
    return pa.table({"id": ids, "place": places, "ts": np.ones(len(numbers), np.int64)})
