"""Progress callbacks of table services, and runs of engine tasks that report to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias, TypeVar

from drawstring.engine.protocol import Engine

T = TypeVar("T")
R = TypeVar("R")

_TASKS_PER_CORE: Final = 8
"""Tasks of a round without a progress callback."""

Progress: TypeAlias = Callable[[int, int], None]
"""Called with the number of finished pieces of work (mostly file groups), and the total number."""


def watched(engine: Engine, task: Callable[[T], R], items: Sequence[T], progress: Progress | None) -> list[R]:
    """Run a task for each item; in rounds if there is a progress callback.

    Args:
        engine: runs the tasks.
        task: the function of one item.
        items: the items.
        progress: called after each round.
    """
    if progress is None:
        return engine.map(task, items)
    return list(in_rounds(engine, task, items, progress))


def in_rounds(
    engine: Engine, task: Callable[[T], R], items: Sequence[T], progress: Progress | None
) -> Iterator[R]:
    """Yield the result of a task for each item, holding only the results of one round at a time.

    Args:
        engine: runs the tasks.
        task: the function of one item.
        items: the items.
        progress: called after each round.
    """
    size = engine.parallelism * (1 if progress else _TASKS_PER_CORE)
    for start in range(0, len(items), size):
        batch = items[start : start + size]
        yield from engine.map(task, batch)
        if progress is not None:
            progress(start + len(batch), len(items))
