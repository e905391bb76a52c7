"""What every function of drawstring does in a Python worker of Spark."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from heapq import heapify, heapreplace
from typing import Final

from drawstring.base.allocator import use_allocator
from drawstring.spark.engine.failures import carried

OPEN_COST_BYTES: Final = 4 << 20
"""Bytes that opening one more file slice counts as; Spark's own figure for files."""

TASK_BYTES_MAX: Final = 128 << 20
"""Bytes of file slices in one task, unless a single one has more; Spark's own figure for files."""

_SMALL_BYTES: Final = 32 << 20
"""Bytes of slices for each core up to which it gets one task: a second one costs more than it evens out."""

_TASKS_PER_CORE: Final = 2
_settled = False


@contextmanager
def work() -> Iterator[None]:
    """Frame a task: errors get ready to travel to the driver, and the worker for its next task."""
    _choose_allocator()
    try:
        with carried():
            yield
    finally:
        settle()


@cache
def _choose_allocator() -> None:
    """Choose the allocator of this process once; a pool that somebody sets later stays."""
    use_allocator()


def settle() -> None:
    """Take what this process has loaded out of the garbage collector's sight, once.

    A worker collects garbage after every task. With pyarrow and pandas loaded that takes 40 ms,
    twenty times as much as a small task; frozen objects are not looked at again.
    """
    global _settled
    if not _settled:
        _settled = True
        gc.collect()
        gc.freeze()


def shares(sizes_bytes: Sequence[int], parallelism: int) -> list[list[int]]:
    """Divide file slices among tasks, as evenly as can be.

    Args:
        sizes_bytes: size of every slice.
        parallelism: how many tasks run at once.

    Returns:
        The numbers of the slices of every task.
    """
    costs = [size + OPEN_COST_BYTES for size in sizes_bytes]
    # Whole rounds of tasks: one task more would keep one core busy while the others have nothing to do.
    rounds = 1 if sum(costs) <= parallelism * _SMALL_BYTES else _TASKS_PER_CORE
    wanted = max(rounds * parallelism, -(-sum(costs) // TASK_BYTES_MAX))
    found: list[list[int]] = [[] for _ in range(min(len(costs), wanted))]
    loads = [(0, task) for task in range(len(found))]
    heapify(loads)
    for number in sorted(range(len(costs)), key=lambda number: -costs[number]):
        load, task = loads[0]
        found[task].append(number)
        heapreplace(loads, (load + costs[number], task))
    return found
