"""Several processes that upsert into one table at the same time. usage of its scripts: SCRIPT DATA TABLES ...

    disjoint   each process has cities (the partitions) of its own
    apart      the same batches, but each process has a table of its own: what the machine allows
    overlap    every batch of every process goes to all cities

and what a peer has besides. Each process does the same number of commits, one after the other, a batch
each; the input file is part of a commit. The table is new for each number of processes, and has all rows at
the end, unless the processes were killed because they took too long.

A peer is an object that can be pickled, with these methods and attributes:

    load(file, table)            make the table
    prepare(table, scenario)     called once in each process
    upsert(file)                 one commit of the prepared process
    again()                      how often the library ran commits of this process again by itself
    count(table)                 how many rows there are, and how many keys
    errors                       exceptions after which a caller asks for the same commit once more
    alone                        scenarios of a single process besides
"""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import statistics
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Barrier
from typing import Any, Protocol

from ride import step

CITIES = 8
PROCESSES = tuple(map(int, os.environ.get("BENCH_WRITERS_PROCESSES", "1,2,4,8").split(",")))
READY_SECONDS = 600
SECONDS_MAX = int(os.environ.get("BENCH_WRITERS_SECONDS", "60"))
"""What a scenario may take, and the warm-up before it; after that its processes are killed."""
ROUNDS = int(os.environ.get("BENCH_WRITERS_ROUNDS", "3"))
"""How often all scenarios are run, one after the other; those that took too long are not run again."""


class Peer(Protocol):
    errors: tuple[type[Exception], ...]
    alone: tuple[str, ...]

    def load(self, file: str, table: str) -> None: ...
    def prepare(self, table: str, scenario: str) -> None: ...
    def upsert(self, file: str) -> None: ...
    def again(self) -> int: ...
    def count(self, table: str) -> tuple[int, int]: ...


APART = "apart"


@dataclass(frozen=True)
class Scenario:
    """What some processes do at the same time; `batches` has the files of each."""

    name: str
    batches: tuple[tuple[str, ...], ...]

    def tables(self, folder: Path) -> list[str]:
        """Return the table of each process: one for all of them, unless they are apart."""
        numbers = range(len(self.batches))
        return [str(folder / (f"rides-{number}" if self.name == APART else "rides")) for number in numbers]


def scenarios(alone: Sequence[str], commits: int) -> list[Scenario]:
    """Return the scenarios of a peer in their order. A new one is added here."""
    found = [Scenario(name, (_of_cities(0, 1, commits),)) for name in alone]
    for name, batches in (("disjoint", _of_cities), (APART, _of_cities), ("overlap", _of_all)):
        for processes in PROCESSES:
            if name == APART and processes == 1:
                continue  # the same as disjoint
            files = tuple(batches(number, processes, commits) for number in range(processes))
            found.append(Scenario(name, files))
    return found


def _of_cities(number: int, processes: int, commits: int) -> tuple[str, ...]:
    """Return the batches of a process that has every so-many-th city."""
    cities = range(number, CITIES, processes)
    return tuple(f"city_{cities[at % len(cities)]}_{at // len(cities)}" for at in range(commits))


def _of_all(number: int, processes: int, commits: int) -> tuple[str, ...]:
    return tuple(f"all_{number}_{at}" for at in range(commits))


def run(peer: Peer) -> None:
    """Take a peer through all scenarios."""
    data, tables = Path(sys.argv[1]), Path(sys.argv[2])
    facts = json.loads((data / "writers" / "facts.json").read_text())
    rides = json.loads((data / "facts.json").read_text())["size"]["rows"]
    left = scenarios(peer.alone, facts["commits"])
    for _ in range(ROUNDS):
        left = [scenario for scenario in left if _run_checked(peer, scenario, data, tables, rides, facts)]
    shutil.rmtree(tables)


