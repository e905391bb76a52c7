"""Telling of a service how far it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias, TypeVar

from drawstring.engine.protocol import Engine

T = TypeVar("T")
R = TypeVar("R")

_TASKS_A_CORE: Final = 8
"""Tasks of a round when nobody watches."""

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
    return list(in_rounds(engine, task, items, progress))


def in_rounds(
    engine: Engine, task: Callable[[T], R], items: Sequence[T], progress: Progress | None
) -> Iterator[R]:
    """Yield what a task returns for each item, so that the results of few are there at once.

    Args:
        engine: runs the tasks.
        task: what is done.
        items: with what.
        progress: told after each round.
    """
    size = engine.parallelism * (1 if progress else _TASKS_A_CORE)
    for start in range(0, len(items), size):
        some = items[start : start + size]
        yield from engine.map(task, some)
        if progress is not None:
            progress(start + len(some), len(items))
