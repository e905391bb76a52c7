"""Memory of reading one file slice as a stream. usage: large_slice.py DATA TABLE

The slice has ten times the rows of the first load, then log records for every fiftieth of them. Each
reading is a step in a process of its own, so that the peak that is seen is that of the reading.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from embedded import create_rides
from hudi_options import in_one_bucket
from ride import Workload, step

import drawstring

COPIES = 10
CHANGED = 50
"""One row in so many has a log record."""
PARTITION = "delhi"


def write(work: Workload) -> None:
    """Write the base file of the slice, or its log file when the base file is there."""
    if sys.argv[3] == "write_logs":
        drawstring.open(work.table).upsert(pa.Table.from_batches(copies(work, changed_only=True)))
        return
    schema = next(copies(work)).schema
    table = create_rides(work.table, schema, "MERGE_ON_READ", in_one_bucket("bucket"))
    table.bulk_insert(pa.RecordBatchReader.from_batches(schema, copies(work)))


def copies(work: Workload, *, changed_only: bool = False) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the first load as often as it takes, each time with other keys."""
    for number in range(COPIES):
        done = 0
        limit = work.facts["size"]["rows"] // CHANGED if changed_only else None
        for batch in pq.ParquetFile(work.file("base")).iter_batches():
            if limit is not None:
                batch = batch.slice(0, limit - done)
            if not batch.num_rows:
                break
            done += batch.num_rows
            keys = pc.binary_join_element_wise(f"copy-{number}", batch.column("ride_id"), "-")
            batch = batch.set_column(0, "ride_id", keys)
            yield batch.set_column(1, "city", pa.repeat(PARTITION, batch.num_rows))


def read(work: Workload, columns: list[str] | None) -> int:
    """Stream the table; return the number of its rows."""
    scan = drawstring.open(work.table).scan(columns=columns)
    return sum(batch.num_rows for batch in scan.to_batches())


def part(work: Workload, what: str) -> None:
    """Do one part in this process."""
    if what.startswith("write"):
        write(work)
    else:
        print(read(work, ["fare", "ts", "driver_id"] if what == "read_3" else None))


def apart(what: str) -> int:
    """Do one part in a process of its own; return the number that it prints."""
    done = subprocess.run([sys.executable, *sys.argv[:3], what], stdout=subprocess.PIPE, check=True)
    return int(done.stdout or 0)


def main() -> None:
    """Write the slice and read it, all that is there, before and after it has a log file."""
    work = Workload(sys.argv[1], sys.argv[2])
    if len(sys.argv) > 3:
        part(work, sys.argv[3])
        return
    work.fresh()
    apart("write_base")
    step("stream_base", apart, "read")
    apart("write_logs")
    step("stream_merged", apart, "read")
    step("stream_3_columns", apart, "read_3")


if __name__ == "__main__":
    drawstring.use_allocator()
    main()
