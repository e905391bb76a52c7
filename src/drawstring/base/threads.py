"""Running a task for several items on threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Thread
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def at_once(task: Callable[[T], R], items: Sequence[T], threads: int) -> list[R]:
    """Run a task for each item and return the results in the items' order.

    The calling thread takes part, so that a single item needs no other thread: often the work takes less
    time than starting one.

    Args:
        task: the function to run. After a failure no further task starts; the error of the first failed
            item is raised.
        items: the arguments of the tasks.
        threads: tasks that run at the same time, the calling thread included.
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
