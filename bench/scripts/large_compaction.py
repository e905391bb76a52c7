"""Memory of reading and compacting one large file group. usage: large_compaction.py DATA TABLE LAYOUT

LAYOUT is `default`, with inline log files, or `lsm`, with native ones and all files sorted by key.

Half of the bytes are the base file, the other half log files that change all of its rows, five of them. Rows
have 4,000 bytes that no codec shortens; `BENCH_COMPACTION_COPIES` of 5 lets one shorten them to a fifth, for
groups that are larger than the disk. Writing, reading and compacting are processes of their own, so that the
peak that is seen is that of one of them. The result is the size of the files before, in megabytes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from hudi_options import UNCOMPACTED
from ride import step

import drawstring

GIGABYTES = float(os.environ.get("BENCH_COMPACTION_GB", "5"))
UPSERTS = 5
PAYLOAD_BYTES = 4000
COPIES = int(os.environ.get("BENCH_COMPACTION_COPIES", "1"))
ROWS = int(GIGABYTES / 2 * 1e9 / PAYLOAD_BYTES) // UPSERTS * UPSERTS
ROWS_AT_ONCE = 10_000
SCHEMA = pa.schema([("id", "string"), ("ts", "int64"), ("payload", "binary")])
LAYOUTS: dict[str, tuple[int, dict[str, str]]] = {
    "default": (9, {}),
    "lsm": (10, {"hoodie.table.storage.layout": "lsm_tree"}),
}
UNTENDED = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false", **UNCOMPACTED}


def rows(ts: int, first: int = 0, step: int = 1) -> pa.RecordBatchReader:
    """Return a stream of rows, every `step`-th one."""
    return pa.RecordBatchReader.from_batches(SCHEMA, _batches(ts, np.arange(first, ROWS, step)))


def _batches(ts: int, ids: np.ndarray) -> Iterator[pa.RecordBatch]:
    rng = np.random.default_rng(ts)
    for start in range(0, len(ids), ROWS_AT_ONCE):
        some = ids[start : start + ROWS_AT_ONCE]
        ends = np.arange(len(some) + 1, dtype="int32") * PAYLOAD_BYTES
        parts = np.frombuffer(rng.bytes(len(some) * PAYLOAD_BYTES // COPIES), dtype="uint8")
        data = np.tile(parts.reshape(len(some), -1), COPIES)
        buffers = [None, pa.py_buffer(ends), pa.py_buffer(data)]
        payload = pa.Array.from_buffers(pa.binary(), len(some), buffers)
        keys = [f"id-{number:012d}" for number in some]
        yield pa.record_batch([keys, np.full(len(some), ts), payload], schema=SCHEMA)


def write(path: str, layout: str) -> None:
    """Write the base file and the log files."""
    version, properties = LAYOUTS[layout]
    table = drawstring.create(
        path,
        SCHEMA,
        name="large",
        table_type="MERGE_ON_READ",
        record_key=["id"],
        ordering=["ts"],
        version=version,
        properties={"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1", **properties},
    )
    table.bulk_insert(rows(0), options=UNTENDED)
    for number in range(UPSERTS):
        table.upsert(rows(number + 1, number, UPSERTS), options=UNTENDED)


def part(what: str, path: str, layout: str) -> None:
    """Do one part in this process."""
    if what == "write":
        write(path, layout)
    elif what == "read":
        read = sum(batch.num_rows for batch in drawstring.open(path).scan().to_batches())
        assert read == ROWS, f"{read:,} instead of {ROWS:,} rows"
    else:
        done = drawstring.open(path).services.compact(options=UNTENDED)
        assert done
        assert done.records_written == ROWS, f"{done} instead of {ROWS:,} rows"


def apart(what: str) -> int:
    """Do one part in a process of its own; return the megabytes that are there before it."""
    size = sum(file.stat().st_size for file in Path(sys.argv[2]).glob("*.*") if file.is_file())
    subprocess.run([sys.executable, *sys.argv[:4], what], check=True, stdout=subprocess.DEVNULL)
    return size // 1_000_000


def main() -> None:
    """Write a new table, read it, compact it, and take it away."""
    if len(sys.argv) > 4:
        part(sys.argv[4], sys.argv[2], sys.argv[3])
        return
    shutil.rmtree(sys.argv[2], ignore_errors=True)
    step("write_group", apart, "write")
    step("read_group", apart, "read")
    step("compact_group", apart, "compact")
    shutil.rmtree(sys.argv[2])


if __name__ == "__main__":
    drawstring.use_allocator()
    main()
