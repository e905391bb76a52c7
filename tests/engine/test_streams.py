"""Sources that are read at once come out in their order, and leave no thread behind."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pyarrow as pa
import pytest

from drawstring.base.resources import map_in_threads
from drawstring.engine.local import BATCHES_AHEAD_MAX, SOURCES_AHEAD, stream

THREADS = (1, 2, 5)


def batch_of(number: int) -> pa.RecordBatch:
    return pa.record_batch({"number": [number]})


def numbers(batches: Iterator[pa.RecordBatch]) -> list[int]:
    return [number for batch in batches for number in batch["number"].to_pylist()]


def readers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "drawstring-read"]


@pytest.mark.parametrize("threads", THREADS)
def test_batches_come_in_the_order_of_their_sources(threads: int) -> None:
    def read(source: int) -> Iterator[pa.RecordBatch]:
        yield from (batch_of(10 * source + at) for at in range(source))

    found = numbers(stream(range(5), read, threads))
    assert found == [10 * source + at for source in range(5) for at in range(source)]
    assert readers() == []


@pytest.mark.parametrize("threads", THREADS)
def test_an_error_of_a_source_comes_after_what_was_read_before_it(threads: int) -> None:
    def read(source: int) -> Iterator[pa.RecordBatch]:
        yield batch_of(source)
        if source == 1:
            raise ValueError("one")

    found = []
    with pytest.raises(ValueError, match="one"):
        for batch in stream(range(4), read, threads):
            found += numbers(iter([batch]))
    assert (found, readers()) == ([0, 1], [])


@pytest.mark.parametrize("threads", THREADS)
def test_a_stream_given_up_stops_its_threads_which_are_ahead_by_a_bound(threads: int) -> None:
    read_by = []

    def read(source: int) -> Iterator[pa.RecordBatch]:
        for number in range(1000):
            read_by.append(threading.current_thread().name)
            yield batch_of(number)

    batches = stream(range(9), read, threads)
    next(batches)
    batches.close()
    assert readers() == []
    assert len(read_by) <= threads * (SOURCES_AHEAD * BATCHES_AHEAD_MAX + 2)
    assert (set(read_by) == {"drawstring-read"}) == (threads > 1)


def test_a_slow_source_holds_up_one_thread_and_no_source_has_a_thread_of_its_own() -> None:
    others_are_read = threading.Event()
    read_by: dict[int, int] = {}

    def read(source: int) -> Iterator[pa.RecordBatch]:
        if source == 0:
            assert others_are_read.wait(timeout=60)
        read_by[source] = threading.get_ident()
        yield batch_of(source)
        if source == 3:
            others_are_read.set()

    assert numbers(stream(range(40), read, 2)) == list(range(40))
    assert read_by[1] == read_by[2] == read_by[3]
    assert len(set(read_by.values())) == 2


@pytest.mark.parametrize("threads", THREADS)
def test_results_of_tasks_come_in_the_order_of_their_items(threads: int) -> None:
    together = threading.Barrier(threads)

    def task(item: int) -> int:
        if item < threads:
            together.wait(timeout=60)
        return item * 2

    assert map_in_threads(task, range(9), threads) == [item * 2 for item in range(9)]
    assert map_in_threads(task, [], threads) == []


@pytest.mark.parametrize("threads", THREADS)
def test_of_tasks_that_fail_the_first_one_tells_and_no_more_are_begun(threads: int) -> None:
    begun = []

    def task(item: int) -> int:
        begun.append(item)
        if item >= 3:
            raise ValueError(str(item))
        return item

    with pytest.raises(ValueError, match="3"):
        map_in_threads(task, range(1000), threads)
    assert len(begun) <= 3 + threads
