"""Layouts of a MERGE_ON_READ table. usage: lsm.py DATA TABLE LAYOUT

One file group of a wide table gets small upserts spread over all keys and no compaction in between. LAYOUT is
`avro` (version 9, inline log files with Avro blocks), `native` (version 10) or `lsm` (version 10, sorted by
key). A compaction is a process of its own, so that its peak is that of the compaction alone.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
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

    def upsert(self, number: int) -> int:
        """Change one row of a hundred."""
        keys = np.random.default_rng(number).choice(ROWS, CHANGED, replace=False)
        return self.table.upsert(rows(number, keys), options={**UNTENDED, **self.more}).records_written

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

    def size(self) -> dict[str, float]:
        """Return the size and number of the data files."""
        sizes = [file.stat().st_size for file in Path(self.path).iterdir() if file.is_file()]
        return {"mb": sum(sizes) / 1e6, "files": len(sizes)}


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
    assert step("key_range", table.find, f"id >= 'id-{first:09}' AND id < 'id-{first + 100:09}'") == 100
    assert step("merge_all", table.merged) == ROWS
    assert step("merge_3_columns", table.merged, ["id", VALUES[0], VALUES[-1]]) == ROWS
    step("compact_group", table.compact)
    shutil.rmtree(path)


if __name__ == "__main__":
    drawstring.use_allocator()
    main()
