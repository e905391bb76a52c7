"""Load modules, compute values and make elements of sequences on first use.

Opening a table needs few modules, and each operation some more. A process that opens a table and reads it
does not load the modules of writes (`lazy_import`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from operator import eq
from typing import TYPE_CHECKING, Any, TypeVar, overload


def lazy_import(names: dict[str, Any], **targets: str) -> None:
    """Define names of a module that are imported when they are used first.

    A type checker has to see the imports themselves:

        if TYPE_CHECKING:
            from drawstring.query.planner import snapshot_scan
        else:
            lazy_import(globals(), snapshot_scan="drawstring.query.planner:snapshot_scan")

    Args:
        names: the module's names.
        targets: by name the full name of a module, or of a module and, after a colon, a function or class.
    """
    for name, target in targets.items():
        names[name] = LazyImport(names, name, target)


class LazyImport:
    """Stands for a module, function or class until it is called or asked for an attribute.

    Args:
        names: where the real thing then takes its place.
        name: its name there.
        target: what to import.
    """

    __slots__ = ("_name", "_names", "_target")

    def __init__(self, names: dict[str, Any], name: str, target: str) -> None:
        self._names = names
        self._name = name
        self._target = target

    def __getattr__(self, name: str) -> Any:
        return getattr(self.load(), name)

    def __call__(self, *given: Any, **named: Any) -> Any:
        return self.load()(*given, **named)

    def load(self) -> Any:
        """Import what is meant."""
        module, _, name = self._target.partition(":")
        found = import_module(module)
        self._names[self._name] = found = getattr(found, name) if name else found
        return found


if TYPE_CHECKING:
    from functools import cached_property  # noqa: TID251
else:

    class cached_property:
        """A property that is computed once; `functools.cached_property` without its lock.

        In Python 3.11 all objects of a class share that lock: while one reads its files for a value, threads
        that work on other tables wait. Two threads that ask one object at once may both compute the value.

        Args:
            function: computes the value of an object.
        """

        def __init__(self, function):
            self.function = function
            self.__doc__ = function.__doc__

        def __set_name__(self, owner, name):
            self.name = name

        def __get__(self, instance, owner=None):
            if instance is None:
                return self
            value = self.function(instance)
            return instance.__dict__.setdefault(self.name, value)


__all__ = ["cached_property"]


T = TypeVar("T")
R = TypeVar("R")


def evenly_spaced(items: Sequence[T], count_max: int) -> list[T]:
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


def lazy_map(function: Callable[[T], R], items: Sequence[T]) -> Sequence[R]:
    """Return what a function makes of each of some items; of a lazy sequence, when it is asked for."""
    if not isinstance(items, LazySequence):
        return [function(each) for each in items]
    return LazySequence(len(items), lambda number: function(items[number]), lambda: map(function, items))
