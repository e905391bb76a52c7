"""Threads: tasks for several items at once, and renewals at intervals."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from threading import Thread
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")
_log = logging.getLogger("drawstring")


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


class Renewal:
    """Renews a lease or a heartbeat at intervals on a thread, after each `start` until `stop`.

    Args:
        renew: does it, and returns whether to go on.
        seconds: between two renewals.
        failure: what to log when it fails, without what happens next.
    """

    def __init__(
        self,
        renew: Callable[[], bool],
        seconds: float,
        failure: str = "The lock of the table could not be renewed",
    ) -> None:
        self._renew = renew
        self._seconds = seconds
        self._failure = failure
        self._stopped = threading.Event()

    def start(self) -> None:
        """Begin to renew."""
        self._stopped = threading.Event()
        threading.Thread(target=self._run, args=(self._stopped,), daemon=True, name="renewal").start()

    def stop(self) -> None:
        """Stop before the next renewal."""
        self._stopped.set()

    def _run(self, stopped: threading.Event) -> None:
        goes_on = True
        while goes_on and not stopped.wait(self._seconds):
            try:
                goes_on = self._renew()
            except Exception as error:  # any failure is transient here: the next round tries again
                _log.warning("%s; will retry: %s", self._failure, error)
