"""Merge of sorted runs by fences: a few windows at a time, whatever the size of the runs.

Every run is read window by window. A fence is the smallest of the last keys of the windows after which a run
goes on: no key up to it can come in a later window. What all windows have up to the fence is merged at once
by Arrow kernels, and the windows that are used up give way to the next ones.

    run 0   [a   d   f]      [g ...        fence f: the parts up to f
    run 1   [b   f   k]      [m ...        then k, of [g ... in run 0 and what is left of run 1
    run 2   [c   z]                        ends here, so z is no fence
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, Protocol, Self, TypeVar

import pyarrow as pa

from drawstring.base.errors import CorruptTableError
from drawstring.filegroups.read.key_order import AscendingKeys


class Window(Protocol):
    """Rows of a run."""

    def slice(self, offset: int, length: int) -> Self:
        """Return some of the rows, without a copy."""
        ...


W = TypeVar("W", bound=Window)


class SortedRun(Generic[W]):
    """A run: one window and the one after it are in memory.

    Args:
        windows: the rows; windows without rows are left out.
        keys: returns the record keys of a window.
        path: of the file, for errors.
    """

    def __init__(self, windows: Iterator[W], keys: Callable[[W], pa.Array], path: str) -> None:
        self._windows = windows
        self._keys_of = keys
        self._path = path
        self._order = AscendingKeys()
        self._current, self._keys = self._read()
        self._next, self._next_keys = self._read()

    @property
    def is_exhausted(self) -> bool:
        """Whether all rows were taken."""
        return self._current is None

    @property
    def bound(self) -> str | None:
        """The last key of the window if the run goes on after it."""
        return None if self._next is None else str(self._keys[-1])

    def take(self, fence: str | None) -> W | None:
        """Take the rows with keys up to a fence, which is not beyond `bound`; all without a fence."""
        if self._current is None:
            return None
        count = len(self._keys) if fence is None else bisect_right(self._keys, fence, key=str)
        if count == 0:
            return None
        taken = self._current
        if count == len(self._keys):
            self._current, self._keys = self._next, self._next_keys
            self._next, self._next_keys = self._read() if self._next is not None else (None, self._keys[:0])
            return taken
        self._current = taken.slice(count, len(self._keys) - count)
        self._keys = self._keys[count:]
        return taken.slice(0, count)

    def _read(self) -> tuple[W | None, pa.Array]:
        for window in self._windows:
            keys = self._keys_of(window).cast(pa.string())
            if not self._order.go_on(keys):
                raise CorruptTableError(
                    "A file of the table is not sorted by record key, as hoodie.table.storage.layout=lsm_tree"
                    " promises. Set the layout to default (drawstring set-layout), then compact the table.",
                    path=self._path,
                )
            if len(keys):
                return window, keys
        return None, pa.array([], pa.string())


def fenced(runs: Sequence[SortedRun[W]]) -> Iterator[list[W | None]]:
    """Yield, fence by fence, the rows of each run up to it; None for a run without such rows.

    Args:
        runs: the runs, in the order in which their versions of a key are merged.
    """
    while not all(run.is_exhausted for run in runs):
        bounds = [run.bound for run in runs]
        fence = min((each for each in bounds if each is not None), default=None)
        yield [run.take(fence) for run in runs]
