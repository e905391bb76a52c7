"""Processes that take turns at every storage call, by a clock that moves only when they wait.

    task ── storage call, sleep, wait for an event or a mutex ──> asleep until a time
      └──────────── the task that wakes first goes on, and the clock with it ─────────┘

Each task is a thread, and one thread runs at a time. How long a storage call takes is drawn, so a seed says
who comes next. The threads with which the product renews leases and heartbeats are tasks as well: it gets
its timer, events and mutexes from `simulated_threads`.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from drawstring.base import resources as base_threads
from drawstring.base.clock import SeededIds
from drawstring.engine import local
from drawstring.txn.locks import storage_lock

NOW_MS = 1_900_000_000_000
NEVER = 1 << 62
STEPS_MAX = 200_000


class Crash(BaseException):
    """The end of a process: whatever it does from now on has no effect."""


@dataclass
class Process:
    """One life of a process: an actor that crashes goes on as another process.

    Attributes:
        name: of the actor.
        ids: its source of unique names.
        skew_ms: how far its clock is ahead of the true time.
        paused_until_ms: none of its threads does anything before that.
        is_dead: whether it crashed.
        ended_owners: the leases that it knows to have ended (`lease_lock`).
        disturbances: how many faults it has met.
    """

    name: str
    ids: SeededIds
    skew_ms: int = 0
    paused_until_ms: int = 0
    is_dead: bool = False
    ended_owners: set[str] = field(default_factory=set)
    disturbances: int = 0


class Task:
    """A thread of a process."""

    def __init__(self, process: Process, run: Callable[[], None], number: int) -> None:
        self.process = process
        self.run = run
        self.number = number
        self.gate = threading.Semaphore(0)
        self.wakes_ms = 0
        self.waits_for: object = None
        self.thread: threading.Thread | None = None

    def ready_ms(self) -> int:
        """Return when it may go on; a crashed process ends at once."""
        return 0 if self.process.is_dead else max(self.wakes_ms, self.process.paused_until_ms)


class Scheduler:
    """Runs tasks one at a time.

    Args:
        seed: draws how long storage calls take.
    """

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.now_ms = NOW_MS
        self.steps = 0
        self.failure: BaseException | None = None
        self._numbers = 0
        self._tasks: list[Task] = []
        self._running: Task | None = None
        self._is_over = threading.Semaphore(0)

    # -------------------- for the simulation

    def run(self) -> None:
        """Run all tasks to their ends.

        Raises:
            AssertionError: a task failed, or they do not end.
        """
        with simulated_threads(self):
            self._resume(self._next())
            self._is_over.acquire()
        if self.failure is not None:
            raise self.failure

    def spawn(self, process: Process, run: Callable[[], None]) -> Task:
        """Add a task, which begins when its turn comes."""
        self._numbers += 1
        task = Task(process, run, self._numbers)
        task.wakes_ms = self.now_ms
        task.thread = threading.Thread(target=self._live, args=(task,), daemon=True, name=process.name)
        self._tasks.append(task)
        task.thread.start()
        return task

    def fail(self, error: BaseException) -> None:
        """Note what is wrong; all tasks end."""
        self.failure = self.failure or error
        for task in self._tasks:
            task.process.is_dead = True

    # -------------------- for tasks

    def current(self) -> Task | None:
        """Return the task of the calling thread; None in any other thread."""
        running = self._running
        return running if running and running.thread is threading.current_thread() else None

    def wait(self, milliseconds: int, event: object = None) -> None:
        """Let others go on for a time, or until an event.

        Raises:
            Crash: the process of the calling task is dead.
        """
        task = self.current()
        if task is None:
            return
        if task.process.is_dead:
            raise Crash
        task.wakes_ms, task.waits_for = self.now_ms + milliseconds, event
        following = self._next()
        if following is not task:
            self._resume(following)
            task.gate.acquire()
        if task.process.is_dead:
            raise Crash

    def wake(self, event: object) -> None:
        """Let the tasks go on that wait for an event."""
        for task in self._tasks:
            if task.waits_for is event:
                task.waits_for, task.wakes_ms = None, self.now_ms

    def _live(self, task: Task) -> None:
        task.gate.acquire()
        try:
            if not task.process.is_dead:
                task.run()
        except Crash:
            pass
        except BaseException as error:  # told to the thread of the test
            self.fail(error)
        self._tasks.remove(task)
        self._resume(self._next())

    def _next(self) -> Task | None:
        """Return the task that goes on; None when all have ended."""
        self.steps += 1
        if self.steps > STEPS_MAX:
            self.fail(AssertionError(f"the tasks do not end: {self.steps} steps"))
        task = min(self._tasks, key=lambda each: (each.ready_ms(), each.number), default=None)
        if task is None:
            return None
        if task.ready_ms() >= NEVER:
            self.fail(AssertionError("every task waits for another one"))
        self.now_ms = max(self.now_ms, task.ready_ms() if not task.process.is_dead else 0)
        task.waits_for = None
        self._running = task
        return task

    def _resume(self, task: Task | None) -> None:
        (self._is_over if task is None else task.gate).release()


class SimulatedClock:
    """The clock of a process."""

    def __init__(self, scheduler: Scheduler, process: Process | None = None) -> None:
        self._scheduler = scheduler
        self._process = process

    def now_ms(self) -> int:
        return self._scheduler.now_ms + (self._process.skew_ms if self._process else 0)

    def sleep(self, seconds: float) -> None:
        self._scheduler.wait(max(1, int(seconds * 1000)))


# -------------------- the threads of the product


class _Event:
    """An event that tasks wait for."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._is_set = False

    def set(self) -> None:
        self._is_set = True
        self._scheduler.wake(self)

    def is_set(self) -> bool:
        return self._is_set

    def wait(self, seconds: float) -> bool:
        if not self._is_set:
            self._scheduler.wait(int(seconds * 1000), self)
        return self._is_set


