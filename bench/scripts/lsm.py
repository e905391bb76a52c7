"""Layouts of a MERGE_ON_READ table. usage: lsm.py DATA TABLE LAYOUT

One file group of a wide table gets small upserts spread over all keys and no compaction in between. LAYOUT is
`avro` (version 9, inline log files with Avro blocks), `native` (version 10) or `lsm` (version 10, sorted by
key). A compaction is a process of its own, so that its peak is that of the compaction alone.

After that the `life` of another such table begins: upserts with the services that follow them by default, and
after each of them what was written so far, what is there, and what reads take.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from hudi_options import UNCOMPACTED
from ride import step, tell

import drawstring

ROWS = int(os.environ.get("BENCH_LSM_ROWS", "200000"))
COLUMNS = int(os.environ.get("BENCH_LSM_COLUMNS", "40"))
UPSERTS = int(os.environ.get("BENCH_LSM_UPSERTS", "50"))
CHANGED = max(1, ROWS // 100)
LOOKUPS = 5
LIFE = int(os.environ.get("BENCH_LSM_LIFE", "100"))
"""Upserts of the table with services."""
VALUES = [f"v{number:03}" for number in range(COLUMNS)]
SCHEMA = pa.schema([("id", "string"), ("ts", "int64"), *((name, "float64") for name in VALUES)])
LAYOUTS: dict[str, tuple[int, dict[str, str], dict[str, str]]] = {
    "avro": (9, {}, {"hoodie.logfile.data.block.format": "avro"}),
    "native": (10, {}, {}),
    "lsm": (10, {"hoodie.table.storage.layout": "lsm_tree"}, {}),
}
BUCKET = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
UNTENDED = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false", **UNCOMPACTED}


def rows(ts: int, numbers: np.ndarray[Any, Any]) -> pa.Table:
    """Return rows with some keys: all columns of numbers, different ones at each time."""
    rng = np.random.default_rng(ts)
    keys = pa.array([f"id-{number:09}" for number in numbers.tolist()])
    values = [pa.array(rng.random(len(numbers))) for _ in VALUES]
    return pa.table([keys, pa.array(np.full(len(numbers), ts)), *values], schema=SCHEMA)


class Layout:
    """One table."""

    def __init__(self, path: str, layout: str) -> None:
        version, properties, self.more = LAYOUTS[layout]
        shutil.rmtree(path, ignore_errors=True)
        self.path = path
        self.table = drawstring.create(
            path,
            SCHEMA,
            name="wide",
            table_type="MERGE_ON_READ",
            record_key=["id"],
            ordering=["ts"],
            version=version,
            properties={**BUCKET, **properties},
        )

    def load(self) -> int:
        """Write the first rows."""
        return self.table.bulk_insert(rows(0, np.arange(ROWS)), options=UNTENDED).records_written

    def upsert(self, number: int, services: dict[str, str] = UNTENDED) -> int:
        """Change one row of a hundred."""
        keys = np.random.default_rng(number).choice(ROWS, CHANGED, replace=False)
        return self.table.upsert(rows(number, keys), options={**services, **self.more}).records_written

    def find(self, where: str) -> int:
        """Read all columns of the rows of a condition."""
        return self.table.scan(where=where).to_arrow().num_rows

    def merged(self, columns: list[str] | None = None) -> int:
        """Read the merged rows, a batch at a time."""
        return sum(batch.num_rows for batch in self.table.scan(columns=columns).to_batches())

    def compact(self) -> None:
        """Compact in another process."""
        words = [sys.executable, *sys.argv[:4], "compact"]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)

    def sizes(self) -> dict[str, int]:
        """Return the sizes of the data files by name."""
        return {file.name: file.stat().st_size for file in Path(self.path).iterdir() if file.is_file()}

    def size(self) -> dict[str, float]:
        """Return the size and number of the data files."""
        sizes = self.sizes().values()
        return {"mb": sum(sizes) / 1e6, "files": len(sizes)}


def life(path: str, layout: str) -> dict[str, list[float]]:
    """Change a table again and again; return what there was after each upsert.

    Returns:
        `written_mb`, bytes of all files so far; `space_mb`, bytes of those that are there; `log_files` of the
        file slice; processor seconds of the upsert with its services (`upsert_s`), of a read of three columns
        (`read_s`), and of a look-up of a key (`lookup_s`).
    """
    table = Layout(path, layout)
    table.load()
    seen, written = set(table.sizes()), 0
    found: dict[str, list[float]] = {
        name: [] for name in ("written_mb", "space_mb", "log_files", "upsert_s", "read_s", "lookup_s")
    }
    for number in range(1, LIFE + 1):
        found["upsert_s"].append(_processor_seconds(lambda at=number: table.upsert(at, {})))
        found["read_s"].append(_processor_seconds(lambda: table.merged(["id", VALUES[0], VALUES[-1]])))
        found["lookup_s"].append(_processor_seconds(lambda: table.find(f"id = 'id-{ROWS // 7:09}'")))
        sizes = table.sizes()
        written += sum(size for name, size in sizes.items() if name not in seen)
        seen |= sizes.keys()
        (file_slice,) = table.table.file_slices()
        found["log_files"].append(len(file_slice.logs))
        found["written_mb"].append(written / 1e6)
        found["space_mb"].append(sum(sizes.values()) / 1e6)
    return found


def _processor_seconds(action: Callable[[], object]) -> float:
    start = time.process_time()
    action()
    return round(time.process_time() - start, 4)


def main() -> None:
    """Write a table, read it, compact it, and take it away."""
    path, layout = sys.argv[2:4]
    if len(sys.argv) > 4:
        done = drawstring.open(path).compact(options=UNTENDED)
        assert done.records_written == ROWS, done
        return
    table = Layout(path, layout)
    step("bulk_insert", table.load)
    for number in range(1, UPSERTS + 1):
        step(f"upsert_{number}", table.upsert, number)
    tell({"step": "size", "s": 0.0, "result": table.size()})
    for number in range(1, LOOKUPS + 1):
        found = step(f"lookup_{number}", table.find, f"id = 'id-{number * ROWS // 7:09}'")
        assert found == 1
    first = ROWS // 3
    assert step("between_keys", table.find, f"id >= 'id-{first:09}' AND id < 'id-{first + 100:09}'") == 100
    assert step("merge_all", table.merged) == ROWS
    assert step("merge_3_columns", table.merged, ["id", VALUES[0], VALUES[-1]]) == ROWS
    step("compact_group", table.compact)
    step("life", life, path, layout)
    shutil.rmtree(path)


if __name__ == "__main__":
    drawstring.use_allocator()
    main()
