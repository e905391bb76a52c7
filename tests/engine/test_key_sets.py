"""The distinct keys of rows, and what becomes of too many of them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from drawstring.engine.grouping import (
    KeyRange,
    KeySets,
    gather_keys,
    keys_size_bytes,
    matching,
    union_of_parts,
)

ON = ("key", "city")


def rows_of(*pairs: tuple[str | None, str]) -> pa.RecordBatch:
    keys, cities = zip(*pairs, strict=True)
    return pa.record_batch({"key": pa.array(keys, pa.string()), "city": pa.array(cities, pa.string())})


def content(sets: KeySets) -> dict[tuple[object, ...], object]:
    return {
        group: found.keys if isinstance(found.keys, KeyRange) else sorted(found.keys.to_pylist())
        for group, found in sets.items()
    }


FIRST = rows_of(("b", "rome"), ("a", "rome"), (None, "rome"), ("b", "rome"), ("a", "oslo"), (None, "lima"))
SECOND = rows_of(("c", "rome"), ("a", "rome"))


def test_keys_are_told_once_for_each_group_and_rows_without_a_key_left_out() -> None:
    assert content(gather_keys(iter([FIRST, SECOND]), ON, 100)) == {
        ("rome",): ["a", "b", "c"],
        ("oslo",): ["a"],
    }
    assert content(gather_keys(iter([SECOND]), ("key",), 100)) == {(): ["a", "c"]}
    assert gather_keys(iter([]), ON, 100) == {}


@pytest.mark.parametrize(("of_a_part", "of_all"), [(0, 1000), (1000, 10)], ids=["in one part", "in all"])
def test_too_many_keys_are_told_by_their_ends(of_a_part: int, of_all: int) -> None:
    parts = [gather_keys(iter([batch]), ON, of_a_part) for batch in (FIRST, SECOND)]
    sets = union_of_parts(parts, of_all)
    assert content(sets) == {("rome",): KeyRange("a", "c", True), ("oslo",): KeyRange("a", "a", True)}
    assert keys_size_bytes(sets) is None


def test_one_part_with_too_many_keys_leaves_the_ends_of_all() -> None:
    sets = union_of_parts([gather_keys(iter([FIRST]), ON, 0), gather_keys(iter([SECOND]), ON, 1000)], 1000)
    assert content(sets)["rome",] == KeyRange("a", "c", True)


def test_keys_of_several_parts_come_together() -> None:
    sets = union_of_parts([gather_keys(iter([batch]), ON, 1000) for batch in (FIRST, SECOND)], 1000)
    assert content(sets) == {("rome",): ["a", "b", "c"], ("oslo",): ["a"]}
    assert 0 < (keys_size_bytes(sets) or 0) < 100


def test_ends_say_where_java_sorts_otherwise() -> None:
    batch = rows_of(("\uffee", "rome"), ("\U0001f600", "rome"))
    (found,) = gather_keys(iter([batch]), ON, 0).values()
    assert not found.ends.sorts_like_java


def test_rows_match_by_key_and_group() -> None:
    sets = gather_keys(iter([FIRST]), ON, 1000)
    asked = rows_of(("a", "oslo"), ("b", "oslo"), ("b", "rome"), (None, "rome"), ("b", "lima"))
    found = [row for batch in matching(iter([asked]), ON, sets) for row in batch.to_pylist()]
    assert found == [{"key": "a", "city": "oslo"}, {"key": "b", "city": "rome"}]
