"""The choice of runs that a hybrid compaction merges: few to read, and records are rewritten a few times."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drawstring.services.compaction import runs_to_merge


@given(sizes=st.lists(st.integers(0, 1 << 40), max_size=40), limit=st.integers(2, 12))
def test_fewer_runs_than_the_limit_remain(sizes: list[int], limit: int) -> None:
    count = runs_to_merge(sizes, limit)
    if len(sizes) < limit:
        assert count == 0
    else:
        assert count >= 2
        assert len(sizes) - count + 1 < limit


@pytest.mark.parametrize(
    ("sizes", "count"),
    [
        ([1, 1, 1, 1], 0),
        ([16, 7, 3, 1, 1], 5),
        ([40, 7, 1, 1, 1], 3),
        ([40, 7, 3, 1, 1, 1, 1], 6),
        ([90, 27, 9, 3, 1], 2),
        ([1, 1, 1, 1, 100], 5),
        ([500, 100, 100, 1, 1, 1, 1], 4),
    ],
)
def test_runs_of_about_the_same_size_are_merged(sizes: list[int], count: int) -> None:
    assert runs_to_merge(sizes, 5) == count


@pytest.mark.parametrize("seed", range(5))
def test_records_are_rewritten_a_few_times_only(seed: int) -> None:
    chance, limit, per_compaction = random.Random(seed), 5, 5
    runs: list[int] = []
    flushed = written = 0
    for write in range(1, 2001):
        size = chance.randint(50, 150)
        runs.append(size)
        flushed += size
        assert len(runs) < limit + per_compaction
        if write % per_compaction == 0 and (count := runs_to_merge(runs, limit)):
            merged = sum(runs[-count:])
            written += merged
            runs[-count:] = [merged]
        if write == 100:
            assert written / flushed < 4
    assert written / flushed < 9
