"""Joins on keys that come several times, on either side."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drawstring.engine.joins import left_pairs
from drawstring.engine.protocol import Engine, Rows
from drawstring.model.files import TaskContext

Started = tuple[Engine, Callable[[pa.Table], Rows]]
FOUND = pa.schema([("key", pa.string()), ("city", pa.string()), ("file_id", pa.string())])


def places(source: tuple[str, list[tuple[str, str]]]) -> Iterator[pa.RecordBatch]:
    file_id, pairs = source
    for key, city in pairs:
        yield pa.RecordBatch.from_pylist([{"key": key, "city": city, "file_id": file_id}], FOUND)


def read(batches: Iterator[pa.RecordBatch], context: TaskContext) -> Iterator[list[tuple[object, ...]]]:
    for batch in batches:
        yield [tuple(row.values()) for row in batch.to_pylist()]


@pytest.mark.parametrize("narrow", [True, False])
@pytest.mark.parametrize(
    ("keys", "sources", "expected"),
    [
        (["a", "b", "a"], [("f1", ["a"])], [("a", 0, "f1"), ("a", 2, "f1"), ("b", 1, None)]),
        (["a", "b"], [("f1", ["a"]), ("f2", ["a", "c"])], [("a", 0, "f1"), ("a", 0, "f2"), ("b", 1, None)]),
        (["c", "b"], [("f1", ["b", "b"])], [("b", 1, "f1"), ("b", 1, "f1"), ("c", 0, None)]),
    ],
    ids=["on the left", "in two sources", "in one source"],
)
def test_a_join_pairs_every_copy_of_a_key(
    started: Started,
    keys: list[str],
    sources: list[tuple[str, list[str]]],
    expected: list[tuple[str, int, str | None]],
    narrow: bool,
) -> None:
    _, make = started
    numbers = pa.array(range(len(keys)), pa.int64())
    kept = make(pa.table({"key": keys, "city": ["rome"] * len(keys), "number": numbers})).persist()
    named = [(file_id, [(key, "rome") for key in known] + [("a", "oslo")]) for file_id, known in sources]
    joined = kept.join_keys(("key", "city"), named, places, FOUND, narrow=narrow)
    found = [(key, number, file_id) for rows in joined.run(read) for key, _, number, file_id in rows]
    kept.release()
    assert sorted(found, key=str) == sorted(expected, key=str)


@given(st.lists(st.integers(-1, 5), max_size=12), st.lists(st.integers(0, 5), max_size=12))
def test_pairs_are_those_of_a_nested_loop(left: list[int], right: list[int]) -> None:
    expected = []
    for row, key in enumerate(left):
        partners = [number for number, other in enumerate(right) if other == key]
        expected += [(row, number) for number in partners or [-1]]
    rows, partners = left_pairs(np.array(left, dtype=np.int64), np.array(right, dtype=np.int64), 6)
    assert list(zip(rows.tolist(), partners.tolist(), strict=True)) == expected
