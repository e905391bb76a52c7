"""delta-rs (the package deltalake). usage: small_files_delta_rs.py DATA TABLE"""

from __future__ import annotations

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from small_files import TARGET_BYTES, fresh, run


class Peer:
    def __init__(self, path: str) -> None:
        self._path = path

    def append(self, rows: pa.Table) -> None:
        write_deltalake(self._path, rows, mode="append")

    def compact(self) -> int:
        table = DeltaTable(self._path)
        table.optimize.compact(target_size=TARGET_BYTES)
        return len(table.file_uris())

    def rows(self) -> int:
        return DeltaTable(self._path).to_pyarrow_table(columns=["id"]).num_rows


if __name__ == "__main__":
    run(Peer(fresh()))
