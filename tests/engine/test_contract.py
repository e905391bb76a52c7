"""What every engine does alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from drawstring.base.errors import InvalidError
from drawstring.engine.grouping import contiguous_groups
from drawstring.engine.protocol import Engine, Rows
from drawstring.model.files import TaskContext

Started = tuple[Engine, Callable[[pa.Table], Rows]]
Batches = Iterator[pa.RecordBatch]

RIDES = pa.table(
    {
        "key": [f"k{number}" for number in range(1000)],
        "city": [("amsterdam", "berlin", "chennai")[number % 3] for number in range(1000)],
        "fare": pa.array([number / 4 for number in range(1000)]),
        "number": pa.array(range(1000), pa.int64()),
    }
)


def double(batches: Batches) -> Batches:
    for batch in batches:
        yield batch.set_column(2, "fare", pc.multiply(batch.column("fare"), 2.0))


def all_rows(batches: Batches, context: TaskContext) -> Iterator[list[dict[str, object]]]:
    for batch in batches:
        yield batch.to_pylist()


def row_count(batches: Batches, context: TaskContext) -> Iterator[int]:
    yield sum(batch.num_rows for batch in batches)


def groups_met(batches: Batches, context: TaskContext) -> Iterator[tuple[object, list[int]]]:
    for key, rows in contiguous_groups(batches, ("city", "parity")):
        yield key, [number for batch in rows for number in batch.column("number").to_pylist()]


def tokens(batches: Batches, context: TaskContext) -> Iterator[str]:
    if sum(batch.num_rows for batch in batches):
        yield context.write_token


def add_parity(batches: Batches) -> Batches:
    for batch in batches:
        parity = pc.if_else(pc.equal(pc.bit_wise_and(batch.column("number"), 1), 0), "even", None)
        yield batch.append_column("parity", parity)


def refuse(batches: Batches) -> Batches:
    for _batch in batches:
        raise InvalidError("column key is null in 3 rows", table="/t", instant="20260101000000000")
    yield from ()


def locations(source: tuple[str, int, int]) -> Batches:
    file_id, start, end = source
    keys = [f"k{number}" for number in range(start, end)]
    cities = [("amsterdam", "berlin", "chennai")[number % 3] for number in range(start, end)]
    for cut in (slice(0, 7), slice(7, None)):
        count = len(keys[cut])
        yield pa.record_batch(
            [pa.array(keys[cut]), pa.array(cities[cut]), pa.array([file_id] * count, pa.string())],
            names=["key", "city", "file_id"],
        )


LOCATIONS = pa.schema([("key", pa.string()), ("city", pa.string()), ("file_id", pa.string())])
WITH_PARITY = RIDES.schema.append(pa.field("parity", pa.string()))


def collected(rows: Rows) -> list[dict[str, object]]:
    return [row for part in rows.run(all_rows) for row in part]


def by_key(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    return sorted(rows, key=lambda row: str(row["key"]))


def test_rows_pass_unchanged(started: Started) -> None:
    _, make = started
    rows = make(RIDES)
    assert rows.schema.names == RIDES.schema.names
    assert by_key(collected(rows)) == by_key(RIDES.to_pylist())


def test_functions_on_batches_apply_in_order(started: Started) -> None:
    _, make = started
    rows = make(RIDES).map_batches(double, RIDES.schema).map_batches(double, RIDES.schema)
    expected = [{**row, "fare": row["fare"] * 4} for row in RIDES.to_pylist()]
    assert by_key(collected(rows)) == by_key(expected)


def test_results_of_all_parts_are_gathered(started: Started) -> None:
    _, make = started
    assert sum(make(RIDES).run(row_count)) == 1000


def test_a_stream_without_rows_gives_no_rows(started: Started) -> None:
    _, make = started
    assert collected(make(RIDES.slice(0, 0)).exchange(["city"])) == []


def test_rows_are_counted_by_the_values_of_columns(started: Started) -> None:
    _, make = started
    rows = make(RIDES).map_batches(add_parity, WITH_PARITY).persist()
    tally = rows.count_by(["city", "parity"])
    assert sum(tally.rows.values()) == 1000
    assert tally.rows["amsterdam", "even"] == tally.rows["amsterdam", None] == 167
    assert tally.size_bytes > 20_000
    assert rows.count_by(["city"]).rows == {("amsterdam",): 334, ("berlin",): 333, ("chennai",): 333}
    rows.release()


def counted(batches: Batches) -> Batches:
    for (city,), rows in contiguous_groups(batches, ("city",)):
        count = sum(batch.num_rows for batch in rows)
        yield pa.RecordBatch.from_pylist([{"city": city, "count": count}], COUNTS)


COUNTS = pa.schema([("city", pa.string()), ("count", pa.int64())])


def test_functions_after_an_exchange_see_every_group_whole(started: Started) -> None:
    _, make = started
    rows = make(RIDES).exchange(["city"]).map_batches(counted, COUNTS)
    assert sorted((row["city"], row["count"]) for row in collected(rows)) == [
        ("amsterdam", 334),
        ("berlin", 333),
        ("chennai", 333),
    ]


def test_rows_know_their_engine(started: Started) -> None:
    engine, make = started
    assert isinstance(engine, type(make(RIDES).engine))
    assert make(RIDES).engine.map(abs, [-1, 2]) == [1, 2]


def test_an_exchange_brings_groups_together_in_the_rows_order(started: Started) -> None:
    _, make = started
    rows = make(RIDES).map_batches(add_parity, WITH_PARITY).exchange(["city", "parity"])
    met = rows.run(groups_met)
    assert len(met) == 6
    assert {key for key, _ in met} == {
        (city, parity) for city in ("amsterdam", "berlin", "chennai") for parity in ("even", None)
    }
    assert all(numbers == sorted(numbers) for _, numbers in met)
    assert sorted(number for _, numbers in met for number in numbers) == list(range(1000))


def test_functions_apply_after_an_exchange(started: Started) -> None:
    _, make = started
    rows = make(RIDES).exchange(["city"]).map_batches(double, RIDES.schema)
    assert sum(float(str(row["fare"])) for row in collected(rows)) == sum(range(1000)) / 2


def test_kept_rows_are_read_twice(started: Started) -> None:
    _, make = started
    kept = make(RIDES).map_batches(double, RIDES.schema).persist()
    assert kept.distinct("city") == ["amsterdam", "berlin", "chennai"]
    assert by_key(collected(kept)) == by_key([{**row, "fare": row["fare"] * 2} for row in RIDES.to_pylist()])
    kept.release()


@pytest.mark.parametrize("narrow", [True, False])
@pytest.mark.parametrize("on", [("key",), ("key", "city")])
def test_a_join_finds_keys_in_any_source_and_leaves_null_elsewhere(
    started: Started, on: tuple[str, ...], narrow: bool
) -> None:
    _, make = started
    sources = [("group-a", 0, 10), ("group-b", 10, 400), ("group-c", 2000, 2100)]
    schema = pa.schema([field for field in LOCATIONS if field.name in on or field.name == "file_id"])
    reader = locations if len(on) == 2 else locations_by_key
    kept = make(RIDES).persist()
    joined = kept.join_keys(on, sources, reader, schema, narrow=narrow)
    found = {row["key"]: row["file_id"] for row in collected(joined)}
    kept.release()
    assert len(found) == 1000
    assert {key for key, file_id in found.items() if file_id == "group-a"} == {f"k{n}" for n in range(10)}
    assert sum(file_id == "group-b" for file_id in found.values()) == 390
    assert sum(file_id is None for file_id in found.values()) == 600


def locations_by_key(source: tuple[str, int, int]) -> Batches:
    for batch in locations(source):
        yield batch.drop_columns(["city"])


def test_a_join_may_keep_what_matches_nothing_on_the_right(started: Started) -> None:
    _, make = started
    kept = make(RIDES).persist()
    sources = [("group-a", 990, 1010), ("group-b", 2000, 2005)]
    found = collected(kept.join_keys(("key", "city"), sources, locations, LOCATIONS, keep_right=True))
    kept.release()
    alone = [row["file_id"] for row in found if row["number"] is None]
    assert sorted(alone) == ["group-a"] * 10 + ["group-b"] * 5
    assert sum(row["file_id"] == "group-a" for row in found if row["number"] is not None) == 10
    assert len(found) == 1015


def test_keys_are_gathered_by_what_goes_with_them(started: Started) -> None:
    _, make = started
    kept = make(RIDES).persist()
    sets = kept.keys(("key", "city"))
    assert sorted(sets) == [("amsterdam",), ("berlin",), ("chennai",)]
    assert sorted(sets["berlin",].keys.to_pylist()) == sorted(f"k{n}" for n in range(1, 1000, 3))
    assert kept.count_by(["city"]).rows == {("amsterdam",): 334, ("berlin",): 333, ("chennai",): 333}
    kept.release()


def test_an_engine_reads_sources(started: Started) -> None:
    engine, _ = started
    found = collected(engine.read([("a", 0, 10), ("b", 5, 25)], locations, LOCATIONS))
    assert sorted(str(row["file_id"]) for row in found) == ["a"] * 10 + ["b"] * 20
    assert collected(engine.read([], locations, LOCATIONS)) == []


def test_a_join_without_sources_leaves_null(started: Started) -> None:
    _, make = started
    kept = make(RIDES).persist()
    rows = collected(kept.join_keys(("key", "city"), [], locations, LOCATIONS))
    kept.release()
    assert len(rows) == 1000
    assert {row["file_id"] for row in rows} == {None}


def test_joined_rows_go_on_to_an_exchange(started: Started) -> None:
    _, make = started
    kept = make(RIDES).persist()
    joined = kept.join_keys(("key", "city"), [("group-a", 0, 500)], locations, LOCATIONS)
    counts = joined.exchange(["file_id"]).run(count_by_file)
    kept.release()
    assert sorted(counts, key=str) == [("group-a", 500), (None, 500)]


def count_by_file(batches: Batches, context: TaskContext) -> Iterator[tuple[object, int]]:
    for (file_id,), rows in contiguous_groups(batches, ("file_id",)):
        yield file_id, sum(batch.num_rows for batch in rows)


def test_every_part_has_its_own_write_token(started: Started) -> None:
    _, make = started
    found = make(RIDES).exchange(["city", "number"]).run(tokens)
    assert found
    assert len(set(found)) == len(found)


def test_tasks_on_items_answer_in_order(started: Started) -> None:
    engine, _ = started
    assert engine.parallelism >= 1
    assert engine.map(len, ["a", "bbb", "", "cc"]) == [1, 3, 0, 2]
    assert engine.map(len, []) == []


def test_errors_reach_the_caller_as_they_are(started: Started) -> None:
    engine, make = started
    for rows in (make(RIDES), make(RIDES).exchange(["city"])):
        with pytest.raises(InvalidError, match="null in 3 rows") as caught:
            rows.map_batches(refuse, RIDES.schema).exchange(["city"]).run(row_count)
        assert (caught.value.table, caught.value.instant) == ("/t", "20260101000000000")
    with pytest.raises(InvalidError, match="no such item"):
        engine.map(refuse_item, [1, 2])


def refuse_item(item: int) -> int:
    raise InvalidError(f"no such item: {item}")
