"""A table on drawstring's embedded engine, for the suites whose peers are all `local_tables`."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from arrow import stream
from hudi_options import KINDS, UNCOMPACTED, index_options
from local_tables import Condition, sql_of
from shapes import Shape

import drawstring

INDEX = {"mor": "bucket", "cow": "simple"}


class Table:
    def __init__(self, path: str, shape: Shape, kind: str) -> None:
        drawstring.use_allocator()
        self._path, self._shape, self._kind = path, shape, kind
        if kind == "mor":
            self.compact = self._compact

    def load(self, file: str) -> None:
        table = drawstring.create(
            self._path,
            pq.read_schema(file),
            name=self._shape.name,
            table_type=KINDS[self._kind],
            record_key=list(self._shape.key),
            partition_by=list(self._shape.partition_by),
            ordering=[self._shape.ordering],
            properties=index_options(INDEX[self._kind], self._shape),
        )
        table.bulk_insert(stream(file))

    def upsert(self, file: str) -> None:
        self._open().upsert(stream(file), options=UNCOMPACTED)

    def set_columns(self, file: str) -> None:
        self._open().upsert(stream(file), partial_update=True, options=UNCOMPACTED)

    def rows(self, columns: list[str] | None, where: Condition | None) -> pa.Table:
        return self._open().scan(columns=columns, where=sql_of(where)).to_arrow()

    def batches(self, columns: list[str] | None) -> pa.RecordBatchReader:
        return self._open().scan(columns=columns).to_reader()

    def relation(self) -> Any:
        return self._open().to_arrow_dataset()

    def _compact(self) -> None:
        self._open().services.compact()

    def _open(self) -> drawstring.Table:
        return drawstring.open(self._path)
