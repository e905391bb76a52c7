"""The job of the suite of layouts by pypaimon. usage: lsm_pypaimon.py DATA WAREHOUSE [PHASE]

It has no compaction.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pypaimon import CatalogFactory, Schema
from wide import Wide, run

OPTIONS = {"bucket": "1", "sequence.field": "ts", "file.format": "parquet"}
TABLE = "db.wide"


class Peer:
    phases = ()

    def __init__(self, wide: Wide) -> None:
        self.wide = wide
        catalog = CatalogFactory.create({"warehouse": wide.table})
        if not Path(wide.table, "db.db").exists():
            stored = pq.read_schema(wide.file(0))
            keyed = stored.set(0, stored.field("id").with_nullable(False))
            catalog.create_database("db", True)
            schema = Schema.from_pyarrow_schema(keyed, primary_keys=["id"], options=OPTIONS)
            catalog.create_table(TABLE, schema, False)
            self.schema = keyed
        self.table = catalog.get_table(TABLE)

    def warm(self) -> None:
        """Nothing has to be started."""

    def load(self, file: str) -> None:
        self.upsert(file)

    def upsert(self, file: str) -> None:
        builder = self.table.new_batch_write_builder()
        writer, commit = builder.new_write(), builder.new_commit()
        writer.write_arrow(pq.read_table(file).cast(self.schema))
        commit.commit(writer.prepare_commit())
        writer.close()
        commit.close()

    def find(self, key: str) -> int:
        where = self.table.new_read_builder().new_predicate_builder().equal("id", key)
        return self._read(self.table.new_read_builder().with_filter(where)).num_rows

    def between(self, first: str, last: str) -> int:
        conditions = self.table.new_read_builder().new_predicate_builder()
        where = conditions.and_predicates(
            [conditions.greater_or_equal("id", first), conditions.less_than("id", last)]
        )
        return self._read(self.table.new_read_builder().with_filter(where)).num_rows

    def merged(self, columns: list[str] | None = None) -> None:
        """Read the merged rows, a batch at a time."""
        builder = self.table.new_read_builder()
        if columns:
            builder = builder.with_projection(columns)
        splits = builder.new_scan().plan().splits()
        for _ in builder.new_read().to_arrow_batch_reader(splits):
            pass

    def totals(self) -> list[float]:
        """Return the number of rows and two sums."""
        rows = self._read(self.table.new_read_builder().with_projection(["ts", self.wide.columns[0]]))
        return [rows.num_rows, *(round(pc.sum(column).as_py(), 2) for column in rows.columns)]

    def _read(self, builder: Any) -> pa.Table:
        return builder.new_read().to_arrow(builder.new_scan().plan().splits())


if __name__ == "__main__":
    run(Peer)
