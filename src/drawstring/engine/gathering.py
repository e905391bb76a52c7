r"""Rows in any order, gathered by group in bounded memory, while several threads read and write them.

add ── by group ──> held, up to a bound ── all read ──> rest: what there is of each group, together
                     ├─ groups of many rows ──> a portion each, to be written now
                     └─ the others ───────────> copied together, on disk beyond a bound

Rows of a small group are one portion, wherever they were in the stream. A large group has several, and
those of it that are ready at the same time are for several threads.
"""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import Any, Final

import pyarrow as pa

from drawstring.base import limits
from drawstring.engine.spill import SpillingGroups

_HELD_SHARE: Final = 3 / 8
_FEW_SHARE: Final = 1 / 4
"""Shares of the memory: rows that are held, as many again that are being written, and copies."""

_PORTION_SHARE: Final = 1 / 64
"""Share of the memory that a portion has at least, unless it is the rest of its group."""

_PORTION_BYTES_MIN: Final = 64 << 10
"""Bytes below which a portion is not worth a row group, however small the memory is."""

_GROUPS_APART_MAX: Final = 32
"""Groups that have portions before all rows are read: whoever writes these has a file of each open."""

_COLUMN_BYTES: Final = 200
"""About what a column of a batch takes in memory besides its values."""


@dataclass(frozen=True, slots=True)
class Portion:
    """Rows of one group.

    Attributes:
        group: the group.
        batches: the rows, which can be read once.
        size_bytes: bytes that they take in memory now.
    """

    group: str
    batches: Iterator[pa.RecordBatch]
    size_bytes: int


class Gathering:
    """Gathers rows by group. Several threads may use it.

    Args:
        memory_bytes: bytes of rows in memory, with those of portions that are being written.
        threads: how many threads write portions.
    """

    def __init__(self, memory_bytes: int, threads: int) -> None:
        self._threads = threads
        self._held_max = int(memory_bytes * _HELD_SHARE)
        self._few_max = int(memory_bytes * _FEW_SHARE)
        self._portion_min = max(_PORTION_BYTES_MIN, int(memory_bytes * _PORTION_SHARE))
        self._changed = threading.Condition()
        self._held: dict[str, list[pa.RecordBatch]] = defaultdict(list)
        self._sizes: dict[str, int] = defaultdict(int)
        self._held_bytes = 0
        self._leaving_bytes = 0
        self._ready: deque[Portion] = deque()
        self._apart: set[str] = set()
        self._few: SpillingGroups | None = None
        self.is_stopped = False

    def add(self, parts: Iterable[tuple[tuple[Any, ...], pa.RecordBatch]]) -> None:
        """Take rows of some groups."""
        sized = [(group, rows, _size_bytes(rows)) for (group,), rows in parts]
        with self._changed:
            for group, rows, size_bytes in sized:
                self._held[group].append(rows)
                self._sizes[group] += size_bytes
                self._held_bytes += size_bytes
            if self._held_bytes > self._held_max:
                self._make_room()

    def next_ready(self) -> Portion | None:
        """Return a portion that is to be written now; None if there is none and room for more rows."""
        with self._changed:
            while not (self._ready or self.is_stopped) and self._is_full():
                self._changed.wait()
            return self._ready.popleft() if self._ready else None

    def written(self, portion: Portion) -> None:
        """Take note that a portion was written."""
        with self._changed:
            self._leaving_bytes -= portion.size_bytes
            self._changed.notify_all()

    def stop(self) -> None:
        """Let no thread wait any longer, after a failure."""
        with self._changed:
            self.is_stopped = True
            self._changed.notify_all()

    def rest(self) -> list[Portion]:
        """Return all rows that are left, the largest portions first."""
        few = self._few.groups() if self._few else []
        groups = [str(group) for group in dict.fromkeys([*few, *self._held])]
        portions = [*self._ready, *(portion for group in groups for portion in self._rest_of(group))]
        return sorted(portions, key=lambda portion: -portion.size_bytes)

    def close(self) -> None:
        """Free the rows, and delete what is on disk."""
        self._held.clear()
        if self._few is not None:
            self._few.close()

    def _is_full(self) -> bool:
        return self._leaving_bytes > 0 and self._held_bytes + self._leaving_bytes > 2 * self._held_max

    def _rest_of(self, group: str) -> Iterator[Portion]:
        held = self._held.pop(group, [])
        stored = self._few.batches(group) if self._few else iter(())
        size_bytes = self._sizes.pop(group, 0)
        first, *others = _portions(
            group, held, size_bytes, min(self._threads, size_bytes // limits.in_force.share_bytes)
        )
        yield replace(first, batches=chain(stored, first.batches))
        yield from others

    def _make_room(self) -> None:
        """Make portions of all groups with many rows, and copy the others: so batches of both are freed."""
        share_bytes = max(
            self._portion_min, min(limits.in_force.share_bytes, self._held_max // self._threads)
        )
        for group, rows in self._held.items():
            size_bytes = self._sizes[group]
            if size_bytes < self._portion_min or not self._is_apart(group):
                self._copy(group, rows)
                continue
            for portion in _portions(group, rows, size_bytes, size_bytes // share_bytes):
                self._ready.append(portion)
                self._leaving_bytes += portion.size_bytes
        self._held.clear()
        self._sizes.clear()
        self._held_bytes = 0
        self._changed.notify_all()

    def _is_apart(self, group: str) -> bool:
        if len(self._apart) < _GROUPS_APART_MAX:
            self._apart.add(group)
        return group in self._apart

    def _copy(self, group: str, rows: list[pa.RecordBatch]) -> None:
        if self._few is None:
            self._few = SpillingGroups(rows[0].schema, self._few_max)
        self._few.add(group, pa.concat_batches(rows))


def _portions(group: str, batches: list[pa.RecordBatch], size_bytes: int, count: int) -> list[Portion]:
    """Divide the rows of a group: into one portion at least, and into no more than there are batches."""
    count = max(1, min(count, len(batches)))
    cuts = [number * len(batches) // count for number in range(count + 1)]
    return [
        Portion(group, _freed(batches[first:last]), size_bytes // count) for first, last in pairwise(cuts)
    ]


def _freed(batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches, of which none is kept."""
    batches.reverse()
    while batches:
        yield batches.pop()


def _size_bytes(batch: pa.RecordBatch) -> int:
    return int(batch.nbytes) + _COLUMN_BYTES * int(batch.num_columns)
