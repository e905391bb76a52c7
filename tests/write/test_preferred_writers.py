"""Conflicts of writes with clusterings, by `hoodie.write.lock.conflict.resolution.strategy`."""

from __future__ import annotations

import pytest

from drawstring.base.errors import ConflictError, InvalidError, LostRaceError
from drawstring.model.instant import Action
from drawstring.table import Table
from tests.support.consistent_buckets import MORE, resizable_table, row
from tests.support.interleavings import OPTIMISTIC, interleave
from tests.support.interrupted import Interrupted, Standing, on, upserting
from tests.support.rows import held, rides
from tests.support.tables import COW, MOR, NEW_FILE_GROUPS, create
from tests.support.validation import errors

STRATEGY = "hoodie.write.lock.conflict.resolution.strategy"
SIMPLE = {**OPTIMISTIC, STRATEGY: "SimpleConcurrentFileWritesConflictResolutionStrategy"}
BUCKET = {
    **OPTIMISTIC,
    STRATEGY: "org.apache.hudi.client.transaction.BucketIndexConcurrentFileWritesConflictResolutionStrategy",
}
PREFER = {
    **OPTIMISTIC,
    STRATEGY: "org.apache.hudi.client.transaction.PreferWriterConflictResolutionStrategy",
}
ALLOW = {"hoodie.clustering.updates.strategy": "SparkAllowUpdateStrategy"}
ONE_ATTEMPT = {"hoodie.write.num.retries.on.conflict.failures": "0"}
NEWER = ("a0", "rome", 50, 50.0)
AFTER = [NEWER, ("a1", "rome", 1, 1.0)]
kinds = pytest.mark.parametrize(("table_type", "version"), [(COW, 9), (MOR, 9), (MOR, 6), (COW, 6)])


def prepared(table_type: str = COW, version: int = 9) -> Table:
    """Return a table with two file groups to cluster."""
    table = create(table_type=table_type, version=version)
    for batch in range(2):
        table.insert(rides((f"a{batch}", "rome", batch, 1.0)), options=NEW_FILE_GROUPS)
    return table


@pytest.mark.parametrize(("table_type", "version"), [(COW, 9), (MOR, 9), (MOR, 8)])
def test_a_clustering_that_was_planned_since_gives_way_to_a_preferred_writer(
    table_type: str, version: int
) -> None:
    table = prepared(table_type, version)
    first = on(Interrupted(table, lambda other: other.services.schedule_clustering(options=SIMPLE)))
    first.upsert(rides(NEWER), options={**PREFER, **ONE_ATTEMPT})
    (planned,) = table.timeline.pending_of(Action.CLUSTERING)
    assert not table.services.cluster(instant=planned.requested, options=PREFER)
    assert held(table) == AFTER
    assert table.timeline.pending() == ()
    assert table.services.validate().findings == ()


@pytest.mark.parametrize("table_type", [COW, MOR])
def test_a_preferred_writer_of_version_6_unschedules_a_clustering_that_was_planned_since(
    table_type: str,
) -> None:
    """The clustering could not tell that the write completed after it was planned."""
    table = prepared(table_type, 6)
    first = on(Interrupted(table, lambda other: other.services.schedule_clustering(options=SIMPLE)))
    first.upsert(rides(NEWER), options={**PREFER, **ONE_ATTEMPT})
    assert table.timeline.pending() == ()
    assert held(table) == AFTER
    assert table.services.cluster(options=SIMPLE)
    assert held(table) == AFTER


@kinds
def test_a_clustering_that_runs_gives_way_to_a_preferred_writer_that_began_before(
    table_type: str, version: int
) -> None:
    table = prepared(table_type, version)
    writer = Standing(table, upserting(NEWER, options={**PREFER, **ONE_ATTEMPT}))
    writer.start()
    clusterer = on(Interrupted(table, lambda _: writer.finish()))
    with pytest.raises(ConflictError):
        clusterer.services.cluster(options={**SIMPLE, **ONE_ATTEMPT})
    assert writer.error is None
    assert held(table) == AFTER
    assert table.timeline.pending() == ()
    assert table.services.validate().findings == ()


