"""Merge of sorted runs by fences: a few windows at a time, whatever the size of the runs.

Every run is read window by window, one or two of which are in memory. A fence is the smallest of the last
keys in memory of the runs that go on: no key up to it can come in a later window (of a run that may have rows
of one key in two windows it is the last key but one). What all windows have up to the fence is merged at once
by Arrow kernels, and after that the next windows are read. Runs whose keys are spread alike advance by about
a window with every fence, for each has more than a window left. One window is enough for the run that has
most of the rows, which then is used up as a whole.

    run 0   [a   d   f] [g   h]      ...   fence h: the parts up to h
    run 1   [b   e] [f   k]          ...   then the next fence, with [k] of run 1 and what follows it
    run 2   [c   z]                        ends here, so z is no fence

Files that follow each other in merge order and have no keys in common are one run (`in_runs`), as the log
files of one large write are.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Generic, Protocol, Self, TypeVar

import pyarrow as pa

from drawstring.base.errors import CorruptTableError
from drawstring.filegroups.read.key_order import AscendingKeys

BASE_WINDOW_BYTES: Final = 16 << 20
"""Bytes of a window of a base file, from which on it ends."""

WINDOWS_HELD: Final = 2
"""Windows of a small run in memory: with one, the rest of a window would be the bound of its run."""


UNSORTED: Final = (
    "A file of the table is not sorted by record key, as hoodie.table.storage.layout=lsm_tree promises. Set"
    " the layout to default (drawstring set-layout), then compact the table."
)


class Window(Protocol):
    """Rows of a run."""

    def slice(self, offset: int, length: int) -> Self:
        """Return some of the rows, without a copy."""
        ...


T = TypeVar("T")
W = TypeVar("W", bound=Window)


class SortedRun(Generic[W]):
    """A run, of which some windows are in memory.

    Args:
        files: path and windows of each file of the run, the one with the lowest keys first; windows without
            rows are left out.
        keys: returns the record keys of a window.
        windows_held: how many windows are in memory.
        unsorted: what to say if it is not sorted.
        once: whether no key may come again.
        splits_keys: whether rows of one key may be in several windows, which follow each other.
    """

    def __init__(
        self,
        files: Iterable[tuple[str, Iterator[W]]],
        keys: Callable[[W], pa.Array],
        windows_held: int = WINDOWS_HELD,
        unsorted: str = UNSORTED,
        *,
        once: bool = False,
        splits_keys: bool = False,
    ) -> None:
        self._windows = ((path, window) for path, windows in files for window in windows)
        self._keys_of = keys
        self._windows_held = windows_held
        self._unsorted = unsorted
        self._order = AscendingKeys(once=once)
        self._splits_keys = splits_keys
        self._held: deque[tuple[W, pa.Array]] = deque()
        self._taken: str | None = None
        self._goes_on = True

    def fill(self) -> bool:
        """Read windows until as many are in memory as may be, with a bound; return whether there are any."""
        while self._goes_on and (len(self._held) < self._windows_held or self._last_whole() is None):
            read = self._read()
            if read is None:
                self._goes_on = False
            else:
                self._held.append(read)
        return bool(self._held)

    @property
    def bound(self) -> str | None:
        """The last key in memory of which no row can follow, if the run may go on after it."""
        return self._last_whole() if self._goes_on else None

    def _last_whole(self) -> str | None:
        """Return the last key in memory of which no row can follow; None if there is none."""
        last = str(self._held[-1][1][-1])
        if not self._splits_keys:
            return last
        counts = ((keys, bisect_left(keys, last, key=str)) for _, keys in reversed(self._held))
        return next((str(keys[count - 1]) for keys, count in counts if count), None)

    def take(self, fence: str | None) -> list[W]:
        """Take the rows with keys up to a fence, which is not beyond `bound`; all without a fence."""
        taken: list[W] = []
        self._taken = fence
        while self._held:
            window, keys = self._held.popleft()
            count = len(keys) if fence is None else bisect_right(keys, fence, key=str)
            if count:
                taken.append(window.slice(0, count))
            if count < len(keys):
                self._held.appendleft((window.slice(count, len(keys) - count), keys[count:]))
                break
        return taken

    def _read(self) -> tuple[W, pa.Array] | None:
        for path, window in self._windows:
            keys = self._keys_of(window).cast(pa.string())
            if not self._order.go_on(keys) or self._comes_late(keys):
                raise CorruptTableError(self._unsorted, path=path)
            if len(keys):
                return window, keys
        return None

    def _comes_late(self, keys: pa.Array) -> bool:
        """Tell whether a window begins with a key that was merged already, since the last one ended in it."""
        return self._taken is not None and len(keys) > 0 and str(keys[0]) <= self._taken


def fenced(runs: Sequence[SortedRun[W]]) -> Iterator[list[list[W]]]:
    """Yield, fence by fence, the rows of each run up to it.

    Args:
        runs: the runs, in the order in which their versions of a key are merged.
    """
    while True:
        has_rows = [run.fill() for run in runs]
        if not any(has_rows):
            return
        bounds = [run.bound for run in runs]
        fence = min((each for each in bounds if each is not None), default=None)
        yield [run.take(fence) for run in runs]


def in_runs(files: Sequence[T], bounds: Callable[[T], tuple[str, str] | None]) -> list[list[T]]:
    """Divide files into runs; those of a run are ordered by their keys, of which no two have one in common.

    Args:
        files: the files, in merge order.
        bounds: returns a lower bound of the keys in a file and an upper one; None if that is not known.
    """
    runs: list[list[T]] = []
    ranges: list[tuple[str, str]] = []  # of the last run, ascending
    for file in files:
        found = bounds(file)
        place = 0 if found is None else bisect_right(ranges, found)
        is_apart = (
            found is not None
            and bool(ranges)
            and (place == 0 or ranges[place - 1][1] < found[0])
            and (place == len(ranges) or found[1] < ranges[place][0])
        )
        if not is_apart:
            runs.append([])
            ranges, place = [], 0
        runs[-1].insert(place, file)
        if found is not None:
            ranges.insert(place, found)
    return runs


def gathered(
    batches: Iterable[pa.RecordBatch], keys: Callable[[pa.RecordBatch], pa.Array], window_bytes: int
) -> Iterator[pa.Table]:
    """Yield batches in few windows, each of which costs a merge with all other runs.

    Args:
        batches: the rows of a run.
        keys: returns their record keys; those of one key are in one window.
        window_bytes: bytes from which on a window ends.
    """
    held: list[pa.RecordBatch] = []
    held_bytes = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        if held and held_bytes >= window_bytes and keys(held[-1])[-1] != keys(batch)[0]:
            yield pa.Table.from_batches(held)
            held, held_bytes = [], 0
        held.append(batch)
        held_bytes += batch.nbytes
    if held:
        yield pa.Table.from_batches(held)
