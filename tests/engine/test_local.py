"""The embedded engine's own promises: order, bounded memory, and groups whole across batches."""

from __future__ import annotations

import gc
import glob
import os
import time
import weakref
from collections.abc import Iterator

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drawstring.engine.grouping import contiguous_groups, first_batches, grouped_ahead, split_by
from drawstring.engine.local import LocalEngine, ordered_map
from drawstring.engine.spill import SpillingGroups
from drawstring.model.files import TaskContext

SCHEMA = pa.schema([("city", pa.string()), ("number", pa.int64())])
KEPT_IN_MEMORY = 1 << 30

pairs = st.lists(
    st.lists(st.tuples(st.sampled_from(["rome", "oslo", None]), st.integers(0, 99)), max_size=6), max_size=6
)


def batches_of(lists: list[list[tuple[str | None, int]]]) -> list[pa.RecordBatch]:
    return [
        pa.RecordBatch.from_pylist([{"city": city, "number": number} for city, number in rows], SCHEMA)
        for rows in lists
    ]


def numbers_by_city(
    batches: Iterator[pa.RecordBatch], context: TaskContext
) -> Iterator[tuple[str, list[int]]]:
    for (city,), rows in contiguous_groups(batches, ("city",)):
        yield city, [number for batch in rows for number in batch.column("number").to_pylist()]


@pytest.fixture
def spill_folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("spill"))


def test_an_exchange_that_outgrows_memory_gives_the_same_groups(spill_folder: str) -> None:
    batches = batches_of([[(city, number) for city in ("rome", "oslo", "bern")] for number in range(50)])
    found = []
    for memory_bytes in (KEPT_IN_MEMORY, 200, 0):
        engine = LocalEngine(threads=2, memory_bytes=memory_bytes, temporary_folder=spill_folder)
        found.append(engine.rows(SCHEMA, batches).exchange(("city",)).run(numbers_by_city))
    assert dict(found[0]) == {city: list(range(50)) for city in ("rome", "oslo", "bern")}
    assert found[1] == found[2] == found[0]
    assert os.listdir(spill_folder) == []


def test_small_groups_of_an_exchange_share_tasks_and_large_ones_do_not() -> None:
    large = pa.RecordBatch.from_pydict({"city": ["rome"] * 40_000, "number": range(40_000)}, SCHEMA)
    small = batches_of([[(f"city {number}", number) for number in range(150)]])

    def groups_of(batches: Iterator[pa.RecordBatch], context: TaskContext) -> Iterator[list[str]]:
        yield [city for (city,), _ in contiguous_groups(batches, ("city",))]

    engine = LocalEngine(threads=2)
    tasks = engine.rows(SCHEMA, [large, *small]).exchange(("city",)).run(groups_of)
    assert [len(each) for each in tasks] == [1, 64, 64, 22]
    assert sorted(city for each in tasks for city in each) == sorted(
        ["rome", *(f"city {n}" for n in range(150))]
    )


