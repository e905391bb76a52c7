"""pyiceberg with a catalog in SQLite. usage: lineitem_pyiceberg.py DATA TABLE

It knows no ordering: the row that is written last stays.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from lineitem import KEY, YEAR, Condition, fresh, run
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import And, EqualTo

NAME = "bench.lineitem"


class Peer:
    def __init__(self, path: str) -> None:
        self._path = path

    def bulk_insert(self, file: str) -> None:
        Path(self._path).mkdir()
        catalog = self._catalog()
        catalog.create_namespace("bench")
        rows = pq.read_table(file)
        made = catalog.create_table(NAME, rows.schema)
        with made.update_spec() as spec:
            spec.add_identity(YEAR)
        made.append(rows)

    def upsert(self, file: str) -> None:
        self._open().upsert(pq.read_table(file), join_cols=[YEAR, *KEY])

    def table(self, columns: list[str] | None, where: Condition | None) -> pa.Table:
        chosen = {} if where is None else {"row_filter": And(*(EqualTo(name, v) for name, _, v in where))}
        return self._open().scan(selected_fields=tuple(columns or "*"), **chosen).to_arrow()

    def relation(self) -> Any:
        return self._open().scan().to_arrow()

    def _open(self) -> Any:
        return self._catalog().load_table(NAME)

    def _catalog(self) -> SqlCatalog:
        return SqlCatalog("bench", uri=f"sqlite:///{self._path}/catalog.db", warehouse=f"file://{self._path}")


if __name__ == "__main__":
    run(Peer(fresh()))