@pytest.mark.parametrize(("options", "version"), [(OPTIMISTIC, 9), (SIMPLE, 9), (BUCKET, 9), (SIMPLE, 6)])
def test_a_write_gives_way_to_a_clustering_that_was_planned_since(
    options: dict[str, str], version: int
) -> None:
    table = prepared(version=version)
    first = on(Interrupted(table, lambda other: other.services.schedule_clustering(options=SIMPLE)))
    with pytest.raises(LostRaceError, match="was planned"):
        first.upsert(rides(NEWER), options={**options, **ONE_ATTEMPT})
    assert table.services.cluster(options=options)


@kinds
def test_a_clustering_is_not_begun_where_a_preferred_writer_is_at_work(table_type: str, version: int) -> None:
    table = prepared(table_type, version)
    planned = table.services.schedule_clustering()
    assert planned

    def cluster(other: Table) -> None:
        assert not other.services.cluster(instant=planned, options=PREFER)

    on(Interrupted(table, cluster)).upsert(rides(NEWER), options={**PREFER, **ALLOW, **ONE_ATTEMPT})
    assert held(table) == AFTER
    assert table.timeline.pending() == ()


@kinds
def test_file_groups_that_a_preferred_writer_writes_to_are_not_planned(table_type: str, version: int) -> None:
    table = prepared(table_type, version)
    for batch in range(2):
        table.insert(rides((f"o{batch}", "oslo", batch, 1.0)), options=NEW_FILE_GROUPS)

    def plan(other: Table) -> None:
        assert other.services.schedule_clustering(options=PREFER)

    on(Interrupted(table, plan)).upsert(rides(NEWER), options={**SIMPLE, **ONE_ATTEMPT})
    assert table.services.cluster(options=PREFER)
    assert [each.partition for each in table.inspect.files()].count("oslo") == 1
    assert [row for row in held(table) if row[1] == "rome"] == AFTER


@kinds
@pytest.mark.parametrize("strategy", [PREFER, SIMPLE], ids=["prefer", "simple"])
def test_a_running_clustering_meets_a_writer_that_is_at_work(
    table_type: str, version: int, strategy: dict[str, str]
) -> None:
    table = prepared(table_type, version)
    writer = Standing(table, upserting(NEWER, options={**strategy, **ALLOW, **ONE_ATTEMPT}))
    clusterer = on(Interrupted(table, lambda _: writer.start()))
    if strategy is PREFER:
        with pytest.raises(ConflictError, match="Cluster the table again"):
            clusterer.services.cluster(options={**strategy, **ONE_ATTEMPT})
        writer.finish()
        assert writer.error is None
        assert held(table) == AFTER
    else:
        assert clusterer.services.cluster(options=strategy)
        writer.finish()
        assert isinstance(writer.error, LostRaceError)
        assert held(table) == [("a0", "rome", 0, 1.0), ("a1", "rome", 1, 1.0)]
    assert table.timeline.pending() == ()
    assert table.services.validate().findings == ()


@pytest.mark.parametrize("is_first", [True, False], ids=["write", "clustering"])
@kinds
def test_what_a_preferred_writer_and_a_clustering_leave(
    table_type: str, version: int, is_first: bool
) -> None:
    acts = [
        lambda table, options: table.upsert(rides(NEWER), options=options),
        lambda table, options: table.services.cluster(options=options),
    ]
    first, second = acts if is_first else acts[::-1]
    assert interleave(prepared(table_type, version), first, second, every=9, offset=version % 9, mode=PREFER)


def test_other_strategies_are_refused() -> None:
    table = prepared()
    with pytest.raises(InvalidError, match=f"{STRATEGY} is 'com.example.Mine'. Choose one of"):
        table.upsert(rides(NEWER), options={**OPTIMISTIC, STRATEGY: "com.example.Mine"})


@pytest.mark.parametrize("version", [6, 9])
def test_a_preferred_writer_leaves_a_resizing_that_it_wrote_twice_for(version: int) -> None:
    table = resizable_table(version)
    planned = table.services.schedule_clustering(options={**PREFER, **MORE})
    assert planned
    table.upsert(rides(row(3, 500), row(90, 500)), options=PREFER)
    assert errors(table) == []
    assert table.services.cluster(instant=planned, options=PREFER)
    assert {row(3, 500), row(90, 500)} <= set(held(table))
    assert errors(table) == []
