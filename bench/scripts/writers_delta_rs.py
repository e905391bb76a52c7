"""delta-rs (the package deltalake). usage: writers_delta_rs.py DATA TABLES

Its merge is told which cities the batch touches; otherwise it would look through all of them, and conflict
with what others write there. It runs nothing again by itself when rows that it read have changed.
"""

from __future__ import annotations

import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError
from writers import run


class Peer:
    errors = (CommitFailedError,)
    alone = ()

    def load(self, file: str, table: str) -> None:
        write_deltalake(table, pq.read_table(file), partition_by=["city"])

    def prepare(self, table: str, scenario: str) -> None:
        self._table = table

    def upsert(self, file: str) -> None:
        rows = pq.read_table(file)
        touched = ", ".join(f"'{one}'" for one in pc.unique(rows.column("city")).to_pylist())
        same = f"old.city in ({touched}) and old.city = new.city and old.ride_id = new.ride_id"
        merge = DeltaTable(self._table).merge(rows, same, source_alias="new", target_alias="old")
        merge.when_matched_update_all("new.ts >= old.ts").when_not_matched_insert_all().execute()

    def again(self) -> int:
        return 0

    def count(self, table: str) -> tuple[int, int]:
        keys = DeltaTable(table).to_pyarrow_table(columns=["ride_id"])["ride_id"]
        return len(keys), pc.count_distinct(keys).as_py()


if __name__ == "__main__":
    run(Peer())
