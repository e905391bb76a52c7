"""delta-rs (the package deltalake). usage: lineitem_delta_rs.py DATA TABLE"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from arrow import stream
from deltalake import DeltaTable, write_deltalake
from lineitem import KEY, VERSION, YEAR, Condition, fresh, run

SAME_ROW = " and ".join(f"old.{name} = new.{name}" for name in (YEAR, *KEY))


class Peer:
    def __init__(self, path: str) -> None:
        self._path = path

    def bulk_insert(self, file: str) -> None:
        write_deltalake(self._path, stream(file), partition_by=[YEAR])

    def upsert(self, file: str) -> None:
        merge = self._open().merge(pq.read_table(file), SAME_ROW, source_alias="new", target_alias="old")
        newer = f"new.{VERSION} >= old.{VERSION}"
        merge.when_matched_update_all(newer).when_not_matched_insert_all().execute()

    def table(self, columns: list[str] | None, where: Condition | None) -> pa.Table:
        return self._open().to_pyarrow_table(columns=columns, filters=where)

    def relation(self) -> Any:
        return self._open().to_pyarrow_dataset()

    def _open(self) -> DeltaTable:
        return DeltaTable(self._path)


if __name__ == "__main__":
    run(Peer(fresh()))
