"""Time, sleep and ids: the only module that touches the wall clock, uuid or randomness.

Everything else takes a `Clock` or an `Ids`, so that a test can replay a run.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Mapping
from typing import Protocol


class Clock(Protocol):
    """Where time comes from."""

    def now_ms(self) -> int:
        """Return milliseconds since the epoch, UTC."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait for `seconds`."""
        ...


class Ids(Protocol):
    """Where unique names come from."""

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


class SteppingClock:
    """A clock for tests: each look moves it on by one step, sleeping by what was asked."""

    def __init__(self, start_ms: int = 1_700_000_000_000, step_ms: int = 1) -> None:
        self._now_ms = start_ms
        self._step_ms = step_ms

    def now_ms(self) -> int:
        self._now_ms += self._step_ms
        return self._now_ms

    def sleep(self, seconds: float) -> None:
        self._now_ms += int(seconds * 1000)


class SeededIds:
    """UUIDs from a seed, for tests that replay."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def uuid(self) -> str:
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))


class Stopwatch:
    """Seconds since it was made, for statistics; nothing that is stored depends on it."""

    def __init__(self) -> None:
        self._started = self._lap_began = time.perf_counter()
        self._laps: dict[str, float] = {}

    @property
    def laps(self) -> Mapping[str, float]:
        """Seconds by the name of the lap, in the order in which they ended."""
        return self._laps

    def lap(self, name: str) -> None:
        """End a lap, which began with the one before or with the watch."""
        now = time.perf_counter()
        self._laps[name] = now - self._lap_began
        self._lap_began = now

    def seconds(self) -> float:
        """Return the seconds that have passed."""
        return time.perf_counter() - self._started
