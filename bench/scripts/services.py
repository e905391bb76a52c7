"""Compaction and clustering on Spark, each in a process of its own; standard library only.

    write        a merge-on-read table: the rides, their batches, the late ones, the deletes
    compact      that table is read once, compacted, and read again
    write_flat   a table of rows that came once: the rides and the batches, each appended
    cluster      that table is read once, its rows sorted by driver into large files, and read again

What is measured is in `compact` and `cluster`. Such a service is a job that somebody starts beside the
writers: its memory is not what a write left, and reading first has loaded the code of the format.

A peer's script hands over how to make an object as in `ride`, and one with `append(file)`, `cluster()` and
`totals()`; a peer without clustering has no second one.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

from ride import Workload, step

SORT_BY = "driver_id"
FLAT = "-flat"
Make = Callable[[Workload], Any]


def run(rides: Make, flat: Make | None = None) -> None:
    """Take a peer through all phases. usage of its script: SCRIPT DATA TABLE [JARS] [PHASE]"""
    phases = {"write": rides, "compact": rides} | ({"write_flat": flat, "cluster": flat} if flat else {})
    if sys.argv[-1] in phases:
        _phase(sys.argv[-1], phases[sys.argv[-1]])
        return
    for name in phases:
        subprocess.run([sys.executable, *sys.argv, name], check=True)


def _phase(name: str, make: Make) -> None:
    is_flat = name in ("write_flat", "cluster")
    work = Workload(sys.argv[1], sys.argv[2] + (FLAT if is_flat else ""))
    if name.startswith("write"):
        work.fresh()
    peer = make(work)
    peer.warm()
    {"write": _write, "compact": _compact, "write_flat": _append, "cluster": _cluster}[name](peer, work)


def _batches(work: Workload) -> list[str]:
    return [work.file(f"batch_{number}") for number in range(1, work.facts["size"]["batches"] + 1)]


def _write(peer: Any, work: Workload) -> None:
    peer.bulk_insert(work.file("base"))
    for file in (*_batches(work), work.file("late")):
        peer.upsert(file)
    peer.delete(work.file("deletes"))


def _compact(peer: Any, work: Workload) -> None:
    step("snapshot", peer.totals)
    getattr(peer, "before_compact", lambda: None)()
    step("compact", peer.compact)
    step("snapshot_compacted", peer.totals)


def _append(peer: Any, work: Workload) -> None:
    for file in (work.file("base"), *_batches(work)):
        peer.append(file)


def _cluster(peer: Any, work: Workload) -> None:
    step("scan_flat", peer.totals)
    step("cluster", peer.cluster)
    step("scan_clustered", peer.totals)
