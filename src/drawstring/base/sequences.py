"""Sequences whose elements are made when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import eq
from typing import TypeVar, overload

T = TypeVar("T")
R = TypeVar("R")


def spread(items: Sequence[T], count_max: int) -> list[T]:
    """Return an evenly spread sample of a sequence, first and last element included.

    Args:
        items: the sequence.
        count_max: largest number of elements to return.
    """
    count = min(len(items), count_max)
    return [items[number * (len(items) - 1) // max(count - 1, 1)] for number in range(count)]


class LazySequence(Sequence[T]):
    """A sequence that makes an element each time it is asked for; it equals a sequence of equal elements.

    Args:
        count: number of elements.
        make: makes the element with a number.
        each: makes all elements, in order; None to make one after the other.
    """

    def __init__(
        self, count: int, make: Callable[[int], T], each: Callable[[], Iterator[T]] | None = None
    ) -> None:
        self._count = count
        self._make = make
        self._each = each or (lambda: map(make, range(count)))

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, number: int) -> T: ...

    @overload
    def __getitem__(self, number: slice) -> list[T]: ...

    def __getitem__(self, number: int | slice) -> T | list[T]:
        places = range(self._count)[number]
        return self._make(places) if isinstance(places, int) else [self._make(each) for each in places]

    def __iter__(self) -> Iterator[T]:
        return self._each()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(other) == len(self) and all(map(eq, self, other))

    __hash__ = None  # type: ignore[assignment]


def mapped(function: Callable[[T], R], items: Sequence[T]) -> Sequence[R]:
    """Return what a function makes of each of some items; of a lazy sequence, when it is asked for."""
    if not isinstance(items, LazySequence):
        return [function(each) for each in items]
    return LazySequence(len(items), lambda number: function(items[number]), lambda: map(function, items))