def test_a_function_gets_few_groups_with_little_in_them_at_once_each_whole() -> None:
    cities = [f"city {number}" for number in range(30)]
    batches = batches_of([[(city, number) for city in cities] for number in range(3)])
    calls: list[list[str]] = []

    def names(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        groups = [
            (city, pa.Table.from_batches(list(group)))
            for (city,), group in contiguous_groups(rows, ("city",))
        ]
        calls.append([city for city, _ in groups])
        assert all(group.column("number").to_pylist() == [0, 1, 2] for _, group in groups)
        yield pa.record_batch({"city": [city for city, _ in groups]})

    mapped = LocalEngine(threads=2).rows(SCHEMA, batches).exchange(("city",))
    found = mapped.map_batches(names, pa.schema([("city", pa.string())])).distinct("city")
    assert found == sorted(cities)
    assert [sorted(each) for each in calls] == [sorted(cities)]


def test_an_exchange_goes_to_disk_and_clears_up_after_a_failure(spill_folder: str) -> None:
    on_disk: list[str] = []

    def fails(batches: Iterator[pa.RecordBatch], context: TaskContext) -> Iterator[int]:
        on_disk.extend(glob.glob(f"{spill_folder}/drawstring-temporary-spill-*/*.arrow"))
        raise OSError("no space left")

    rows = LocalEngine(memory_bytes=0, temporary_folder=spill_folder).rows(
        SCHEMA, batches_of([[("rome", 1)], [("oslo", 2)]])
    )
    with pytest.raises(OSError, match="no space"):
        rows.exchange(("city",)).run(fails)
    assert on_disk
    assert os.listdir(spill_folder) == []


def test_kept_rows_are_read_again_from_disk_until_released(spill_folder: str) -> None:
    engine = LocalEngine(threads=2, memory_bytes=0, temporary_folder=spill_folder)
    kept = engine.rows(SCHEMA, batches_of([[("rome", number)] for number in range(20)])).persist()
    for _ in range(2):
        assert dict(kept.exchange(("city",)).run(numbers_by_city)) == {"rome": list(range(20))}
    assert len(os.listdir(spill_folder)) == 1
    kept.release()
    assert os.listdir(spill_folder) == []


def test_rows_that_are_read_for_the_last_time_go_as_they_are_read() -> None:
    batches = batches_of([[("rome", number)] for number in range(20)])
    alive = [weakref.ref(batch) for batch in batches]
    kept = LocalEngine(threads=2).rows(SCHEMA, iter(batches)).persist()
    del batches
    assert all(ref() is not None for ref in alive)
    seen: list[int] = []

    def count(rows: Iterator[pa.RecordBatch], context: TaskContext) -> Iterator[int]:
        for batch in rows:
            seen.append(sum(ref() is not None for ref in alive))
            yield batch.num_rows

    same = kept.map_batches(lambda each: each, SCHEMA)
    assert sum(same.consume().run(count)) == 20
    assert seen[-1] < 10
    kept.release()


def test_what_a_join_keeps_goes_with_its_result(spill_folder: str) -> None:
    rows = LocalEngine(memory_bytes=0, temporary_folder=spill_folder).rows(
        SCHEMA, batches_of([[("rome", 1)], [("oslo", 2)]])
    )
    places = pa.schema([("city", pa.string()), ("place", pa.int64())])
    there = pa.record_batch([["oslo"], [7]], schema=places)
    joined = rows.join_keys(("city",), ["table"], lambda _: iter((there,)), places)
    found = joined.run(lambda batches, context: [batch.column("place").to_pylist() for batch in batches])
    assert sorted(map(str, found)) == ["[7]", "[None]"]
    assert os.listdir(spill_folder)
    del joined
    gc.collect()
    assert os.listdir(spill_folder) == []


@given(pairs, st.integers(0, 300))
def test_spilled_groups_keep_their_batches_in_order(
    lists: list[list[tuple[str | None, int]]], limit_bytes: int
) -> None:
    groups = SpillingGroups(SCHEMA, limit_bytes)
    try:
        for rows, batch in zip(lists, batches_of(lists), strict=True):
            groups.add(len(rows), batch)
        for size in groups.groups():
            found = [batch.column("number").to_pylist() for batch in groups.batches(size)]
            assert found == [[number for _, number in rows] for rows in lists if len(rows) == size]
    finally:
        groups.close()


def test_results_come_in_order_however_long_each_takes() -> None:
    def slow_at_first(item: int) -> int:
        time.sleep(0.02 if item % 4 == 0 else 0)
        return item * 2

    assert list(ordered_map(slow_at_first, range(30), 3)) == [item * 2 for item in range(30)]


def test_work_runs_ahead_of_its_reader_by_a_bound() -> None:
    taken = []

    def items() -> Iterator[int]:
        for item in range(1000):
            taken.append(item)
            yield item

    results = ordered_map(lambda item: item, items(), 2)
    assert next(results) == 0
    results.close()
    assert len(taken) <= 6


def test_a_failure_arrives_at_its_place_in_the_order() -> None:
    def fails_at_three(item: int) -> int:
        if item == 3:
            raise ValueError("three")
        return item

    results = ordered_map(fails_at_three, range(10), 2)
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ValueError, match="three"):
        next(results)


def test_a_task_without_an_exchange_has_the_whole_stream_and_all_threads() -> None:
    def count(batches: Iterator[pa.RecordBatch], context: TaskContext) -> Iterator[tuple[int, int]]:
        yield sum(batch.num_rows for batch in batches), context.threads

    rows = LocalEngine(threads=3).rows(SCHEMA, batches_of([[("rome", n)] for n in range(100)]))
    assert rows.run(count) == [(100, 3)]


