"""drawstring on its embedded engine. usage: lineitem_drawstring.py DATA TABLE mor|cow"""

from __future__ import annotations

import sys
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from arrow import stream
from hudi_options import INDEXES, KINDS, UNCOMPACTED
from lineitem import KEY, VERSION, YEAR, Condition, fresh, run

import drawstring


class Peer:
    def __init__(self, path: str, kind: str) -> None:
        self._path, self._kind = path, kind
        if kind == "mor":
            self.compact = self._compact

    def bulk_insert(self, file: str) -> None:
        table = drawstring.create(
            self._path,
            pq.read_schema(file),
            name="lineitem",
            table_type=KINDS[self._kind],
            record_key=list(KEY),
            partition_by=[YEAR],
            ordering=[VERSION],
            properties=INDEXES["bucket" if self._kind == "mor" else "simple"],
        )
        table.bulk_insert(stream(file))

    def upsert(self, file: str) -> None:
        self._open().upsert(stream(file), options=UNCOMPACTED)

    def table(self, columns: list[str] | None, where: Condition | None) -> pa.Table:
        condition = " and ".join(f"{name} {sign} {value!r}" for name, sign, value in where or []) or None
        return self._open().scan(columns=columns, where=condition).to_arrow()

    def relation(self) -> Any:
        return self._open().to_arrow_dataset()

    def _compact(self) -> None:
        self._open().compact()

    def _open(self) -> drawstring.Table:
        return drawstring.open(self._path)


if __name__ == "__main__":
    drawstring.use_allocator()
    run(Peer(fresh(), sys.argv[3]))
