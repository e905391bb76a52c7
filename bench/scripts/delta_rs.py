"""delta-rs (the package deltalake), without Spark. usage: delta_rs.py DATA TABLE"""

from __future__ import annotations

import sys

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from arrow import TOTALS, stream, total_distance, totals
from deltalake import DeltaTable, QueryBuilder, write_deltalake
from ride import Workload, run

SAME_RIDE = "old.city = new.city and old.ride_id = new.ride_id"


class Peer:
    def __init__(self, work: Workload) -> None:
        self._work = work

    def bulk_insert(self, file: str) -> None:
        write_deltalake(self._work.table, stream(file), partition_by=["city"])

    def upsert(self, file: str) -> None:
        merge = self._merge(file)
        merge.when_matched_update_all("new.ts >= old.ts").when_not_matched_insert_all().execute()

    def delete(self, file: str) -> None:
        self._merge(file).when_matched_delete().execute()

    def totals(self) -> list[float]:
        return totals(self._open().to_pyarrow_table(columns=TOTALS))

    def everything(self) -> int:
        return self._open().to_pyarrow_table().num_rows

    def project(self) -> float:
        dear = ds.field("fare") > 30
        city = [("city", "=", self._work.city)]
        rows = self._open().to_pyarrow_table(partitions=city, columns=["distance"], filters=dear)
        return total_distance(rows)

    def point(self) -> int:
        """Ask in SQL: pyarrow cannot compare the views that the table's texts come as."""
        query = f"select ride_id from rides where ride_id = '{self._work.point}'"
        return pa.table(QueryBuilder().register("rides", self._open()).execute(query)).num_rows

    def compact(self) -> None:
        self._open().optimize.compact()

    def _open(self) -> DeltaTable:
        return DeltaTable(self._work.table)

    def _merge(self, file: str):
        return self._open().merge(pq.read_table(file), SAME_RIDE, source_alias="new", target_alias="old")


if __name__ == "__main__":
    work = Workload(sys.argv[1], sys.argv[2])
    work.fresh()
    run(Peer(work), work)
