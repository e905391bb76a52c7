"""Sequences whose elements are made when they are asked for."""

from __future__ import annotations

import pytest

from drawstring.base.lazy import LazySequence, lazy_map


def test_an_element_is_made_when_it_is_asked_for() -> None:
    made: list[int] = []

    def make(number: int) -> int:
        made.append(number)
        return 10 * number

    items = lazy_map(str, LazySequence(4, make))
    assert (len(items), made) == (4, [])
    assert (items[1], items[-1], items[1:3]) == ("10", "30", ["10", "20"])
    assert made == [1, 3, 1, 2]
    assert list(items) == ["0", "10", "20", "30"]
    with pytest.raises(IndexError):
        items[4]


def test_a_lazy_sequence_equals_a_list_of_equal_elements() -> None:
    items = LazySequence(2, lambda number: 10 * number)
    assert items == [0, 10]
    assert items != [0, 11]
    assert items != [0]
    assert items != 5


def test_of_a_list_each_element_is_made_at_once() -> None:
    assert lazy_map(str, [1, 2]) == ["1", "2"]
