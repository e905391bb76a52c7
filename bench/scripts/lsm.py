"""Layouts of a MERGE_ON_READ table. usage: lsm.py DATA TABLE LAYOUT [PHASE]

LAYOUT is `avro` (version 9, inline log files with Avro blocks), `native` (version 10) or `lsm` (version 10,
sorted by key). `wide` tells the job.

In the `life` of such a table upserts are followed by the services that do so by default, and after each of
them it is told what was written so far, what is there, and what reads take.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from hudi_options import UNCOMPACTED
from wide import Wide, run

import drawstring

LAYOUTS: dict[str, tuple[int, dict[str, str], dict[str, str]]] = {
    "avro": (9, {}, {"hoodie.logfile.data.block.format": "avro"}),
    "native": (10, {}, {}),
    "lsm": (10, {"hoodie.table.storage.layout": "lsm_tree"}, {}),
}
BUCKET = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
UNTENDED = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false", **UNCOMPACTED}


class Peer:
    """One table."""

    phases = ("log_compact", "compact", "life")

    def __init__(self, wide: Wide) -> None:
        self.wide = wide
        version, properties, self.more = LAYOUTS[sys.argv[3]]
        if Path(wide.table).exists():
            self.table = drawstring.open(wide.table)
            return
        self.table = drawstring.create(
            wide.table,
            pq.read_schema(wide.file(0)),
            name="wide",
            table_type="MERGE_ON_READ",
            record_key=["id"],
            ordering=["ts"],
            version=version,
            properties={**BUCKET, **properties},
        )

    def warm(self) -> None:
        """Nothing has to be started."""

    def load(self, file: str) -> None:
        self.table.bulk_insert(pq.read_table(file), options=UNTENDED)

    def upsert(self, file: str, services: dict[str, str] = UNTENDED) -> None:
        self.table.upsert(pq.read_table(file), options={**services, **self.more})

    def find(self, key: str) -> int:
        """Read all columns of a record."""
        return self.table.scan(where=f"id = '{key}'").to_arrow().num_rows

    def between(self, first: str, last: str) -> int:
        """Read all columns of the records from one key to before another."""
        return self.table.scan(where=f"id >= '{first}' AND id < '{last}'").to_arrow().num_rows

    def merged(self, columns: list[str] | None = None) -> None:
        """Read the merged rows, a batch at a time."""
        for _ in self.table.scan(columns=columns).to_batches():
            pass

    def totals(self) -> list[float]:
        """Return the number of rows and two sums."""
        rows: pa.Table = self.table.scan(columns=["ts", self.wide.columns[0]]).to_arrow()
        return [rows.num_rows, *(round(pc.sum(column).as_py(), 2) for column in rows.columns)]

    def log_compact(self) -> None:
        assert self.table.services.log_compact(min_blocks=2, options=UNTENDED)

    def compact(self) -> None:
        done = self.table.services.compact(options=UNTENDED)
        assert done.records_written == self.wide.rows, done

    def sizes(self) -> dict[str, int]:
        """Return the sizes of the data files by name."""
        return {file.name: file.stat().st_size for file in Path(self.wide.table).iterdir() if file.is_file()}

    def life(self) -> dict[str, list[float]]:
        """Change the table again and again; return what there was after each upsert.

        Returns:
            `written_mb`, bytes of all files so far; `space_mb`, bytes of those that are there; `log_files` of
            the file slice; processor seconds of the upsert with its services (`upsert_s`), of a read of three
            columns (`read_s`), and of a look-up of a key (`lookup_s`).
        """
        wide = self.wide
        self.load(wide.file(0))
        seen, written = set(self.sizes()), 0
        found: dict[str, list[float]] = {
            name: [] for name in ("written_mb", "space_mb", "log_files", "upsert_s", "read_s", "lookup_s")
        }
        for number in range(1, wide.life + 1):
            found["upsert_s"].append(_processor_seconds(lambda at=number: self.upsert(wide.file(at), {})))
            found["read_s"].append(_processor_seconds(lambda: self.merged(wide.few_columns)))
            found["lookup_s"].append(_processor_seconds(lambda: self.find(wide.key(wide.rows // 7))))
            sizes = self.sizes()
            written += sum(size for name, size in sizes.items() if name not in seen)
            seen |= sizes.keys()
            (file_slice,) = self.table.inspect.files()
            found["log_files"].append(len(file_slice.logs))
            found["written_mb"].append(written / 1e6)
            found["space_mb"].append(sum(sizes.values()) / 1e6)
        return found


def _processor_seconds(action: Callable[[], object]) -> float:
    start = time.process_time()
    action()
    return round(time.process_time() - start, 4)


if __name__ == "__main__":
    drawstring.use_allocator()
    run(Peer)
