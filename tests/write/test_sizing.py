"""File sizing, seen from outside: where new records go, and how large files become."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from drawstring.base.errors import InvalidError
from drawstring.config.keys.sizing import Sizing
from drawstring.config.options.write_options import WriteOptions
from drawstring.engine.local import LocalRows
from drawstring.index.protocol import Location
from drawstring.model.commit import WriteStat
from drawstring.model.files import BaseFile, FileSlice, FileStatus
from drawstring.table import Table
from drawstring.write.assign_inserts import AssignInserts, InsertBucket, key_places
from drawstring.write.sizing import divide, record_bytes
from tests.support.compaction import schedule
from tests.support.limits import SetLimits
from tests.support.rows import WIDE, held, rides, wide
from tests.support.tables import BUCKETS, MOR, NEW_FILE_GROUPS, create, table_types

versions = pytest.mark.parametrize("version", (6, 8, 9))
LOG_INDEX = {"hoodie.index.log.enable": "true"}
SMALL = {"hoodie.parquet.max.file.size": "100000", "hoodie.parquet.small.file.limit": "80000"}


def sizing(**given: Any) -> Sizing:
    return WriteOptions.parse(
        {f"hoodie.{key.replace('_', '.')}": value for key, value in given.items()}
    ).sizing


def groups(table: Table, city: str = "rome") -> list[tuple[str, int, int]]:
    """Return file id, logs and bytes of the base file of each file group."""
    return [
        (each.file_id, len(each.logs), each.base.status.size_bytes if each.base else 0)
        for each in table.inspect.files()
        if each.partition == city
    ]


def ids(table: Table) -> list[str]:
    return sorted(table.scan(columns=["id"]).to_arrow().column("id").to_pylist())


@versions
@table_types
@pytest.mark.parametrize("verb", ["upsert", "insert"])
def test_new_records_go_to_the_small_file_that_is_there(table_type: str, version: int, verb: str) -> None:
    table = create(table_type=table_type, version=version)
    table.upsert(rides(("a", "rome", 1, 1.0), ("b", "oslo", 1, 1.0)))
    before = groups(table)
    getattr(table, verb)(rides(("c", "rome", 1, 1.0), ("d", "rome", 1, 1.0)))
    assert [(file_id, logs) for file_id, logs, _ in groups(table)] == [(before[0][0], 0)]
    assert held(table) == [
        ("a", "rome", 1, 1.0), ("b", "oslo", 1, 1.0), ("c", "rome", 1, 1.0), ("d", "rome", 1, 1.0)
    ]  # fmt: skip
    assert table.scan(read_optimized=True).to_arrow().num_rows == 4


@table_types
@pytest.mark.parametrize("verb", ["upsert", "insert"])
def test_without_a_limit_new_records_make_new_file_groups(table_type: str, verb: str) -> None:
    table = create(table_type=table_type)
    table.upsert(rides(("a", "rome", 1, 1.0)))
    getattr(table, verb)(rides(("b", "rome", 1, 1.0)), options=NEW_FILE_GROUPS)
    assert len(groups(table)) == 2
    assert [row[0] for row in held(table)] == ["a", "b"]


@versions
@table_types
def test_an_append_makes_base_files_of_its_own_and_looks_at_nothing(table_type: str, version: int) -> None:
    table = create(table_type=table_type, version=version)
    first, copy, late = ("a", "rome", 2, 1.0), ("a", "rome", 2, 2.0), ("a", "rome", 1, 3.0)
    for row in (first, copy, late):
        result = table.append(rides(row))
        assert (result.operation, result.inserts, result.files) == ("append", 1, 1)
    assert [logs for _, logs, _ in groups(table)] == [0, 0, 0]
    assert held(table) == [late, first, copy]
    newest = ("a", "rome", 3, 4.0)
    table.upsert(rides(newest))
    assert held(table) == [newest] * 3


def test_an_append_is_refused_where_keys_have_a_file_group() -> None:
    table = create(properties=BUCKETS)
    with pytest.raises(InvalidError, match="bucket index"):
        table.append(rides(("a", "rome", 1, 1.0)))
    assert table.timeline.instants == ()


@pytest.mark.parametrize("verb", ["append", "bulk_insert"])
def test_a_hot_partition_is_loaded_by_all_threads(verb: str, limit: SetLimits) -> None:
    limit(share_bytes=100_000)
    table = create(WIDE)
    rows = pa.concat_tables([wide(0, 9000), wide(9000, 1000, "oslo")])
    getattr(table, verb)(pa.RecordBatchReader.from_batches(WIDE, rows.to_batches(max_chunksize=100)))
    stored = table.scan(columns=["_hoodie_file_name", "city"]).to_arrow().to_pylist()
    files = [row["_hoodie_file_name"] for row in stored if row["city"] == "rome"]
    shares = [files.count(name) / len(files) for name in set(files)]
    assert (len(shares) >= 2, max(shares) < 0.8) == (True, True)


@table_types
def test_updates_and_new_records_of_one_small_file_come_together(table_type: str) -> None:
    table = create(table_type=table_type)
    table.upsert(rides(("a", "rome", 5, 1.0), ("b", "rome", 1, 1.0)))
    table.upsert(rides(("a", "rome", 4, 9.0), ("b", "rome", 2, 2.0), ("c", "rome", 1, 3.0)))
    assert held(table) == [("a", "rome", 5, 1.0), ("b", "rome", 2, 2.0), ("c", "rome", 1, 3.0)]
    assert len(groups(table)) == 1


def test_updates_alone_go_to_logs_however_small_the_file() -> None:
    table = create(table_type=MOR)
    table.upsert(rides(("a", "rome", 1, 1.0)))
    table.upsert(rides(("a", "rome", 2, 2.0)))
    assert [logs for _, logs, _ in groups(table)] == [1]


@versions
def test_a_file_group_with_logs_takes_no_new_records(version: int) -> None:
    table = create(table_type=MOR, version=version)
    table.upsert(rides(("a", "rome", 1, 1.0)))
    table.upsert(rides(("a", "rome", 2, 2.0)))
    table.upsert(rides(("b", "rome", 1, 1.0)))
    table.upsert(rides(("c", "rome", 1, 1.0), ("a", "rome", 3, 3.0)))
    assert sorted(logs for _, logs, _ in groups(table)) == [0, 2]
    assert held(table) == [("a", "rome", 3, 3.0), ("b", "rome", 1, 1.0), ("c", "rome", 1, 1.0)]


@versions
def test_a_file_group_in_a_pending_compaction_takes_no_new_records(version: int) -> None:
    table = create(table_type=MOR, version=version)
    table.upsert(rides(("a", "rome", 1, 1.0)))
    table.upsert(rides(("a", "rome", 2, 2.0)))
    schedule(table)
    table.upsert(rides(("b", "rome", 1, 1.0)))
    assert len(groups(table)) == 2
    table.services.compact()
    assert held(table) == [("a", "rome", 2, 2.0), ("b", "rome", 1, 1.0)]


@versions
@pytest.mark.parametrize("verb", ["upsert", "insert"])
def test_with_an_index_in_log_files_new_records_go_to_them(version: int, verb: str) -> None:
    table = create(table_type=MOR, version=version, properties=LOG_INDEX)
    table.upsert(rides(("a", "rome", 1, 1.0)))
    getattr(table, verb)(rides(("b", "rome", 1, 1.0)))
    getattr(table, verb)(rides(("c", "rome", 1, 1.0)))
    assert [logs for _, logs, _ in groups(table)] == [2]
    assert table.scan(read_optimized=True).to_arrow().num_rows == 1
    table.upsert(rides(("b", "rome", 0, 9.0), ("c", "rome", 2, 2.0), ("d", "rome", 1, 1.0)))
    expected = [("a", "rome", 1, 1.0), ("b", "rome", 1, 1.0), ("c", "rome", 2, 2.0), ("d", "rome", 1, 1.0)]
    assert (held(table), len(groups(table))) == (expected, 1)
    table.services.compact()
    assert held(table, read_optimized=True) == expected


def test_log_files_count_for_the_size_of_a_file_group() -> None:
    table = create(WIDE, table_type=MOR, properties=LOG_INDEX)
    table.upsert(wide(0, 300), options=SMALL)
    table.upsert(wide(300, 300), options=SMALL)
    assert [logs for _, logs, _ in groups(table)] == [1]
    table.upsert(wide(600, 300), options=SMALL)
    table.upsert(wide(900, 300), options=SMALL)
    assert len(groups(table)) > 1
    assert len(ids(table)) == 1200


@pytest.mark.parametrize(("candidates", "grown"), [("1", 1), ("2", 2)])
def test_a_merge_on_read_table_fills_as_many_file_groups_as_it_may(candidates: str, grown: int) -> None:
    table = create(WIDE, table_type=MOR)
    table.bulk_insert(wide(0, 400), options=SMALL)
    table.insert(wide(400, 300), options={**SMALL, **NEW_FILE_GROUPS})
    before = {file_id: size for file_id, _, size in groups(table)}
    limit = {"hoodie.merge.small.file.group.candidates.limit": candidates}
    table.upsert(wide(1000, 900), options={**SMALL, **limit})
    after = {file_id: size for file_id, _, size in groups(table)}
    assert sum(after[file_id] > size for file_id, size in before.items()) == grown
    assert len(ids(table)) == 1600


@pytest.mark.parametrize("verb", ["upsert", "insert"])
def test_files_grow_to_the_size_aimed_at_and_no_further(verb: str) -> None:
    table = create(WIDE)
    for number in range(8):
        getattr(table, verb)(wide(number * 700, 700), options=SMALL)
    sizes = [size for _, _, size in groups(table)]
    assert max(sizes) < 130_000
    assert sum(size < 80_000 for size in sizes) <= 1
    assert len(ids(table)) == len(set(ids(table))) == 5600


def test_a_hot_partition_is_divided_among_several_file_groups() -> None:
    table = create(WIDE)
    rows = pa.concat_tables([wide(0, 9000), wide(0, 100, "oslo")])
    table.upsert(rows, options=SMALL)
    first = groups(table)
    assert len(first) >= 8
    assert max(size for _, _, size in first) < 200_000
    assert len(groups(table, "oslo")) == 1
    table.insert(wide(20_000, 9000), options=SMALL)
    assert len(groups(table)) >= 16
    assert len(ids(table)) == 18_100


def test_only_new_records_count_when_there_is_little_room() -> None:
    table = create(WIDE)
    table.upsert(wide(0, 3000), options=SMALL)
    table.insert(wide(5000, 100), options={**SMALL, **NEW_FILE_GROUPS})
    before = {file_id for file_id, _, _ in groups(table)}
    changed = pa.concat_tables([wide(0, 3000, ts=2), wide(6000, 50, ts=2)])
    result = table.upsert(changed, options=SMALL)
    assert {file_id for file_id, _, _ in groups(table)} == before
    assert (result.inserts, result.updates) == (50, 3000)


def test_copies_of_a_key_stay_together_in_a_hot_partition() -> None:
    table = create(WIDE)
    twice = pa.concat_tables([wide(0, 5000), wide(0, 5000, ts=2)])
    table.upsert(twice, options=SMALL)
    assert len(ids(table)) == 5000
    assert set(table.scan(columns=["ts"]).to_arrow().column("ts").to_pylist()) == {2}
    table.insert(
        pa.concat_tables([wide(6000, 2000)] * 2), options={**SMALL, "hoodie.combine.before.insert": "true"}
    )
    assert len(ids(table)) == 7000


@table_types
def test_an_insert_leaves_copies_of_a_key_beside_each_other_unless_told_to_merge(table_type: str) -> None:
    table = create(table_type=table_type)
    old, late, new = ("a", "rome", 2, 2.0), ("a", "rome", 1, 9.0), ("a", "rome", 3, 3.0)
    table.insert(rides(old))
    table.insert(rides(late))
    assert held(table) == [late, old]
    table.insert(rides(new), options={"hoodie.merge.allow.duplicate.on.inserts": "false"})
    assert (held(table), len(groups(table))) == ([new], 1)


@table_types
def test_one_upsert_makes_one_record_of_the_copies_in_a_file(table_type: str) -> None:
    table = create(table_type=table_type)
    table.insert(rides(("a", "rome", 1, 1.0), ("a", "rome", 1, 2.0)))
    table.upsert(rides(("a", "rome", 3, 3.0)))
    assert held(table) == [("a", "rome", 3, 3.0)]


@table_types
@pytest.mark.parametrize("verb", ["upsert", "insert"])
def test_a_row_that_says_it_is_deleted_adds_nothing_to_a_small_file(table_type: str, verb: str) -> None:
    schema = pa.schema([*rides().schema, ("_hoodie_is_deleted", pa.bool_())])
    table = create(schema, table_type=table_type)
    table.upsert(pa.table([["a"], ["rome"], [1], [1.0], [False]], schema=schema))
    rows = pa.table([["b", "c"], ["rome"] * 2, [1] * 2, [1.0] * 2, [True, False]], schema=schema)
    getattr(table, verb)(rows)
    assert [row[0] for row in held(table)] == ["a", "c"]


def slice_of(name: str, size_bytes: int) -> FileSlice:
    base = BaseFile(FileStatus(f"p/{name}", size_bytes), name, "0-0-0", "1")
    return FileSlice("p", name, "1", base)


def test_small_files_are_filled_and_the_rest_is_shared_evenly() -> None:
    sizes = sizing(parquet_max_file_size=100_000)
    small = [slice_of("a", 20_000), slice_of("b", 99_999)]
    buckets = divide(4000, 20.0, small, sizes)
    assert buckets == (InsertBucket(Location.file_group("a"), 4000),)
    buckets = divide(14_001, 20.0, small, sizes)
    assert [bucket.location.encode() for bucket in buckets] == ["a", "+0", "+1", "+2"]
    assert [bucket.rows for bucket in buckets] == [4000, *[pytest.approx(10_001 / 3)] * 3]


def test_without_auto_split_new_file_groups_have_the_records_asked_for() -> None:
    sizes = sizing(copyonwrite_insert_auto_split=False, copyonwrite_insert_split_size=100)
    assert [bucket.rows for bucket in divide(300, 20.0, [], sizes)] == [100, 100, 100]


def test_large_files_tell_the_size_of_a_record_then_the_user_then_what_there_is() -> None:
    def stat(size_bytes: int, records: int) -> WriteStat:
        return WriteStat("p", "f", "p/f", num_writes=records, size_bytes=size_bytes)

    small, large = stat(50_000, 100), stat(200 << 20, 1 << 20)
    assert record_bytes([small, large], 30.0, sizing()) == 200
    assert record_bytes([small], 30.0, sizing(copyonwrite_record_size_estimate=7)) == 7
    assert record_bytes([small], 30.0, sizing()) == 30
    assert record_bytes([small], 600.0, sizing()) == 500
    assert record_bytes([], 30.0, sizing()) == 30
    assert record_bytes([small, large], 30.0, sizing(record_size_estimation_threshold="2.5")) == 30


def test_places_of_keys_are_spread_evenly_and_do_not_change() -> None:
    for keys in (
        [f"id:{number}" for number in range(20_000)],
        [f"{number:08x}-é" for number in range(20_000)],
    ):
        places = key_places(pa.array(keys))
        shares = [((places >= low / 10) & (places < (low + 1) / 10)).mean() for low in range(10)]
        assert max(abs(share - 0.1) for share in shares) < 0.01
    assert key_places(pa.array(["a", "b"])).round(6).tolist() == [0.215311, 0.579903]


def test_known_locations_stay_and_new_records_get_one_of_their_partition() -> None:
    batch = pa.record_batch(
        {
            "_hoodie_record_key": [f"k{number}" for number in range(6)],
            "_hoodie_partition_path": ["p", "p", "q", "q", "r", "p"],
            "_drawstring_location": ["f", None, None, "g", None, None],
        }
    )
    buckets = {
        "p": (InsertBucket(Location.file_group("x"), 1),),
        "q": (InsertBucket(Location.new_file_group(0), 5), InsertBucket(Location.new_file_group(1), 5)),
    }
    (located,) = AssignInserts(buckets, marks=True)(iter((batch,)))
    locations = located.column("_drawstring_location").to_pylist()
    assert (locations[0], locations[1], locations[3], locations[4], locations[5]) == (
        "f",
        "x",
        "g",
        None,
        "x",
    )
    assert locations[2] in ("+0", "+1")
    assert located.column("_drawstring_is_new").to_pylist() == [False, True, True, False, True, True]


def test_records_that_get_their_keys_later_are_shared_too() -> None:
    batch = pa.record_batch({"_hoodie_record_key": [""] * 1000, "_hoodie_partition_path": ["p"] * 1000})
    buckets = (InsertBucket(Location.file_group("f"), 300), InsertBucket(Location.new_file_group(0), 700))
    (located,) = AssignInserts({"p": buckets}, marks=False)(iter((batch,)))
    assert abs(located.column("_drawstring_location").to_pylist().count("f") - 300) < 10


def test_rows_are_let_go_of_as_those_that_know_their_places_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = create(WIDE, properties={"hoodie.index.type": "GLOBAL_SIMPLE"})
    table.insert(wide(0, 100), options=SMALL)
    kept: list[LocalRows] = []
    left: list[int] = []
    persist = LocalRows.persist

    def watched(rows: LocalRows) -> LocalRows:
        found = persist(rows)
        left.extend(sum(each.run(lambda batches, _: [b.num_rows for b in batches])) for each in kept)
        kept.append(found)
        return found

    monkeypatch.setattr(LocalRows, "persist", watched)
    table.upsert(wide(50, 2000, ts=2), options=SMALL)
    assert left == [0]
    assert len(ids(table)) == 2050