def _run_checked(
    peer: Peer, scenario: Scenario, data: Path, tables: Path, rides: int, facts: dict[str, int]
) -> bool:
    """Run a scenario on a new table and count its rows; return whether it ended by itself."""
    shutil.rmtree(tables, ignore_errors=True)
    tables.mkdir(parents=True)
    if not _run(peer, scenario, data, tables):
        return False
    shared = scenario.tables(tables)
    for table in sorted(set(shared)):
        expected = rides + facts["new"] * facts["commits"] * shared.count(table)
        rows, keys = peer.count(table)
        assert rows == keys == expected, f"{scenario.name}: {rows} rows with {keys} keys: {expected} expected"
    return True


def _run(peer: Peer, scenario: Scenario, data: Path, tables: Path) -> bool:
    """Run a scenario; return whether it ended by itself."""
    shared, processes = scenario.tables(tables), len(scenario.batches)
    for table in sorted(set(shared)):
        peer.load(str(data / "base.parquet"), table)
    files = [[str(data / "writers" / f"{name}.parquet") for name in batches] for batches in scenario.batches]
    notes = [tables / f"notes-{number}.txt" for number in range(processes)]
    spawn = multiprocessing.get_context("spawn")
    barrier = spawn.Barrier(processes)
    with ProcessPoolExecutor(processes, spawn, _begin, (barrier,)) as pool:
        is_ready = _ended(
            pool.submit(_prepare, peer, shared[number], scenario.name, own[0], f"{tables}/warm-{number}")
            for number, own in enumerate(files)
        )

        def write() -> dict[str, Any]:
            ended = is_ready and _ended(map(partial(pool.submit, _write), files, map(str, notes)))
            return _told(notes) | ({} if ended else {"stopped_s": SECONDS_MAX})

        return "stopped_s" not in step(f"{scenario.name}_{processes}", write)


def _ended(futures: Iterable[Future[None]]) -> bool:
    """Wait for processes; if they take too long, kill them and return False."""
    begun = list(futures)
    done, late = wait(begun, SECONDS_MAX)
    for process in multiprocessing.active_children() if late else ():
        process.kill()
    for future in done if not late else ():
        future.result()
    return not late


def _told(notes: Sequence[Path]) -> dict[str, Any]:
    """Return what processes noted, a line each: the seconds and rows of a commit, runs again, errors."""
    lines = [line.split() for path in notes if path.exists() for line in path.read_text().splitlines()]
    seconds = [float(line[0]) for line in lines]
    return {
        "processes": len(notes),
        "commits": len(lines),
        "rows": sum(int(line[1]) for line in lines),
        "median_s": round(statistics.median(seconds), 4) if seconds else None,
        "worst_s": round(max(seconds), 4) if seconds else None,
        "again": sum(int(line[2]) for line in lines),
        "errors": sum(int(line[3]) for line in lines),
    }


_barrier: Barrier
_peer: Peer


def _begin(barrier: Barrier) -> None:
    global _barrier
    _barrier = barrier


def _prepare(peer: Peer, table: str, scenario: str, file: str, warm: str) -> None:
    """Load what a commit needs, by one to a table of this process alone; each process takes one such call."""
    global _peer
    _peer = peer
    peer.load(file, warm)
    peer.prepare(warm, scenario)
    peer.upsert(file)
    shutil.rmtree(warm)
    peer.prepare(table, scenario)
    _barrier.wait(READY_SECONDS)


def _write(files: Sequence[str], notes: str) -> None:
    """Commit each file, and note each commit, so that it counts whatever becomes of the process."""
    import pyarrow.parquet as pq

    rows = [pq.read_metadata(file).num_rows for file in files]
    _barrier.wait(READY_SECONDS)
    with open(notes, "w", buffering=1) as noted:
        for file, count in zip(files, rows, strict=True):
            began, again, errors = time.perf_counter(), _peer.again(), 0
            while not _is_done(file):
                errors += 1
            noted.write(f"{time.perf_counter() - began} {count} {_peer.again() - again} {errors}\n")


def _is_done(file: str) -> bool:
    try:
        _peer.upsert(file)
    except _peer.errors:
        return False
    return True
