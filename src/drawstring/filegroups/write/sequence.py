"""Texts that count up, `20250101000000000_0_17`, without making a text of every number.

head, the same for ten thousand rows    20250101000000000_0_12
the last four digits                                          3456
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

_RUN_NUMBERS: Final = 10_000
_BORDERS: Final = (0, 10, 100, 1_000, _RUN_NUMBERS)
_DIGITS: Final = tuple(
    np.array([f"{number:0{width}d}".encode() for number in range(end)]).view(f"V{width}")
    for width, end in enumerate(_BORDERS)
    if width
)
"""By number of digits less one, the texts of all numbers that have no more."""


def counted_texts(prefix: str, start: int, rows: int) -> pa.Array:
    """Return `prefix` followed by `start`, `start + 1` and so on.

    Args:
        prefix: what each text begins with.
        start: the first number, not negative.
        rows: how many texts.
    """
    cuts = list(_cuts(start, start + rows))
    runs = [_Run.of(prefix, first, last) for first, last in itertools.pairwise(cuts)]
    offsets = pa.allocate_buffer(4 * (rows + 1))
    texts = pa.allocate_buffer(sum(run.width * len(run.tails) for run in runs))
    ends = np.frombuffer(offsets, np.int32)
    ends[0] = row = end = 0
    for run in runs:
        count = len(run.tails)
        run.write(np.frombuffer(texts, run.layout, count, end))
        ends[row + 1 : row + count + 1] = np.arange(1, count + 1, dtype=np.int32) * run.width + end
        row, end = row + count, end + count * run.width
    return pa.StringArray.from_buffers(rows, offsets, texts)


@dataclass(frozen=True, slots=True)
class _Run:
    """Texts with one head and one length."""

    head: bytes
    tails: np.ndarray[tuple[int], np.dtype[np.void]]

    @staticmethod
    def of(prefix: str, first: int, last: int) -> _Run:
        thousands, number = divmod(first, _RUN_NUMBERS)
        digits = _DIGITS[-1 if thousands else len(str(number)) - 1]
        head = f"{prefix}{thousands}" if thousands else prefix
        return _Run(head.encode(), digits[number : number + last - first])

    @property
    def layout(self) -> np.dtype[np.void]:
        return np.dtype([("head", f"V{len(self.head)}"), ("tail", self.tails.dtype)])

    @property
    def width(self) -> int:
        return len(self.head) + self.tails.itemsize

    def write(self, place: np.ndarray[tuple[int], np.dtype[np.void]]) -> None:
        place["head"] = np.void(self.head)
        place["tail"] = self.tails


def _cuts(start: int, end: int) -> Iterator[int]:
    """Yield the ends of the runs whose texts have one head and one length."""
    yield start
    while start < end:
        border = next((each for each in _BORDERS if each > start), (start // _RUN_NUMBERS + 1) * _RUN_NUMBERS)
        start = min(border, end)
        yield start
