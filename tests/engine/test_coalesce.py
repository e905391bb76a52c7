"""Few batches of many small ones."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from drawstring.base.resources import BATCH_ROWS
from drawstring.engine.grouping import coalesced


def numbers(start: int, rows: int) -> pa.RecordBatch:
    return pa.record_batch({"number": pa.array(range(start, start + rows), pa.int64())})


@given(st.lists(st.integers(0, 40), max_size=30), st.integers(8, 400))
def test_no_row_is_lost_and_no_batch_made_that_is_too_large(sizes: list[int], bytes_max: int) -> None:
    starts = [sum(sizes[:place]) for place in range(len(sizes))]
    found = list(coalesced((numbers(*each) for each in zip(starts, sizes, strict=True)), bytes_max=bytes_max))
    assert [number for batch in found for number in batch["number"].to_pylist()] == list(range(sum(sizes)))
    assert all(batch.nbytes <= bytes_max or batch.num_rows in sizes for batch in found)


def test_small_batches_become_one() -> None:
    (batch,) = coalesced(numbers(start, 10) for start in range(0, 1000, 10))
    assert batch["number"].to_pylist() == list(range(1000))


def test_batches_that_do_not_fit_together_are_not_copied() -> None:
    large = [numbers(0, BATCH_ROWS), numbers(BATCH_ROWS, BATCH_ROWS)]
    assert [a is b for a, b in zip(coalesced(iter(large)), large, strict=True)] == [True, True]
