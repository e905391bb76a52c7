"""A table of pyiceberg, in a catalog in SQLite. It knows no ordering: the row that is written last stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from local_tables import Condition
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import And, BooleanExpression, EqualTo, GreaterThanOrEqual, LessThanOrEqual
from shapes import Shape

SIGNS: dict[str, type[Any]] = {"=": EqualTo, ">=": GreaterThanOrEqual, "<=": LessThanOrEqual}


class Table:
    def __init__(self, path: str, shape: Shape) -> None:
        self._path, self._shape = path, shape
        self._name = f"bench.{shape.name}"

    def load(self, file: str) -> None:
        Path(self._path).mkdir()
        catalog = self._catalog()
        catalog.create_namespace("bench")
        rows = pq.read_table(file)
        made = catalog.create_table(self._name, rows.schema)
        if self._shape.partition_by:
            with made.update_spec() as spec:
                for name in self._shape.partition_by:
                    spec.add_identity(name)
        made.append(rows)

    def upsert(self, file: str) -> None:
        self._open().upsert(pq.read_table(file), join_cols=list(self._shape.found_by))

    def rows(self, columns: list[str] | None, where: Condition | None) -> pa.Table:
        chosen = {} if where is None else {"row_filter": _filter(where)}
        return self._open().scan(selected_fields=tuple(columns or "*"), **chosen).to_arrow()

    def batches(self, columns: list[str] | None) -> pa.RecordBatchReader:
        return self._open().scan(selected_fields=tuple(columns or "*")).to_arrow_batch_reader()

    def relation(self) -> Any:
        return self._open().scan().to_arrow()

    def _open(self) -> Any:
        return self._catalog().load_table(self._name)

    def _catalog(self) -> SqlCatalog:
        return SqlCatalog("bench", uri=f"sqlite:///{self._path}/catalog.db", warehouse=f"file://{self._path}")


def _filter(where: Condition) -> BooleanExpression:
    return And(*(SIGNS[sign](name, value) for name, sign, value in where))
