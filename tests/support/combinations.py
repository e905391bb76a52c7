"""Few combinations of parameters: those in which any two values come together, or each value comes once."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Container, Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import pytest

Combination = TypeVar("Combination", bound=tuple[Hashable, ...])
Case = TypeVar("Case")


def covering(cases: Sequence[Case], values_of: Callable[[Case], Collection[Hashable]]) -> list[Case]:
    """Choose cases until each value is there, each time the first one with most values that are missing."""
    named = [set(values_of(case)) for case in cases]
    missing = set().union(*named)
    chosen = []
    while missing:
        best = max(range(len(cases)), key=lambda at: len(named[at] & missing))
        chosen.append(cases[best])
        missing -= named[best]
    return chosen


def first_of_all(cases: Sequence[Case], values_of: Callable[[Case], Collection[Hashable]]) -> list[Any]:
    """Return cases as parameters, of which those are long that no value needs."""
    return others_long(cases, covering(cases, values_of))


def others_long(cases: Iterable[Case], short: Container[Case]) -> list[Any]:
    """Return cases as parameters, those that are not short marked as long; a tuple has several arguments."""
    return [
        case if case in short else pytest.param(*_arguments(case), marks=pytest.mark.long) for case in cases
    ]


def _arguments(case: object) -> tuple[object, ...]:
    return case if isinstance(case, tuple) else (case,)


def pairwise(every: Sequence[Combination]) -> list[Combination]:
    """Choose from all combinations, each time the one with most pairs that are still missing."""
    numbers: dict[object, int] = {}

    def mask(combination: Combination) -> int:
        pairs = itertools.combinations(enumerate(combination), 2)
        return sum(1 << numbers.setdefault(pair, len(numbers)) for pair in pairs)

    masks = [mask(each) for each in every]
    missing = (1 << len(numbers)) - 1
    chosen = []
    while missing:
        best = max(range(len(every)), key=lambda at: (masks[at] & missing).bit_count())
        chosen.append(every[best])
        missing &= ~masks[best]
    return chosen


def pairs_first(**dimensions: Mapping[str, object]) -> pytest.MarkDecorator:
    """Parametrize a test by all combinations, of which those that pairs do without are long.

    Args:
        dimensions: by the name of an argument its values, by their ids.
    """
    names = list(itertools.product(*dimensions.values()))
    short = set(pairwise(names))
    cases = [
        pytest.param(
            *(values[each] for values, each in zip(dimensions.values(), chosen, strict=True)),
            id="-".join(chosen),
            marks=[] if chosen in short else [pytest.mark.long],
        )
        for chosen in names
    ]
    return pytest.mark.parametrize(tuple(dimensions), cases)
