"""A table of delta-rs (the package deltalake)."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from arrow import stream
from deltalake import DeltaTable, write_deltalake
from local_tables import Condition
from shapes import Shape


class Table:
    def __init__(self, path: str, shape: Shape) -> None:
        self._path, self._shape = path, shape
        self._newer = f"new.{shape.ordering} >= old.{shape.ordering}"

    def load(self, file: str) -> None:
        write_deltalake(self._path, stream(file), partition_by=list(self._shape.partition_by) or None)

    def upsert(self, file: str) -> None:
        self._merge(file).when_matched_update_all(self._newer).when_not_matched_insert_all().execute()

    def set_columns(self, file: str) -> None:
        values = {name: f"new.{name}" for name in pq.read_schema(file).names if name not in self._shape.key}
        self._merge(file).when_matched_update(values, self._newer).execute()

    def rows(self, columns: list[str] | None, where: Condition | None) -> pa.Table:
        return self._open().to_pyarrow_table(columns=columns, filters=where)

    def batches(self, columns: list[str] | None) -> pa.RecordBatchReader:
        return self.relation().scanner(columns=columns).to_reader()

    def relation(self) -> Any:
        return self._open().to_pyarrow_dataset()

    def _merge(self, file: str) -> Any:
        same = " and ".join(f"old.{name} = new.{name}" for name in self._shape.found_by)
        return self._open().merge(pq.read_table(file), same, source_alias="new", target_alias="old")

    def _open(self) -> DeltaTable:
        return DeltaTable(self._path)
