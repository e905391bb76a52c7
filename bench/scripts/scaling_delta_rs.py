"""delta-rs (the package deltalake). usage: scaling_delta_rs.py DATA TABLES

Its merge is told which partitions the batch touches; otherwise it would look through all of them.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake
from scaling import KEY, ORDERING, PARTITION, run


def merge_into(table: str, rows: pa.Table, key: str, partition: str) -> None:
    """Merge rows into a table."""
    touched = ", ".join(f"'{one}'" for one in pc.unique(rows.column(partition)).to_pylist())
    same = f"old.{partition} in ({touched}) and old.{partition} = new.{partition} and old.{key} = new.{key}"
    merge = DeltaTable(table).merge(rows, same, source_alias="new", target_alias="old")
    newer = f"new.{ORDERING} >= old.{ORDERING}"
    merge.when_matched_update_all(newer).when_not_matched_insert_all().execute()


class Peer:
    def load(self, file: str, table: str) -> None:
        write_deltalake(table, pq.read_table(file), partition_by=[PARTITION])

    def upsert(self, file: str, table: str) -> None:
        merge_into(table, pq.read_table(file), KEY, PARTITION)

    def count(self, table: str) -> int:
        return DeltaTable(table).to_pyarrow_table(columns=[KEY]).num_rows


if __name__ == "__main__":
    run(Peer())