class _Mutex:
    """A mutex among the tasks of a process."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._is_held = False

    def __enter__(self) -> None:
        while self._is_held:
            self._scheduler.wait(NEVER - self._scheduler.now_ms, self)
        self._is_held = True

    def __exit__(self, *error: object) -> None:
        self._is_held = False
        self._scheduler.wake(self)


class _Timer:
    """Puts work off: it is a task of the process that asks for it, and its event takes it back."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def add(self, delayed: Any) -> None:
        task = self._scheduler.current()
        assert task is not None, "a thread of nobody"
        self._scheduler.spawn(task.process, lambda: delayed.key.wait(delayed.seconds) or delayed.run())

    def drop(self, key: object) -> None:
        pass


class _EndedOwners:
    """The leases that the calling process knows to have ended: each process has a memory of its own."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._others: set[str] = set()

    def _own(self) -> set[str]:
        task = self._scheduler.current()
        return self._others if task is None else task.process.ended_owners

    def add(self, owner: str) -> None:
        self._own().add(owner)

    def discard(self, owner: str) -> None:
        self._own().discard(owner)

    def __contains__(self, owner: object) -> bool:
        return owner in self._own()


class _AtOnce:
    """A pool of threads that does the work when it is submitted, in the thread that submits it."""

    def __init__(self, threads: int) -> None:
        pass

    def __enter__(self) -> _AtOnce:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        result = function(*arguments)
        return SimpleNamespace(result=lambda: result, cancel=lambda: True)


@contextmanager
def simulated_threads(scheduler: Scheduler) -> Iterator[None]:
    """Give the product threads that take turns."""

    def threads(**names: Any) -> SimpleNamespace:
        return SimpleNamespace(**{name: _bound(scheduler, kind) for name, kind in names.items()})

    with ExitStack() as stack:
        for module, name, replacement in (
            (base_threads, "threading", threads(Event=_Event)),
            (base_threads, "_TIMER", _Timer(scheduler)),
            (storage_lock, "threading", threads(Lock=_Mutex)),
            (storage_lock, "_ended_owners", _EndedOwners(scheduler)),
            (local, "ThreadPoolExecutor", _AtOnce),
        ):
            stack.enter_context(patch.object(module, name, replacement))
        yield


def _bound(scheduler: Scheduler, kind: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *arguments, **named: kind(scheduler, *arguments, **named)
