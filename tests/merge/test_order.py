"""Which version of a record survives."""

from __future__ import annotations

import math
from decimal import Decimal
from functools import cmp_to_key
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drawstring.merge.record_version import rank, winners, wins_over


def survivors(keys: list[str], *columns: list[Any], commit_deletes: list[bool] | None = None) -> list[int]:
    deletes = None if commit_deletes is None else np.array(commit_deletes, dtype=bool)
    return winners(pa.array(keys), [pa.array(column) for column in columns] or None, deletes).tolist()


def test_the_later_version_wins_by_commit_time() -> None:
    assert survivors(["a", "b", "a", "c"]) == [1, 2, 3]


def test_the_greater_ordering_value_wins_and_a_tie_goes_to_the_later() -> None:
    assert survivors(["a", "a", "a", "b", "b"], [5, 9, 9, 2, 1]) == [2, 3]


def test_a_null_ordering_value_is_the_lowest() -> None:
    assert survivors(["a", "a", "b", "b"], [None, -5, 1, None]) == [1, 2]


def test_several_ordering_columns_compare_one_after_the_other() -> None:
    assert survivors(["a", "a", "a"], ["x", "y", "y"], [9, 1, 2]) == [2]


def test_a_commit_time_delete_wins_over_what_came_before_and_loses_to_what_comes_after() -> None:
    keys = ["a", "a", "b", "b", "b"]
    assert survivors(keys, [9, None, 9, None, 1], commit_deletes=[False, True, False, True, False]) == [1, 4]


@pytest.mark.parametrize(
    "values",
    [
        pa.array([True, False]),
        pa.array([Decimal("1.50"), Decimal("1.49")]),
        pa.array([b"\x02", b"\x01\xff"]),
        pa.array(["b", "a"]),
        pa.array([2, 1], pa.date32()),
        pa.array([2, 1], pa.timestamp("ms", "UTC")),
        pa.array([math.nan, math.inf]),
        pa.array([0.0, -0.0]),
        pa.array([-1.0, -2.0], pa.float32()),
        pa.array(["b", "a"]).dictionary_encode(),
    ],
    ids=lambda values: str(values.type),
)
def test_values_of_any_type_rank_in_their_order(values: pa.Array) -> None:
    first, second = rank([values]).tolist()
    assert first > second


def test_the_two_sides_compare_even_when_one_is_narrower() -> None:
    newer, older = pa.array([5, 3, None], pa.int64()), pa.array([4, 3, 3], pa.int32())
    assert wins_over([newer], [older]).tolist() == [True, True, False]


def test_no_rows_have_no_winners() -> None:
    assert winners(pa.array([], pa.string()), [pa.array([], pa.int64())]).tolist() == []


VERSIONS = st.lists(
    st.tuples(st.sampled_from("abc"), st.none() | st.integers(-3, 3), st.booleans()), max_size=30
)


def fold(versions: list[tuple[str, int | None, bool]]) -> list[int]:
    """Lay each version over what the earlier ones left, one by one."""
    left: dict[str, int] = {}

    def compare(one: int | None, other: int | None) -> int:
        low = -100
        return (low if one is None else one) - (low if other is None else other)

    order = cmp_to_key(compare)
    for number, (key, value, is_commit_time_ordering_delete) in enumerate(versions):
        old = left.get(key)
        if (
            old is None
            or is_commit_time_ordering_delete
            or versions[old][2]
            or order(value) >= order(versions[old][1])
        ):
            left[key] = number
    return sorted(left.values())


@given(VERSIONS)
def test_winners_are_those_of_laying_one_over_the_other(versions: list[tuple[str, int | None, bool]]) -> None:
    found = winners(
        pa.array([key for key, _, _ in versions], pa.string()),
        [pa.array([None if delete else value for _, value, delete in versions], pa.int64())],
        np.array([delete for _, _, delete in versions], dtype=bool),
    )
    assert found.tolist() == fold(versions)
