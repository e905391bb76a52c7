"""Buckets of consistent hashing rings are split and merged: every key stays where its ring says."""

from __future__ import annotations

from pathlib import Path

import pytest

from drawstring.base.clock import SystemIds
from drawstring.base.errors import ConflictError, InvalidError
from drawstring.config.options.write_options import WriteOptions
from drawstring.formats.metadata.plans import decode_clustering_plan
from drawstring.index.consistent_bucket import HASH_MASK, Ring
from drawstring.index.existing_writes import FOLDERS
from drawstring.model.files import BaseFile, FileSlice, FileStatus
from drawstring.model.instant import Action
from drawstring.model.plans import decode_nodes, encode_nodes, nodes_of
from drawstring.services.clustering_plan import middle_of_range, plan_resizing
from drawstring.storage.protocol import Storage
from drawstring.testing import context_of
from tests.support.consistent_buckets import (
    ALLOW,
    CONSISTENT,
    FEWER,
    MORE,
    ROWS,
    SPLIT,
    check_places,
    resizable_table,
    ring_of,
)
from tests.support.faults import HOUR_MS, START_MS, Prepared, leftovers, opened, orphans
from tests.support.golden import golden_table
from tests.support.rows import held, rides
from tests.support.tables import MOR, WITHOUT_COMPACTION, create, store_of, versions
from tests.support.validation import errors


@pytest.mark.parametrize(
    "told",
    [
        {"hoodie.clustering.plan.strategy.partition.selected": "rome"},
        {"hoodie.clustering.plan.strategy.partition.regex.pattern": "ro.*"},
    ],
    ids=["selected", "pattern"],
)
def test_buckets_of_other_partitions_than_asked_for_stay(told: dict[str, str]) -> None:
    table = resizable_table()
    table.upsert(rides(*((key, "pisa", ts, fare) for key, _, ts, fare in ROWS)))
    assert table.services.cluster(options={**MORE, **told})
    assert [len(ring_of(table, city).values) for city in ("pisa", "rome")] == [2, 4]
    assert table.services.cluster(options=MORE)
    assert len(ring_of(table, "pisa").values) == 4


@versions
def test_large_buckets_are_split_and_small_ones_merged(version: int) -> None:
    table = resizable_table(version)
    before = held(table)
    result = table.services.cluster(options=MORE)
    assert result and (result.files, result.records_written) == (4, 40)
    ring = ring_of(table)
    assert (len(ring.values), ring.buckets, ring.sequence) == (4, 2, 1)
    assert held(table) == before
    check_places(table)
    table.upsert(rides(("k003", "rome", 100, 1.0), ("new", "rome", 1, 1.0)))
    assert len(held(table)) == 41
    table.services.compact()
    check_places(table)
    before = held(table)
    result = table.services.cluster(options=FEWER)
    assert result and result.files == 1
    ring = ring_of(table)
    assert (len(ring.values), ring.sequence, ring.values[-1]) == (1, 2, HASH_MASK)
    assert held(table) == before
    table.delete(rides(("k007", "rome", 200, 0.0)))
    assert len(held(table)) == 40
    assert (orphans(table), leftovers(table)) == ([], [])


def test_how_many_buckets_there_may_be_is_bounded() -> None:
    table = resizable_table()
    assert not table.services.cluster(options=SPLIT)
    result = table.services.cluster(options={**SPLIT, "hoodie.bucket.index.max.num.buckets": 3})
    assert result and result.files == 2
    assert len(ring_of(table).values) == 3
    assert not table.services.cluster(options={"hoodie.bucket.index.min.num.buckets": 3})


@versions
def test_buckets_that_are_written_all_the_time_are_resized_with_their_log_files(version: int) -> None:
    table = resizable_table(version)
    for number in range(3):
        table.upsert(
            rides(*((key, city, ts + number, fare + number) for key, city, ts, fare in ROWS)),
            options=WITHOUT_COMPACTION,
        )
    table.delete(rides((*ROWS[0][:2], 500, 0.0)), options=WITHOUT_COMPACTION)
    assert all(each.logs for each in table.inspect.files())
    before = held(table)
    result = table.services.cluster(options=MORE)
    assert result and result.files == 4
    assert held(table) == before and len(before) == len(ROWS) - 1
    check_places(table)
    assert (orphans(table), leftovers(table)) == ([], [])