@given(pairs)
def test_contiguous_groups_join_across_batches(lists: list[list[tuple[str | None, int]]]) -> None:
    rows = sorted((row for each in lists for row in each), key=lambda row: str(row[0]))
    sizes = [len(each) for each in lists]
    cut = [rows[sum(sizes[:n]) : sum(sizes[: n + 1])] for n in range(len(sizes))]
    found = [
        (city, [number for batch in batches for number in batch.column("number").to_pylist()])
        for (city,), batches in contiguous_groups(iter(batches_of(cut)), ("city",))
    ]
    expected: dict[str | None, list[int]] = {}
    for city, number in rows:
        expected.setdefault(city, []).append(number)
    assert found == list(expected.items())


def test_what_is_left_of_a_group_is_skipped() -> None:
    batches = batches_of([[("oslo", 1), ("rome", 2)], [("rome", 3)], [("rome", 4), ("turin", 5)]])
    seen = []
    for (city,), rows in contiguous_groups(iter(batches), ("city",)):
        seen.append((city, next(rows).column("number").to_pylist()))
    assert seen == [("oslo", [1]), ("rome", [2]), ("turin", [5])]


@given(pairs)
def test_splitting_keeps_every_row_once_and_in_order(lists: list[list[tuple[str | None, int]]]) -> None:
    for rows, batch in zip(lists, batches_of(lists), strict=True):
        found = {city: part.column("number").to_pylist() for (city,), part in split_by(batch, ("city",))}
        expected: dict[str | None, list[int]] = {}
        for city, number in rows:
            expected.setdefault(city, []).append(number)
        assert found == expected


def test_texts_that_come_as_two_columns_are_held_once_by_the_groups_too() -> None:
    keys = pa.array([f"key-{number % 7}" for number in range(1000)])
    elsewhere = pa.concat_arrays([pa.array(["before"]), keys]).slice(0, 1000)
    batch = pa.record_batch({"key": keys, "ride": keys, "city": elsewhere.slice(0), "last": elsewhere})
    before = pa.total_allocated_bytes()
    parts = split_by(batch, ("key",))
    held = pa.total_allocated_bytes() - before
    assert held < 3 * keys.nbytes
    for (key,), part in parts:
        rows = [number for number in range(1000) if keys[number].as_py() == key]
        assert part.to_pydict() == batch.take(pa.array(rows)).to_pydict()


def test_columns_that_lie_in_one_memory_at_different_places_stay_apart() -> None:
    texts = pa.array(["a", "b", "a", "c", "b"])
    batch = pa.record_batch({"here": texts.slice(0, 4), "next": texts.slice(1, 4)})
    assert {key: part.to_pydict() for (key,), part in split_by(batch, ("here",))} == {
        "a": {"here": ["a", "a"], "next": ["b", "c"]},
        "b": {"here": ["b"], "next": ["a"]},
        "c": {"here": ["c"], "next": ["b"]},
    }


def test_small_groups_are_known_ahead_and_a_large_one_streams() -> None:
    batch = pa.RecordBatch.from_pydict({"city": ["rome"] * 20_000, "number": range(20_000)}, SCHEMA)
    small = batches_of([[("oslo", 1), ("oslo", 2), ("bern", 3)]])
    stream = iter([*small, batch, batch, batch, *batches_of([[("lima", 4)], [("lima", 5)]])])
    lists = [
        [(city, sum(map(len, rows))) for (city,), rows in groups]
        for groups in grouped_ahead(contiguous_groups(stream, ("city",)))
    ]
    assert lists == [[("oslo", 2), ("bern", 1), ("rome", 60_000)], [("lima", 2)]]


def test_the_first_batches_are_taken_until_there_are_too_many_bytes() -> None:
    batch = pa.RecordBatch.from_pydict({"city": ["rome"] * 100, "number": range(100)}, SCHEMA)
    for bytes_max, taken in [(0, 1), (batch.nbytes - 1, 1), (batch.nbytes, 2), (9 * batch.nbytes, 3)]:
        stream = iter([batch] * 3)
        assert first_batches(stream, bytes_max) == ([batch] * taken, taken * batch.nbytes)
        assert len(list(stream)) == 3 - taken
    assert first_batches(iter([]), 0) == ([], 0)
