"""The rows of the suite of layouts: a wide table and small upserts of it, in Parquet files for every peer."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

FACTS = "layouts.json"
"""As in scripts/wide.py, which tells what the job is."""


def make(folder: Path) -> dict[str, Any]:
    """Write the files and their facts; return the results that peers must have.

    Their size is that of `BENCH_LSM_ROWS`, `BENCH_LSM_COLUMNS`, `BENCH_LSM_UPSERTS` and `BENCH_LSM_LIFE`, the
    upserts of the table with services.
    """
    rows, columns, upserts, life = (
        int(os.environ.get(f"BENCH_LSM_{name}", default))
        for name, default in (("ROWS", 40_000), ("COLUMNS", 200), ("UPSERTS", 50), ("LIFE", 100))
    )
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"v{number:03}" for number in range(columns)]
    newest, values = np.zeros(rows, dtype="int64"), np.zeros(rows)
    for number in range(max(upserts, life) + 1):
        keys = _keys(number, rows)
        table = _rows(number, keys, names)
        pq.write_table(table, folder / f"layouts_{number}.parquet", use_dictionary=False)
        if number <= upserts:
            newest[keys], values[keys] = number, table[names[0]].to_numpy()
    facts = {"rows": rows, "columns": names, "upserts": upserts, "life": life}
    (folder / FACTS).write_text(json.dumps(facts))
    return {"merged_totals": [rows, int(newest.sum()), round(float(pc.sum(pa.array(values)).as_py()), 2)]}


def _keys(number: int, rows: int) -> npt.NDArray[np.int64]:
    """Return all keys for the load, one of a hundred for an upsert."""
    if number == 0:
        return np.arange(rows)
    return np.random.default_rng(number).choice(rows, max(1, rows // 100), replace=False)


def _rows(number: int, keys: npt.NDArray[np.int64], names: list[str]) -> pa.Table:
    rng = np.random.default_rng(number)
    columns = [pa.array(rng.random(len(keys))) for _ in names]
    ids, ts = pa.array([f"id-{key:09}" for key in keys.tolist()]), pa.array(np.full(len(keys), number))
    return pa.table([ids, ts, *columns], names=["id", "ts", *names])