def test_an_even_split_puts_half_of_the_records_on_either_side() -> None:
    table = create(table_type=MOR, properties={**CONSISTENT, "hoodie.bucket.index.num.buckets": "1"})
    table.upsert(rides(*((f"key{number}", "rome", 1, 1.0) for number in range(2000))))
    table.services.compact()
    table.services.cluster(options={**MORE, "drawstring.bucket.split.policy": "EVEN"})
    counts = [
        table.scan(columns=["_hoodie_file_name"])
        .to_arrow()
        .column(0)
        .to_pylist()
        .count(each.base.status.name)
        for each in table.inspect.files()
        if each.base
    ]
    assert len(counts) == 2 and abs(counts[0] - counts[1]) <= 2
    check_places(table)


def test_neighbours_merge_as_long_as_they_are_small_together() -> None:
    ring = Ring.first("p", 8)
    sizes = [10, 30, 30, 50, 200, 20, 20, 70]
    slices = [slice_of(ring.prefixes[number], size) for number, size in enumerate(sizes)]
    options = WriteOptions.parse(
        {
            "hoodie.parquet.max.file.size": 100,
            "hoodie.bucket.index.merge.threshold": 0.7,
            "hoodie.bucket.index.split.threshold": 5,
            "hoodie.bucket.index.min.num.buckets": 2,
        }
    )
    groups = plan_resizing(ring, slices[::-1], options, middle_of_range, SystemIds())
    merged = [[each.file_id[:-2] for each in group.slices] for group in groups]
    assert merged == [list(ring.prefixes[:3]), list(ring.prefixes[5:7])]
    after = ring.changed(node for group in groups for node in nodes_of(group))
    assert after.values == (*ring.values[2:5], *ring.values[6:])


def slice_of(prefix: str, size: int) -> FileSlice:
    base = BaseFile.parse(FileStatus(f"p/{prefix}-0_1-0-1_20240101000000000.parquet", size))
    assert base is not None
    return FileSlice("p", base.file_id, base.instant, base)


@pytest.mark.parametrize(
    "name", ["v6_idx_consistent_split", "v8_idx_consistent_split", "v9_idx_consistent_merge"]
)
def test_rings_and_nodes_are_written_as_real_hudi_writes_them(name: str, tmp_path: Path) -> None:
    table = golden_table(name, tmp_path)
    storage, store = context_of(table).storage, store_of(table)
    for instant in table.timeline.writes():
        if instant.action is not Action.REPLACE_COMMIT:
            continue
        plan = decode_clustering_plan(store.read_requested(instant))
        for partition in {group.partition for group in plan.groups}:
            folder = f"{FOLDERS[0]}/{partition}".rstrip("/")
            times = [
                each.name.partition(".")[0] for each in storage.list_files(folder) if "meta" in each.name
            ]
            former = max(time for time in times if time < instant.requested)
            ring = Ring.decode(storage.read(f"{folder}/{former}.hashing_meta"))
            groups = [group for group in plan.groups if group.partition == partition]
            for group in groups:
                text = (group.extra or {})["clustering.group.child.node"]
                assert encode_nodes(decode_nodes(text)) == text
            after = ring.changed(node for group in groups for node in nodes_of(group))
            stored = storage.read(f"{folder}/{instant.requested}.hashing_meta")
            assert after.encode(partition, instant.requested) == stored


@pytest.mark.parametrize("name", ["v6_idx_consistent_split", "v9_idx_consistent_split"])
def test_a_split_cuts_where_real_hudi_cuts(name: str, tmp_path: Path) -> None:
    ring = Ring.decode(
        context_of(golden_table(name, tmp_path)).storage.read(f"{FOLDERS[0]}/00000000000000.hashing_meta")
    )
    assert [ring.middle(prefix) for prefix in ring.prefixes] == [536870911, 1610612735]


@pytest.mark.parametrize("version", [8, 9])
def test_a_resizing_that_real_hudi_wrote_twice_for_is_run(version: int, tmp_path: Path) -> None:
    table = golden_table(f"v{version}_idx_consistent_dual_write", tmp_path)
    (pending,) = table.timeline.pending_of(Action.CLUSTERING)
    before = sorted(
        map(
            str,
            table.scan().to_arrow().drop_columns(["_hoodie_file_name", "_hoodie_commit_seqno"]).to_pylist(),
        )
    )
    result = table.services.cluster(instant=pending.requested, options=CONSISTENT)
    assert result and result.files == 4
    after = sorted(
        map(
            str,
            table.scan().to_arrow().drop_columns(["_hoodie_file_name", "_hoodie_commit_seqno"]).to_pylist(),
        )
    )
    assert after == before
    assert len(ring_of(table, "").values) == 4
    rows = table.scan().to_arrow().slice(0, 3)
    table.upsert(rows, options=CONSISTENT)
    assert table.scan().to_arrow().num_rows == len(before)


