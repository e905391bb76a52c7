"""Clustering: small file groups come together in order, readers see the same rows, and nothing is lost."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from drawstring.base.clock import SystemClock
from drawstring.base.errors import ConflictError, InvalidError, UnsupportedError
from drawstring.formats.metadata.plans import decode_clustering_plan
from drawstring.formats.parquet import read_parquet
from drawstring.model.instant import Action, State, time_of
from drawstring.model.plans import ClusteringPlan
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.txn.transaction import lock_table
from tests.support.faults import leftovers, orphans
from tests.support.interrupted import in_no_time
from tests.support.methods import method
from tests.support.rows import held, meta_rows, rides
from tests.support.tables import BUCKETS, COW, MOR, NEW_FILE_GROUPS, create, file_groups, locking, store_of

VERSIONS = (6, 8, 9)
CITIES = ("bern", "oslo", "rome")
SORT = {"hoodie.clustering.plan.strategy.sort.columns": "fare"}
ALLOW = {"hoodie.clustering.updates.strategy": "SparkAllowUpdateStrategy"}

versions = pytest.mark.parametrize("version", VERSIONS)
table_types = pytest.mark.parametrize("table_type", [COW, MOR])


def scattered(table_type: str = COW, version: int = 9, **how: Any) -> Table:
    """A table with three file groups in each partition, one of them changed since."""
    table = create(table_type=table_type, version=version, **how)
    for batch in range(3):
        rows = ((f"{key}{batch}", city, batch, float(-batch)) for key in "abc" for city in CITIES)
        table.insert(rides(*rows), options=NEW_FILE_GROUPS)
    table.upsert(rides(("a1", "oslo", 9, 9.0), ("b2", "rome", 9, -9.0)), options=NEW_FILE_GROUPS)
    return table


def plans(table: Table) -> list[ClusteringPlan]:
    store = store_of(table, SystemClock())
    return [
        decode_clustering_plan(store.read_requested(instant))
        for instant in table.timeline.pending_of(Action.CLUSTERING)
    ]


def fares(table: Table, partition: str) -> list[float]:
    (only,) = (each for each in table.inspect.files() if each.partition == partition)
    assert only.base is not None
    batches = list(read_parquet(context_of(table).storage, only.base.status.path))
    found: list[float] = pa.Table.from_batches(batches).column("fare").to_pylist()
    return found


@versions
@table_types
def test_small_file_groups_become_one_a_partition_in_order(table_type: str, version: int) -> None:
    table = scattered(table_type, version)
    before, marks = held(table), meta_rows(table)
    assert file_groups(table) == 9
    result = table.services.cluster(options=SORT)
    assert result
    assert (result.operation, result.files, result.records_written) == ("cluster", 3, 27)
    assert file_groups(table) == 3
    assert fares(table, "oslo") == sorted(fares(table, "oslo"))
    assert (held(table), meta_rows(table)) == (before, marks)
    names = {
        row["_hoodie_file_name"] for row in table.scan(columns=["_hoodie_file_name"]).to_arrow().to_pylist()
    }
    assert names == {each.base.status.name for each in table.inspect.files() if each.base}
    assert (table.timeline.pending(), orphans(table), leftovers(table)) == ((), [], [])


@table_types
def test_what_is_clustered_already_is_left_alone_until_there_is_more(table_type: str) -> None:
    table = scattered(table_type)
    table.services.cluster(options=SORT)
    instants = table.timeline.instants
    assert not table.services.cluster(options=SORT)
    assert table.timeline.instants == instants
    table.insert(rides(("z", "oslo", 1, -5.0)), options=NEW_FILE_GROUPS)
    result = table.services.cluster(options=SORT)
    assert result and (result.files, result.records_written) == (1, 10)
    assert fares(table, "oslo") == sorted(fares(table, "oslo"))
    assert table.services.cluster(options=dict.fromkeys(SORT, "ts"))


def test_an_empty_table_has_nothing_to_cluster() -> None:
    assert not create().services.cluster()
    assert create().services.schedule_clustering() is None


@versions
def test_a_plan_is_scheduled_by_one_and_run_by_another(version: int) -> None:
    table = scattered(MOR, version)
    before = held(table)
    planned = table.services.schedule_clustering(options=SORT)
    (pending,) = table.timeline.pending_of(Action.CLUSTERING)
    assert (pending.requested, pending.state) == (planned, State.REQUESTED)
    (plan,) = plans(table)
    assert sorted(group.partition for group in plan.groups) == sorted(CITIES)
    assert all(len(group.slices) == 3 for group in plan.groups)
    assert table.services.schedule_clustering(options=SORT) is None
    assert held(table) == before
    assert planned is not None
    done = table.services.cluster(instant=planned)
    assert done and done.instant == planned
    assert (file_groups(table), held(table)) == (3, before)
    assert not table.services.cluster(instant=planned)
    with pytest.raises(InvalidError, match="no clustering with this time"):
        table.services.cluster(instant=planned + "1")
    assert fares(table, "rome") == sorted(fares(table, "rome"))


def test_partitions_are_chosen_by_name_pattern_days_and_range() -> None:
    mode = "hoodie.clustering.plan.partition.filter.mode"
    one = "hoodie.clustering.plan.strategy."
    chosen = [
        ({f"{one}partition.selected": "bern,oslo"}, {"bern", "oslo"}),
        ({f"{one}partition.regex.pattern": "(b|r).*"}, {"bern", "rome"}),
        ({mode: "RECENT_DAYS", f"{one}daybased.lookback.partitions": 1}, {"rome"}),
        ({mode: "RECENT_DAYS", f"{one}daybased.skipfromlatest.partitions": 1}, {"bern", "oslo"}),
        ({f"{one}class": "SparkRecentDaysClusteringPlanStrategy"}, {"oslo", "rome"}),
        (
            {
                mode: "SELECTED_PARTITIONS",
                f"{one}cluster.begin.partition": "c",
                f"{one}cluster.end.partition": "oslo",
            },
            {"oslo"},
        ),
    ]
    for options, expected in chosen:
        table = scattered()
        table.services.schedule_clustering(options=options)
        (plan,) = plans(table)
        assert {group.partition for group in plan.groups} == expected, options


def test_groups_are_bounded_in_size_and_number() -> None:
    table = scattered()
    size_bytes = max(each.size_bytes for each in table.inspect.files())
    one = "hoodie.clustering.plan.strategy."
    table.services.schedule_clustering(
        options={f"{one}max.bytes.per.group": 2 * size_bytes + 10, f"{one}max.num.groups": 4}
    )
    (plan,) = plans(table)
    assert [len(group.slices) for group in plan.groups] == [2, 1, 2, 1]
    table = scattered()
    assert not table.services.cluster(options={f"{one}small.file.limit": 100})
    alone = {f"{one}class": "SparkSingleFileSortPlanStrategy", **SORT}
    result = table.services.cluster(options=alone)
    assert result and result.files == 9
    assert file_groups(table) == 9


def test_new_files_end_at_the_size_that_was_asked_for() -> None:
    table = create()
    for batch in range(3):
        table.append(rides(*((f"k{batch}-{at}", "rome", at, float(at)) for at in range(70_000))))
    result = table.services.cluster(
        options={"hoodie.clustering.plan.strategy.target.file.max.bytes": 1_000_000, **SORT}
    )
    assert result and 2 <= result.files <= 4
    assert len(held(table)) == 210_000


@pytest.mark.parametrize("layout", ["ZORDER", "HILBERT"])
@pytest.mark.parametrize(("method", "spread_max"), [("DIRECT", 63), ("SAMPLE", 31)])
def test_a_curve_keeps_rows_together_that_are_near_in_both_columns(
    layout: str, method: str, spread_max: int
) -> None:
    table = create()
    grid = [(f"{x}-{y}", "rome", x, float(y)) for x in range(64) for y in range(64)]
    table.append(rides(*grid[::2]))
    table.append(rides(*grid[1::2]))
    order = {
        "hoodie.clustering.plan.strategy.sort.columns": "ts,fare",
        "hoodie.layout.optimize.strategy": layout,
        "hoodie.layout.optimize.curve.build.method": method,
    }
    table.services.cluster(options=order)
    (only,) = table.inspect.files()
    assert only.base is not None
    rows = pa.Table.from_batches(list(read_parquet(context_of(table).storage, only.base.status.path)))
    quarter = rows.slice(0, 1024)
    spread = [
        max(quarter.column(name).to_pylist()) - min(quarter.column(name).to_pylist())
        for name in ("ts", "fare")
    ]
    assert min(spread) <= 32
    assert max(spread) <= spread_max
    assert not table.services.cluster(options=order)


def test_what_cannot_be_clustered_is_refused_before_anything_is_written() -> None:
    table = scattered()
    instants = table.timeline.instants
    with pytest.raises(InvalidError, match="There is no column nothing to sort by"):
        table.services.cluster(options={"hoodie.clustering.plan.strategy.sort.columns": "nothing"})
    with pytest.raises(InvalidError, match="not a regular expression"):
        table.services.cluster(options={"hoodie.clustering.plan.strategy.partition.regex.pattern": "("})
    with pytest.raises(InvalidError, match=r"needs .*begin\.partition"):
        table.services.cluster(
            options={"hoodie.clustering.plan.partition.filter.mode": "SELECTED_PARTITIONS"}
        )
    assert table.timeline.instants == instants
    planned = table.services.schedule_clustering()
    with pytest.raises(InvalidError, match="There is no column nothing to sort by"):
        table.services.cluster(options={"hoodie.clustering.plan.strategy.sort.columns": "nothing"})
    assert [each.requested for each in table.timeline.pending()] == [planned]
    bucketed = scattered(properties=BUCKETS)
    with pytest.raises(UnsupportedError, match="bucket index cannot be clustered"):
        bucketed.services.cluster()
    with pytest.raises(InvalidError, match=r"groups of the table are not buckets\. Leave the option out"):
        table.services.cluster(options=BUCKETS)


@pytest.mark.parametrize("service", ["cluster", "schedule_base_file_compaction"])
@pytest.mark.parametrize("empties", [False, True])
def test_a_bucket_index_that_only_writers_know_of_is_not_clustered_away(service: str, empties: bool) -> None:
    table = create()
    table.upsert(rides(*((key, city, 1, 1.0) for key in "abcdefgh" for city in CITIES)), options=BUCKETS)
    if empties:
        table.delete_partition("bern")
    with pytest.raises(
        InvalidError, match=r"seems to have a bucket index\. Such a table cannot be clustered"
    ):
        method(table, service)()
    with pytest.raises(UnsupportedError, match="simple bucket index cannot be clustered"):
        method(table, service)(options=BUCKETS)
    with pytest.raises(InvalidError, match=r"Set hoodie\.index\.type=BUCKET"):
        table.upsert(rides(("a", "rome", 2, 2.0)))
    table.upsert(rides(("a", "rome", 2, 2.0)), options=BUCKETS)
    assert table.services.validate().is_sound


@versions
def test_writes_to_a_pending_clustering_are_refused_or_let_through(version: int) -> None:
    table = scattered(MOR, version)
    planned = table.services.schedule_clustering()
    newer = ("a1", "oslo", 50, 50.0)
    with pytest.raises(ConflictError, match="part of a pending clustering"):
        in_no_time(table).upsert(rides(newer))
    table.upsert(rides(("quite new", "oslo", 1, 1.0)))
    table.upsert(rides(newer), options=ALLOW)
    expected = held(table)
    assert newer in expected
    assert table.timeline.pending_of(Action.CLUSTERING)
    assert not table.services.cluster(instant=planned)
    assert table.timeline.pending() == ()
    assert held(table) == expected
    assert table.services.cluster()
    assert held(table) == expected
    assert orphans(table) == []


def test_overwrites_wait_for_a_pending_clustering() -> None:
    table = scattered(COW)
    before = held(table)
    planned = table.services.schedule_clustering()
    for overwrite in (in_no_time(table).insert_overwrite, in_no_time(table).insert_overwrite_table):
        with pytest.raises(ConflictError, match="part of a pending clustering"):
            overwrite(rides(("new", "oslo", 1, 1.0), ("new", "rome", 1, 1.0)))
    assert held(table) == before
    table.services.cluster(instant=planned)
    table.insert_overwrite_table(rides(("new", "oslo", 1, 1.0)))
    assert held(table) == [("new", "oslo", 1, 1.0)]


@versions
@pytest.mark.parametrize("write", ["drop", "overwrite"])
def test_a_clustering_does_not_bring_back_what_a_write_that_is_let_through_replaced(
    version: int, write: str
) -> None:
    table = scattered(COW, version)
    table.services.schedule_clustering(options={"hoodie.clustering.plan.strategy.partition.selected": "rome"})
    planned = table.services.schedule_clustering()
    others = [row for row in held(table) if row[1] != "oslo"]
    with pytest.raises(ConflictError, match="part of a pending clustering"):
        in_no_time(table).delete_partition("oslo")
    if write == "drop":
        table.delete_partition("oslo", options=ALLOW)
        expected = others
    else:
        table.insert_overwrite(rides(("new", "oslo", 1, 1.0)), options=ALLOW)
        expected = [("new", "oslo", 1, 1.0), *others]
    (left,) = plans(table)
    assert {group.partition for group in left.groups} == {"rome"}
    assert planned not in [each.requested for each in table.timeline.pending()]
    table.services.cluster()
    assert sorted(held(table)) == sorted(expected)


def test_a_write_that_is_let_through_takes_the_clustering_off_the_timeline_if_told_to() -> None:
    table = scattered(MOR)
    table.services.schedule_clustering(options={"hoodie.clustering.plan.strategy.partition.selected": "rome"})
    table.services.schedule_clustering()
    assert len(plans(table)) == 2
    away = {**ALLOW, "hoodie.clustering.rollback.pending.replacecommit.on.conflict": True}
    table.upsert(rides(("a1", "oslo", 50, 50.0)), options=away)
    (left,) = plans(table)
    assert {group.partition for group in left.groups} == {"rome"}
    table.services.cluster()
    assert file_groups(table) == 3


def test_a_clustering_whose_file_groups_are_written_to_while_it_runs_gives_up() -> None:
    table = scattered()

    def meanwhile(done: int, total: int) -> None:
        if done == total:
            table.upsert(rides(("a1", "oslo", 50, 50.0)), options=ALLOW)

    with pytest.raises(ConflictError, match="wrote to file groups of this clustering"):
        table.services.cluster(progress=meanwhile)
    assert ("a1", "oslo", 50, 50.0) in held(table)
    assert file_groups(table) == 9
    assert table.services.cluster()
    assert ("a1", "oslo", 50, 50.0) in held(table)
    assert (file_groups(table), orphans(table), leftovers(table)) == (3, [], [])


def test_writers_go_on_while_a_clustering_runs() -> None:
    table = scattered()

    def meanwhile(done: int, total: int) -> None:
        table.insert(rides((f"new{done}", "lima", 1, 1.0)), options=NEW_FILE_GROUPS)

    result = table.services.cluster(progress=meanwhile, options=SORT)
    assert result and result.files == 3
    assert {key for key, *_ in held(table)} >= {"new2", "new3"}


def test_a_second_process_does_not_run_the_same_clustering() -> None:
    table = scattered()
    planned = table.services.schedule_clustering()
    refused: list[str] = []

    def meanwhile(done: int, total: int) -> None:
        with pytest.raises(ConflictError, match="Another process runs this clustering") as caught:
            table.services.cluster(instant=planned)
        refused.append(str(caught.value))
        assert not table.services.cluster()

    assert table.services.cluster(progress=meanwhile, instant=planned)
    assert refused


@table_types
def test_clustering_after_a_write_when_it_is_due(table_type: str) -> None:
    table = create(table_type=table_type)
    due = {"hoodie.clustering.inline": True, "hoodie.clustering.inline.max.commits": 2, **NEW_FILE_GROUPS}
    counts = []
    for batch in range(4):
        table.insert(rides((f"a{batch}", "rome", 1, 1.0)), options=due)
        counts.append(file_groups(table))
    assert counts == [1, 1, 2, 1]
    planned = {
        "hoodie.clustering.schedule.inline": True,
        "hoodie.clustering.inline.max.commits": 1,
        **NEW_FILE_GROUPS,
    }
    table.insert(rides(("b", "rome", 1, 1.0)), options=planned)
    assert len(plans(table)) == 1
    assert len(held(table)) == 5


@versions
def test_incremental_queries_pass_over_clusterings(version: int) -> None:
    table = scattered(COW, version)
    last = table.timeline.latest_write()
    assert last is not None
    table.services.cluster(options=SORT)
    position = time_of(last)
    assert table.incremental(position).to_arrow().num_rows == 0
    table.upsert(rides(("a1", "oslo", 99, 99.0)))
    assert table.incremental(position, columns=["id"]).to_arrow().to_pylist() == [{"id": "a1"}]


def test_a_table_without_meta_columns_is_clustered() -> None:
    table = create(properties={"hoodie.populate.meta.fields": "false"})
    for batch in range(3):
        table.insert(rides((f"a{batch}", "rome", batch, -float(batch))), options=NEW_FILE_GROUPS)
    before = held(table)
    table.services.cluster(options=SORT)
    assert (file_groups(table), held(table)) == (1, before)
    assert fares(table, "rome") == [-2.0, -1.0, 0.0]


def test_the_plan_of_another_engines_own_strategy_is_left_to_it() -> None:
    table = scattered()
    table.services.schedule_clustering()
    (pending,) = table.timeline.pending()
    storage = context_of(table).storage
    path = f".hoodie/timeline/{pending.requested}.clustering.requested"
    name, other = b"SparkSortAndSizeExecutionStrategy", b"SparkSortAndSizeExecutionSomething"[:33]
    storage.put(path, storage.read(path).replace(name, other))
    with pytest.raises(UnsupportedError, match="which this release does not have"):
        table.services.cluster()
    with lock_table(context_of(table), locking(0)) as locked:
        assert locked.store.load().pending_of(Action.CLUSTERING) == (pending,)
