"""Telling of a service how far it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar

from drawstring.engine.protocol import Engine

T = TypeVar("T")
R = TypeVar("R")

Progress: TypeAlias = Callable[[int, int], None]
"""Told how many pieces of work, file groups mostly, are done, and of how many."""


def watched(engine: Engine, task: Callable[[T], R], items: Sequence[T], progress: Progress | None) -> list[R]:
    """Run a task for each item; in rounds when somebody watches.

    Args:
        engine: runs the tasks.
        task: what is done.
        items: with what.
        progress: told after each round.
    """
    if progress is None:
        return engine.map(task, items)
    results: list[R] = []
    for start in range(0, len(items), engine.parallelism):
        results += engine.map(task, items[start : start + engine.parallelism])
        progress(len(results), len(items))
    return results