@versions
def test_a_write_that_does_not_wait_gives_the_resizing_up(version: int) -> None:
    table = resizable_table(version)
    table.services.schedule_clustering(options=MORE)
    table.upsert(rides(("k003", "rome", 500, 5.0), ("new", "rome", 1, 1.0)), options=ALLOW)
    assert table.timeline.pending() == ()
    assert len(ring_of(table).values) == 2
    assert ("k003", "rome", 500, 5.0) in held(table) and len(held(table)) == 41
    table.services.compact()
    table.services.cluster(options=MORE)
    check_places(table)
    assert ("k003", "rome", 500, 5.0) in held(table) and len(held(table)) == 41
    assert orphans(table) == []


def test_a_resizing_that_a_write_gave_up_while_it_ran_leaves_nothing() -> None:
    table = resizable_table()

    def meanwhile(done: int, total: int) -> None:
        if done == total:
            table.upsert(rides(("k003", "rome", 500, 5.0)), options=ALLOW)

    with pytest.raises(ConflictError):
        table.services.cluster(progress=meanwhile, options=MORE)
    assert (len(ring_of(table).values), len(held(table))) == (2, 40)
    table.upsert(rides(("k004", "rome", 501, 5.0)))
    assert (orphans(table), leftovers(table)) == ([], [])


def test_a_resizing_that_real_hudi_wrote_twice_for_goes_with_what_was_written(tmp_path: Path) -> None:
    table = golden_table("v9_idx_consistent_dual_write", tmp_path)
    (pending,), rows = table.timeline.pending(), table.scan().to_arrow()
    table.upsert(rows.slice(0, 5), options={**CONSISTENT, **ALLOW})
    assert table.timeline.pending() == ()
    listed = [status.name for status in context_of(table).storage.list_tree("") if not status.folder]
    assert not [name for name in listed if f"_{pending.requested}." in name]
    assert table.scan().to_arrow().num_rows == rows.num_rows
    assert errors(table) == []
    first = table.timeline.writes()[0]
    assert table.incremental(first.completed).to_arrow().num_rows == 20 + 5
    assert table.changes(first.completed).to_arrow().num_rows == 20 + 5


def test_writes_wait_for_a_resizing_if_told_to_and_another_kind_of_clustering_is_refused() -> None:
    table = resizable_table()
    scheduled = table.services.schedule_clustering(options=MORE)
    with pytest.raises(ConflictError, match="splits or merges buckets"):
        table.upsert(
            rides(ROWS[0]), options={"hoodie.clustering.updates.strategy": "SparkRejectUpdateStrategy"}
        )
    assert table.services.schedule_clustering(options=MORE) is None
    table.services.cluster(instant=scheduled)
    table.upsert(rides(ROWS[0]))
    strategy = "hoodie.clustering.plan.strategy.class"
    with pytest.raises(InvalidError, match="does not fit a consistent hashing index"):
        table.services.cluster(options={strategy: "SparkSizeBasedClusteringPlanStrategy"})
    with pytest.raises(InvalidError, match="needs a consistent hashing index"):
        create().services.cluster(options={strategy: "SparkConsistentBucketClusteringPlanStrategy"})


def rings(storage: Storage) -> list[str]:
    return [status.name for folder in FOLDERS for status in storage.list_tree(folder)]


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.scaled
def test_a_resizing_that_dies_at_any_step_is_finished_by_the_next(version: int) -> None:
    table = resizable_table(version)
    start = Prepared.of(table)
    for storage, step in start.deaths(lambda each: each.services.cluster(options=MORE)):
        table = opened(storage, START_MS + HOUR_MS)
        assert held(table) == start.before, step
        table.services.cluster(options={**MORE, "hoodie.bucket.index.max.num.buckets": 4})
        assert held(table) == start.before, step
        assert len(ring_of(table).values) == 4, step
        check_places(table)
        table.upsert(rides(("k003", "rome", 1000, 1.0)))
        assert len(held(table)) == 40, step
        assert (orphans(table), leftovers(table)) == ([], []), step
        assert len(rings(storage)) == 3, (step, rings(storage))
