"""The steps of the suite `lakeloader`; standard library only, as in `ride`.

Each workload has a large and a small table, written by turns, so that what a process learns in its first
rounds speaks for neither. Then both are read. A table has `path`, `load(file)`, `upsert(file)`,
`set_columns(file)`, which sets the columns that a file has, and `sums(columns)`, which returns the number of
rows and the sum of each column.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ride import note, step
from shapes import Shape
from written import Written

READS = int(os.environ.get("BENCH_READS", "3"))
SIZES = ("small", "large")
SHAPES = {
    "fact": Shape("fact", ("id",), ("day",), "ts", buckets=1),
    "dim": Shape("dim", ("id",), (), "ts", sets_columns=True),
}


def run(table_of: Callable[[Shape], Any], data: Path, folder: str) -> None:
    """Take a peer through both workloads.

    Args:
        table_of: makes a table that is to be loaded.
        data: where the files are.
        folder: where the tables are; it is removed.
    """
    facts: dict[str, Any] = json.loads((data / "lakeloader.json").read_text())
    for name, shape in SHAPES.items():
        tables = {size: table_of(shape.named(f"{name}_{size}")) for size in SIZES}
        for size, table in tables.items():
            step(f"{name}_{size}_load", table.load, str(data / f"{name}_{size}_0.parquet"))
        for number in range(1, facts["rounds"] + 1):
            for size, table in tables.items():
                file = str(data / f"{name}_{size}_{number}.parquet")
                written = Written(table.path)
                change = table.set_columns if shape.sets_columns else table.upsert
                step(f"{name}_{size}_upsert_{number}", change, file)
                note(f"{name}_{size}_written_{number}", written.mb())
        for size, table in tables.items():
            for again in range(READS):
                step(f"{name}_{size}_read_{again}", table.sums, facts["sums"][name])
    shutil.rmtree(folder)
