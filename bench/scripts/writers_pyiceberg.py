"""pyiceberg with a catalog in SQLite. usage: writers_pyiceberg.py DATA TABLES

The rows of a batch match by city and key, so that it need not look through other cities. It knows no
ordering: the row that is written last stays.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException, ValidationException
from sqlalchemy.exc import OperationalError
from writers import run

NAME = "bench.rides"


class Peer:
    errors = (CommitFailedException, ValidationException, OperationalError)
    alone = ()

    def load(self, file: str, table: str) -> None:
        Path(table).mkdir(parents=True)
        catalog = _catalog(table)
        catalog.create_namespace("bench")
        rows = pq.read_table(file)
        made = catalog.create_table(NAME, rows.schema)
        with made.update_spec() as spec:
            spec.add_identity("city")
        made.append(rows)

    def prepare(self, table: str, scenario: str) -> None:
        self._catalog = _catalog(table)

    def upsert(self, file: str) -> None:
        self._catalog.load_table(NAME).upsert(pq.read_table(file), join_cols=["city", "ride_id"])

    def again(self) -> int:
        return 0

    def count(self, table: str) -> tuple[int, int]:
        keys = _catalog(table).load_table(NAME).scan(selected_fields=("ride_id",)).to_arrow()["ride_id"]
        return len(keys), pc.count_distinct(keys).as_py()


def _catalog(table: str) -> Any:
    return SqlCatalog("bench", uri=f"sqlite:///{table}/catalog.db", warehouse=f"file://{table}")


if __name__ == "__main__":
    run(Peer())
