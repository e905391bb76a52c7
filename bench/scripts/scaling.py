"""What one small upsert costs in a small table and in a large one, after few commits and after many.

A table has so many partitions with one file group of 1,000 rows each. An upsert changes 250 rows in each of
four partitions, so it touches four file groups however many there are. A step is done three times, by three
upserts, the input file included; making the table is not timed. Standard library only.

A peer is an object with `load(file, table)`, `upsert(file, table)` and `count(table)`, and may name the
numbers of commits that it is asked for in `commits`: a peer that takes seconds for each stops earlier.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Protocol

from ride import step

COMMITS = (10, 100, 500)
ROWS_OF_A_GROUP = 1000
UPSERTS_TIMED = 3
KEY, PARTITION, ORDERING = "id", "part", "ts"


class Peer(Protocol):
    def load(self, file: str, table: str) -> None: ...
    def upsert(self, file: str, table: str) -> None: ...
    def count(self, table: str) -> int: ...


def run(peer: Peer) -> None:
    """Take a peer through all sizes. usage of its script: SCRIPT DATA TABLES ..."""
    data, tables = Path(sys.argv[1]), Path(sys.argv[2])
    shutil.rmtree(tables, ignore_errors=True)
    tables.mkdir(parents=True)
    sizes = sorted(int(file.stem.split("_")[1]) for file in data.glob("groups_*.parquet"))
    batches = len(list(data.glob("small_*.parquet")))
    for groups in sizes:
        table = _Table(peer, data, tables / f"groups_{groups}", groups)
        table.upserts_until(f"groups_{groups}", UPSERTS_TIMED + 1)
    table = _Table(peer, data, tables / "commits", sizes[0])
    for commits in [count for count in getattr(peer, "commits", COMMITS) if count <= batches]:
        table.upserts_until(f"commits_{commits}", commits)


class _Table:
    def __init__(self, peer: Peer, data: Path, path: Path, groups: int) -> None:
        self._peer = peer
        self._data = data
        self._path = str(path)
        self._rows = groups * ROWS_OF_A_GROUP
        self._done = 0
        peer.load(str(data / f"groups_{groups}.parquet"), self._path)

    def upserts_until(self, name: str, count: int) -> None:
        """Upsert until there were so many, the last ones as steps."""
        while self._done < count:
            self._done += 1
            file = str(self._data / f"small_{self._done}.parquet")
            if self._done > count - UPSERTS_TIMED:
                step(name, self._peer.upsert, file, self._path)
            else:
                self._peer.upsert(file, self._path)
        rows = self._peer.count(self._path)
        assert rows == self._rows, f"{name}: {rows} rows instead of {self._rows}"
