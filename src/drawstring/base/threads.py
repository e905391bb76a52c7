"""Threads: tasks for several items at once, and renewals at intervals."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Thread
from typing import Final, TypeVar

from drawstring.base.clock import Stopwatch

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
        self._stopped = stopped = threading.Event()
        _TIMER.add(_Delayed(stopped, self._seconds, lambda: self._run(stopped)))

    def stop(self) -> None:
        """Stop before the next renewal; one that is going on is not waited for."""
        self._stopped.set()
        _TIMER.drop(self._stopped)

    def _run(self, stopped: threading.Event) -> None:
        goes_on = not stopped.is_set()
        while goes_on:
            try:
                goes_on = self._renew()
            except Exception as error:  # any failure is transient here: the next round tries again
                _log.warning("%s; will retry: %s", self._failure, error)
            goes_on = goes_on and not stopped.wait(self._seconds)


@dataclass(frozen=True, slots=True)
class _Delayed:
    """Work for a thread of its own.

    Attributes:
        key: names it.
        seconds: how long its thread is put off.
        run: the work.
    """

    key: threading.Event
    seconds: float
    run: Callable[[], None]


class _Timer:
    """Puts the start of threads off until their work is due, on one thread for the whole process.

    Most writes end before their first heartbeat is due, and a thread takes longer to start on a busy machine
    than a small commit takes under the table lock. The work itself may block, so it gets its own thread. That
    of the timer ends when it wakes up and nothing is put off.
    """

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew in a forked process, which has neither the threads nor the duties of its parent."""
        self._changed = threading.Condition()
        self._watch = Stopwatch()
        self._waiting: dict[threading.Event, tuple[float, _Delayed]] = {}
        self._wakes_at: float | None = None  # None while there is no thread

    def add(self, delayed: _Delayed) -> None:
        """Put work off."""
        with self._changed:
            due = self._watch.seconds() + delayed.seconds
            if self._wakes_at is None:
                Thread(target=self._run, daemon=True, name="drawstring-timer").start()
                self._wakes_at = due
            elif due < self._wakes_at:
                self._changed.notify()
            self._waiting[delayed.key] = (due, delayed)

    def drop(self, key: threading.Event) -> None:
        """Take work back if it has not begun; the thread need not wake up for that."""
        with self._changed:
            self._waiting.pop(key, None)

    def _run(self) -> None:
        while True:
            with self._changed:
                now = self._watch.seconds()
                ready = [delayed for due, delayed in self._waiting.values() if due <= now]
                for delayed in ready:
                    del self._waiting[delayed.key]
                if not ready:
                    self._wakes_at = min((due for due, _ in self._waiting.values()), default=None)
                    if self._wakes_at is None:
                        return
                    self._changed.wait(self._wakes_at - now)
            for delayed in ready:
                self._begin(delayed)

    def _begin(self, delayed: _Delayed) -> None:
        try:
            Thread(target=delayed.run, daemon=True, name="renewal").start()
        except RuntimeError as error:  # too many threads
            _log.warning("A thread could not be started; will retry: %s", error)
            self.add(delayed)


_TIMER: Final = _Timer()
os.register_at_fork(after_in_child=_TIMER.forget)
