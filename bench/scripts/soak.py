"""A table that is written again and again while it looks after itself. usage: soak.py DATA TABLE INDEX

Each batch upserts 1,000 rides: 800 that change, 100 that are new, and the 100 oldest, marked as deleted. So
there are as many rides after a batch as before it, and what grows is the table's doing. Nothing is asked of
its services but what Hudi's Spark writer does for a merge-on-read table: compaction inline, every five delta
commits; cleaning and archiving are on unless switched off.

The result is a list for each curve, one entry a batch: files below the table's folder, instants on the
active timeline, seconds of the batch; and seconds of a snapshot read, one entry for every twentieth batch. Of
seconds there are those of the clock and those of the processor, for the machine may have other work.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from embedded import create_rides
from hudi_options import in_one_bucket
from ride import step

import drawstring

BATCHES = int(os.environ.get("BENCH_SOAK_BATCHES", "2000"))
RIDES = 20_000
UPDATES, INSERTS = 800, 100
CITIES = ("antwerp", "bogota", "cairo", "delhi", "essen", "fortaleza", "graz", "houston")
READ_EVERY = 20


def rides(ids: np.ndarray[Any, Any], ts: int, *, gone: int = 0) -> pa.Table:
    """Return a row for each id; the first `gone` of them are marked as deleted."""
    rng = np.random.default_rng(ts)
    count = len(ids)
    return pa.table(
        {
            "ride_id": np.char.add("ride-", np.char.zfill(ids.astype(str), 12)),
            "city": np.array(CITIES)[ids % len(CITIES)],
            "ts": np.full(count, ts, "int64"),
            "driver_id": ids * 7919 % 50_000,
            "fare": rng.gamma(2.0, 9.0, count).round(2),
            "begin_lat": rng.uniform(-90, 90, count),
            "begin_lon": rng.uniform(-180, 180, count),
            "note": np.char.add("note ", rng.integers(0, 4096, count).astype(str)),
            "_hoodie_is_deleted": np.arange(count) < gone,
        }
    )


def batch(number: int) -> pa.Table:
    """Return the rows of a batch: the oldest rides, some that stay, and new ones."""
    oldest, newest = (number - 1) * INSERTS, RIDES + (number - 1) * INSERTS
    gone = np.arange(oldest, oldest + INSERTS)
    changed = np.random.default_rng(number).choice(RIDES - INSERTS, UPDATES, replace=False) + oldest + INSERTS
    return rides(np.concatenate([gone, changed, np.arange(newest, newest + INSERTS)]), number, gone=INSERTS)


class Soak:
    """The table and what was seen of it."""

    def __init__(self, path: str, properties: dict[str, str]) -> None:
        self._path = path
        first = rides(np.arange(RIDES), 0)
        table = create_rides(path, first.schema, "MERGE_ON_READ", properties)
        table.bulk_insert(first)
        self.seen: dict[str, list[float]] = {
            "files": [], "instants": [], "batch_s": [], "batch_cpu_s": [], "read_s": [], "read_cpu_s": []
        }  # fmt: skip

    def write(self, number: int) -> None:
        """Upsert a batch, and look at the table."""
        rows = batch(number)
        self._timed("batch", lambda: drawstring.open(self._path).upsert(rows))
        files = [file for file in Path(self._path).rglob("*") if file.is_file()]
        timeline = [file for file in files if file.parent.name == "timeline"]
        self.seen["files"].append(len(files))
        self.seen["instants"].append(len({file.name.split(".")[0].split("_")[0] for file in timeline}))
        if number % READ_EVERY == 0:
            self._read(number)

    def _read(self, number: int) -> None:
        rows = self._timed("read", lambda: drawstring.open(self._path).scan().to_arrow())
        assert rows.num_rows == RIDES, f"{rows.num_rows} rides instead of {RIDES} after batch {number}"

    def _timed(self, name: str, action: Callable[[], Any]) -> Any:
        began, used = time.perf_counter(), time.process_time()
        result = action()
        self.seen[f"{name}_s"].append(round(time.perf_counter() - began, 4))
        self.seen[f"{name}_cpu_s"].append(round(time.process_time() - used, 4))
        return result


def main(path: str, index: str) -> None:
    """Write all batches to a new table, and tell."""
    shutil.rmtree(path, ignore_errors=True)
    soak = Soak(path, in_one_bucket(index))

    def write_all() -> dict[str, list[float]]:
        for number in range(1, BATCHES + 1):
            soak.write(number)
        return soak.seen

    step("soak", write_all)


if __name__ == "__main__":
    drawstring.use_allocator()
    main(sys.argv[2], sys.argv[3])
