"""Setup and error handling of tasks in Spark's Python workers, and the division of slices among tasks."""

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
"""Estimated cost of opening a file slice, in bytes; Spark's default for files."""

TASK_BYTES_MAX: Final = 128 << 20
"""Maximum size of the file slices in one task, in bytes, unless one is larger; Spark's default for files."""

_SMALL_BYTES: Final = 32 << 20
"""Maximum size of slices per core, in bytes, for a single task: below it a second task does not pay off."""

_TASKS_PER_CORE: Final = 2
_is_frozen = False


@contextmanager
def work() -> Iterator[None]:
    """Run a task: serialize its errors for the driver, and prepare the worker for the next task."""
    _choose_allocator()
    try:
        with carried():
            yield
    finally:
        freeze_loaded_objects()


@cache
def _choose_allocator() -> None:
    """Choose the allocator of this process once; a pool that somebody sets later stays."""
    use_allocator()


def freeze_loaded_objects() -> None:
    """Freeze the loaded objects for the garbage collector; once per process.

    A worker collects garbage after every task. With pyarrow and pandas loaded this takes 40 ms, twenty times
    as long as a small task. The collector skips frozen objects.
    """
    global _is_frozen
    if not _is_frozen:
        _is_frozen = True
        gc.collect()
        gc.freeze()


def shares(sizes_bytes: Sequence[int], parallelism: int) -> list[list[int]]:
    """Divide file slices among tasks as evenly as possible.

    Args:
        sizes_bytes: size of every slice, in bytes.
        parallelism: number of tasks that run at once.

    Returns:
        The indices of the slices, by task.
    """
    costs = [size + OPEN_COST_BYTES for size in sizes_bytes]
    # Whole rounds of tasks: one more task would keep one core busy while the others are idle.
    rounds = 1 if sum(costs) <= parallelism * _SMALL_BYTES else _TASKS_PER_CORE
    count = max(rounds * parallelism, -(-sum(costs) // TASK_BYTES_MAX))
    tasks: list[list[int]] = [[] for _ in range(min(len(costs), count))]
    loads = [(0, task) for task in range(len(tasks))]
    heapify(loads)
    for number in sorted(range(len(costs)), key=lambda number: -costs[number]):
        load, task = loads[0]
        tasks[task].append(number)
        heapreplace(loads, (load + costs[number], task))
    return tasks
