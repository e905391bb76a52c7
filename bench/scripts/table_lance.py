"""A Lance dataset (the package pylance). It has no partitions, and rows are found by a join with the keys."""

from __future__ import annotations

from typing import Any

import lance
import pyarrow as pa
import pyarrow.parquet as pq
from arrow import stream
from local_tables import Condition, sql_of
from shapes import Shape


class Table:
    def __init__(self, path: str, shape: Shape) -> None:
        self._path, self._shape = path, shape

    def load(self, file: str) -> None:
        lance.write_dataset(stream(file), self._path)

    def upsert(self, file: str) -> None:
        self._merge().when_not_matched_insert_all().execute(pq.read_table(file))

    def set_columns(self, file: str) -> None:
        self._merge().execute(pq.read_table(file))

    def rows(self, columns: list[str] | None, where: Condition | None) -> pa.Table:
        return self.relation().to_table(columns=columns, filter=sql_of(where))

    def batches(self, columns: list[str] | None) -> pa.RecordBatchReader:
        return self.relation().scanner(columns=columns).to_reader()

    def relation(self) -> Any:
        return lance.dataset(self._path)

    def compact(self) -> None:
        self.relation().optimize.compact_files()

    def _merge(self) -> Any:
        newer = f"source.{self._shape.ordering} >= target.{self._shape.ordering}"
        return self.relation().merge_insert(list(self._shape.key)).when_matched_update_all(newer)
