"""drawstring on its embedded engine, in append mode. usage: small_files_drawstring.py DATA TABLE"""

from __future__ import annotations

import pyarrow as pa
from small_files import SCHEMA, TARGET_BYTES, fresh, run

import drawstring


class Peer:
    def __init__(self, path: str) -> None:
        self._path = path
        drawstring.create(path, SCHEMA, name="files", record_key=["id"], ordering=["ts"])

    def append(self, rows: pa.Table) -> None:
        drawstring.open(self._path).append(rows, options={"drawstring.append.merge": False})

    def compact(self) -> int:
        table = drawstring.open(self._path)
        table.services.compact_base_files(options={"hoodie.parquet.max.file.size": str(TARGET_BYTES)})
        return len(table.inspect.files())

    def rows(self) -> int:
        return drawstring.open(self._path).scan(columns=["id"]).to_arrow().num_rows


if __name__ == "__main__":
    drawstring.use_allocator()
    run(Peer(fresh()))
