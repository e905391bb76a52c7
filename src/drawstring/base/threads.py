"""A task for each of several items, some at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Thread
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def at_once(task: Callable[[T], R], items: Sequence[T], threads: int) -> list[R]:
    """Run a task for each item, results in the items' order.

    The thread that asks does its share, so that one item, or one thread, needs no other: most often there is
    less to do than it takes to start a thread.

    Args:
        task: what is done; of those that fail the first item's error is raised, and no more are begun.
        items: what to do.
        threads: tasks at once.
    """
    results: dict[int, R] = {}
    errors: dict[int, BaseException] = {}
    numbers = iter(range(len(items)))

    def work() -> None:
        while not errors and (number := next(numbers, None)) is not None:
            try:
                results[number] = task(items[number])
            except BaseException as error:
                errors[number] = error

    others = [
        Thread(target=work, daemon=True, name="drawstring-task") for _ in range(min(threads, len(items)) - 1)
    ]
    for other in others:
        other.start()
    work()
    for other in others:
        other.join()
    if errors:
        raise errors[min(errors)]
    return [results[number] for number in range(len(items))]
