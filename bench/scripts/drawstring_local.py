"""drawstring on its embedded engine. usage: drawstring_local.py DATA TABLE mor|cow"""

from __future__ import annotations

import os
import shutil
import sys

import pyarrow.parquet as pq
from arrow import TOTALS, stream, total_distance, totals
from embedded import create_rides
from hudi_options import UNCOMPACTED
from ride import Workload, run

import drawstring

SETTINGS = {
    "mor": ("MERGE_ON_READ", {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4"}),
    "cow": ("COPY_ON_WRITE", {"hoodie.index.type": "SIMPLE"}),
}


class Peer:
    def __init__(self, work: Workload, kind: str) -> None:
        self._work = work
        self._type, self._properties = SETTINGS[kind]
        self._loaded = ""
        if kind == "mor":
            self.compact = self._compact

    def bulk_insert(self, file: str) -> None:
        table = create_rides(self._work.table, pq.read_schema(file), self._type, self._properties)
        done = table.bulk_insert(stream(file))
        self._loaded = done.completed or done.instant

    def upsert(self, file: str) -> None:
        self._open().upsert(stream(file), options=UNCOMPACTED)

    def delete(self, file: str) -> None:
        self._open().delete(stream(file), options=UNCOMPACTED)

    def totals(self) -> list[float]:
        return totals(self._open().scan(columns=TOTALS).to_arrow())

    def everything(self) -> int:
        return self._open().scan().to_arrow().num_rows

    def project(self) -> float:
        where = f"city = '{self._work.city}' and fare > 30"
        return total_distance(self._open().scan(columns=["distance"], where=where).to_arrow())

    def point(self) -> int:
        where = f"ride_id = '{self._work.point}'"
        return self._open().scan(columns=["ride_id"], where=where).to_arrow().num_rows

    def incremental(self) -> int:
        return self._open().incremental(self._loaded, columns=["ride_id"]).to_arrow().num_rows

    def before_compact(self) -> None:
        """Leave the table beside itself as it is, for the peers that only read."""
        kept = f"{self._work.table}-with-logs"
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(self._work.table, kept, copy_function=os.link)

    def _compact(self) -> None:
        self._open().services.compact()

    def _open(self) -> drawstring.Table:
        return drawstring.open(self._work.table)


if __name__ == "__main__":
    drawstring.use_allocator()
    work = Workload(sys.argv[1], sys.argv[2])
    work.fresh()
    run(Peer(work, sys.argv[3]), work)
