"""The steps of the workload in their order; standard library only, for it runs in every peer's environment.

A peer is an object with some of these methods; a step whose method it lacks is left out:

    warm() bulk_insert(file) totals() everything() upsert(file) delete(file) project() point() incremental()
    compact()

`before_STEP`, if there is one, runs before a step and is not timed.
Standard output gets a JSON line when a step begins and one when it is done, with seconds and result. Before
and after each a pause leaves the runner the time to look how much of the processor was used so far.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

PAUSE_SECONDS = 0.05


class Workload:
    """The files and facts of the workload, and the folder of this peer's table."""

    def __init__(self, data: str, table: str) -> None:
        self.data = os.path.abspath(data)
        self.table = os.path.abspath(table)
        self.facts: dict[str, Any] = json.loads(Path(self.data, "facts.json").read_text())
        self.point: str = self.facts["point"]
        self.city: str = self.facts["project_city"]

    def file(self, name: str) -> str:
        """Return the path of a file of the workload."""
        return f"{self.data}/{name}.parquet"

    def fresh(self) -> None:
        """Remove what an earlier run left."""
        shutil.rmtree(self.table, ignore_errors=True)
        Path(self.table).parent.mkdir(parents=True, exist_ok=True)


def step(name: str, action: Callable[..., Any], *args: Any) -> Any:
    """Time an action and tell; return its result."""
    tell({"begin": name})
    time.sleep(PAUSE_SECONDS)
    start = time.perf_counter()
    result = action(*args)
    tell({"step": name, "s": round(time.perf_counter() - start, 3), "result": result})
    time.sleep(PAUSE_SECONDS)
    return result


def note(name: str, result: Any) -> None:
    """Tell something as a step that took no time."""
    tell({"step": name, "s": 0.0, "result": result})


def run(peer: Any, work: Workload) -> None:
    """Take a peer through the workload."""
    batches = range(1, work.facts["size"]["batches"] + 1)
    plan: list[tuple[str, str, tuple[str, ...]]] = [
        ("warm", "warm", ()),
        ("bulk_insert", "bulk_insert", (work.file("base"),)),
        ("scan_base", "totals", ()),
        *((f"upsert_{number}", "upsert", (work.file(f"batch_{number}"),)) for number in batches),
        ("late", "upsert", (work.file("late"),)),
        ("delete", "delete", (work.file("deletes"),)),
        ("snapshot", "totals", ()),
        ("snapshot_2", "totals", ()),
        ("snapshot_all", "everything", ()),
        ("project", "project", ()),
        ("point", "point", ()),
        ("incremental", "incremental", ()),
        ("compact", "compact", ()),
        ("snapshot_compacted", "totals", ()),
    ]
    for name, method, args in plan:
        if hasattr(peer, method) and _is_meant(peer, name):
            getattr(peer, f"before_{name}", _nothing)()
            step(name, getattr(peer, method), *args)
    step("size", size, work.table)


def size(path: str) -> dict[str, float]:
    """Return megabytes and number of the files under a folder, checksum files of Hadoop left out."""
    files = [file for file in Path(path).rglob("*") if file.is_file() and file.suffix != ".crc"]
    return {"mb": round(sum(file.stat().st_size for file in files) / 1e6, 1), "files": len(files)}


def arguments() -> tuple[Path, str, list[str]]:
    """Return the data's folder, the table's, of which nothing is left, and a script's other words."""
    shutil.rmtree(sys.argv[2], ignore_errors=True)
    Path(sys.argv[2]).parent.mkdir(parents=True, exist_ok=True)
    return Path(sys.argv[1]).resolve(), str(Path(sys.argv[2]).resolve()), sys.argv[3:]


def _is_meant(peer: Any, step_name: str) -> bool:
    """Leave out reads after steps that the peer cannot do."""
    if step_name == "snapshot_compacted":
        return hasattr(peer, "compact")
    return step_name not in ("snapshot", "snapshot_2", "snapshot_all", "project") or hasattr(peer, "delete")


def _nothing() -> None:
    """Prepare nothing."""


def tell(line: dict[str, Any]) -> None:
    """Write a line for the runner."""
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()
