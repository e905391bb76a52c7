"""Clock and ids: the only module that uses the wall clock, uuid or randomness.

All other code takes a `Clock` or an `Ids`, so that a test can replay a run.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Mapping
from typing import Protocol


class Clock(Protocol):
    """The source of the current time."""

    def now_ms(self) -> int:
        """Return milliseconds since the epoch, UTC."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait for `seconds`."""
        ...


class Ids(Protocol):
    """The source of unique names."""

    def uuid(self) -> str:
        """Return a fresh UUID, 36 characters."""
        ...


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class SystemIds:
    """Random version-4 UUIDs."""

    def uuid(self) -> str:
        return str(uuid.uuid4())


def jitter(ids: Ids) -> float:
    """Return a random fraction from a half to 1, to shorten the pauses of those that wait for each other."""
    return (1 + int(ids.uuid()[:4], 16) / 0xFFFF) / 2


class SteppingClock:
    """A clock for tests: each reading advances it by one step, each sleep by the time slept."""

    def __init__(self, start_ms: int = 1_700_000_000_000, step_ms: int = 1) -> None:
        self._now_ms = start_ms
        self._step_ms = step_ms

    def now_ms(self) -> int:
        self._now_ms += self._step_ms
        return self._now_ms

    def sleep(self, seconds: float) -> None:
        self._now_ms += int(seconds * 1000)


class SeededIds:
    """UUIDs from a seed, for tests that replay a run."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def uuid(self) -> str:
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))


class Stopwatch:
    """Seconds since the watch was created, for statistics; no stored data depends on it."""

    def __init__(self) -> None:
        self._started = self._lap_began = time.perf_counter()
        self._laps: dict[str, float] = {}

    @property
    def laps(self) -> Mapping[str, float]:
        """Seconds by the name of the lap, in the order in which they ended."""
        return self._laps

    def lap(self, name: str) -> None:
        """End a lap; it began when the previous lap ended, or when the watch was created."""
        now = time.perf_counter()
        self._laps[name] = now - self._lap_began
        self._lap_began = now

    def seconds(self) -> float:
        """Return the seconds that have passed."""
        return time.perf_counter() - self._started
