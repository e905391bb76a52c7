"""hudi-rs (the package hudi) reads a table that another peer wrote. usage: hudi_rs.py DATA TABLE"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
from arrow import TOTALS, total_distance, totals
from hudi import HudiQueryType, HudiReadOptions, HudiTableBuilder
from ride import Workload, step


class Peer:
    def __init__(self, work: Workload) -> None:
        self._work = work

    def totals(self) -> list[float]:
        return totals(self._read(TOTALS))

    def everything(self) -> int:
        return self._read(None).num_rows

    def project(self) -> float:
        filters = [("city", "=", self._work.city), ("fare", ">", "30")]
        return total_distance(self._read(["distance"], filters))

    def incremental(self) -> int:
        """Count what changed after the first load: its completion time is in the name of its file."""
        first = min(Path(self._work.table, ".hoodie", "timeline").glob("*_*commit"))
        options: Any = HudiReadOptions().with_query_type(HudiQueryType.Incremental)
        options = options.with_start_timestamp(first.stem.split("_")[1]).with_projection(["ride_id"])
        return self._table(options).num_rows

    def _read(self, columns: list[str] | None, filters: list[tuple[str, str, str]] | None = None) -> pa.Table:
        options: Any = HudiReadOptions()
        if columns:
            options = options.with_projection(columns)
        if filters:
            options = options.with_filters(filters)
        return self._table(options)

    def _table(self, options: Any) -> pa.Table:
        return pa.Table.from_batches(HudiTableBuilder.from_base_uri(self._work.table).build().read(options))


if __name__ == "__main__":
    peer = Peer(Workload(sys.argv[1], sys.argv[2]))
    for name in ("snapshot", "snapshot_2"):
        step(name, peer.totals)
    step("snapshot_all", peer.everything)
    step("project", peer.project)
    step("incremental", peer.incremental)
