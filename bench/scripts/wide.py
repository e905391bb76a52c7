"""The job of the suite of layouts, the same for every peer; standard library only, as in `ride`.

One file group of a wide table gets small upserts spread over all keys and no compaction in between. Then it
is read, and compacted by a process of its own, whose memory is that of the compaction alone.

    write        load, upserts, look-ups, range, merge reads
    log_compact  log files into one, in a copy of the table as it was written (peers with `log_compact`)
    compact      log files into the base file
    life         another such table with the services that follow by default (peers with `life`)

A peer's script hands over a class whose objects have `warm`, `load(file)`, `upsert(file)`, `find(key)`,
`between(first, last)`, `merged(columns)`, which is for no use but reads every row, and `totals()`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from ride import size, step

FACTS = "layouts.json"
LOOKUPS = 5
READS = 3
"""How often ranges and merges are read."""
RANGE_ROWS = 100
COPY = "-logs"


class Wide:
    """The files of the job, and the folder of this peer's table."""

    def __init__(self, data: str, table: str) -> None:
        self.data = os.path.abspath(data)
        self.table = os.path.abspath(table)
        facts: dict[str, Any] = json.loads(Path(self.data, FACTS).read_text())
        self.rows: int = facts["rows"]
        self.upserts: int = facts["upserts"]
        self.life: int = facts["life"]
        self.columns: list[str] = facts["columns"]

    @property
    def few_columns(self) -> list[str]:
        """Three of them."""
        return ["id", self.columns[0], self.columns[-1]]

    def file(self, number: int) -> str:
        """Return the path of the rows of an upsert; 0 for those of the load."""
        return f"{self.data}/layouts_{number}.parquet"

    @staticmethod
    def key(number: int) -> str:
        """Return a record key."""
        return f"id-{number:09}"


def run(make: Any) -> None:
    """Take a peer through the job. usage of its script: SCRIPT DATA TABLE [JARS] [ARGS] [PHASE]

    Args:
        make: the peer's class, or a function that returns a peer; called with a `Wide`.
    """
    phases = {"write": _write, "log_compact": _log_compact, "compact": _compact, "life": _life}
    if sys.argv[-1] in phases:
        phases[sys.argv[-1]](make)
        return
    wide = Wide(*sys.argv[1:3])
    shutil.rmtree(wide.table, ignore_errors=True)
    Path(wide.table).parent.mkdir(parents=True, exist_ok=True)
    for name in ("write", *(name for name in getattr(make, "phases", ("compact",)))):
        subprocess.run([sys.executable, *sys.argv, name], check=True)
    shutil.rmtree(wide.table)


def _write(make: Any) -> None:
    wide = Wide(*sys.argv[1:3])
    peer = make(wide)
    peer.warm()
    step("bulk_insert", peer.load, wide.file(0))
    for number in range(1, wide.upserts + 1):
        step(f"upsert_{number}", peer.upsert, wide.file(number))
    step("size", size, wide.table)
    for number in range(1, LOOKUPS + 1):
        found = step(f"lookup_{number}", peer.find, wide.key(number * wide.rows // (LOOKUPS + 2)))
        assert found == 1, found
    for number in range(1, READS + 1):
        first = number * wide.rows // (READS + 1)
        found = step(f"between_keys_{number}", peer.between, wide.key(first), wide.key(first + RANGE_ROWS))
        assert found == RANGE_ROWS, found
    for number in range(1, READS + 1):
        step(f"merge_all_{number}", peer.merged)
    for number in range(1, READS + 1):
        step(f"merge_3_columns_{number}", peer.merged, wide.few_columns)
    step("merged_totals", peer.totals)
    if hasattr(peer, "log_compact"):
        shutil.copytree(wide.table, f"{wide.table}{COPY}")


def _log_compact(make: Any) -> None:
    wide = Wide(sys.argv[1], f"{sys.argv[2]}{COPY}")
    peer = make(wide)
    peer.warm()
    peer.find(wide.key(0))
    step("log_compact", peer.log_compact)
    step("merged_totals", peer.totals)
    shutil.rmtree(wide.table)


def _compact(make: Any) -> None:
    wide = Wide(*sys.argv[1:3])
    peer = make(wide)
    peer.warm()
    peer.find(wide.key(0))
    step("compact_group", peer.compact)
    step("merged_totals", peer.totals)


def _life(make: Any) -> None:
    wide = Wide(*sys.argv[1:3])
    shutil.rmtree(wide.table)
    step("life", make(wide).life)
