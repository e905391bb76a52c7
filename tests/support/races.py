"""Several processes that put the same files at the same time."""

from __future__ import annotations

import multiprocessing
from typing import Any

from drawstring.storage import open_spec
from drawstring.storage.protocol import StorageSpec

SECONDS_MAX = 300


def rounds_won(spec: StorageSpec, processes: int, rounds: int) -> list[list[int]]:
    """Let processes put the files `t/<round>`; return which rounds each of them won."""
    # Its children start with all imports done, and without threads that a fork would lose.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    start, results = context.Barrier(processes), context.Queue()
    running = [
        context.Process(target=_race, args=(spec, rounds, number, start, results))
        for number in range(processes)
    ]
    for process in running:
        process.start()
    found = dict(results.get(timeout=SECONDS_MAX) for _ in running)
    for process in running:
        process.join()
    return [found[number] for number in range(processes)]


def content(number: int) -> bytes:
    """Return what a process writes."""
    return b"%d" % number * 1000


def _race(spec: StorageSpec, rounds: int, number: int, start: Any, results: Any) -> None:
    storage = open_spec(spec)
    won = []
    for round_number in range(rounds):
        start.wait()
        if storage.put_if_absent(f"t/{round_number}", content(number)):
            won.append(round_number)
    results.put((number, won))
