"""Indexes that are built while writers go on: planned, run, given up and run again."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from drawstring.base.clock import SteppingClock
from drawstring.base.errors import ConflictError, InvalidError, UnsupportedError
from drawstring.formats.metadata.plans import decode_indexing
from drawstring.metadata.partitions.column_stats import ColumnStatsMaintainer, PartitionStatsMaintainer
from drawstring.metadata.record_tables import records
from drawstring.metadata.table import open_metadata_table
from drawstring.model.instant import Action, Instant, State
from drawstring.query.table_state import load_facts
from drawstring.services import indexing
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.timeline.store import TimelineStore
from drawstring.txn.table_context import TableContext
from tests.support import built_statistics, expression_indexes
from tests.support.bloom_filters import indexed_filters, stored_filters
from tests.support.copies import copied
from tests.support.faults import HOUR_MS, START_MS, STEPS_MAX, stride
from tests.support.faulty_storage import FaultyStorage, InjectedFault
from tests.support.index_histories import QUIET, SCHEMA, History
from tests.support.record_indexes import indexed_places, places
from tests.support.secondary_indexes import indexed_values, stored_values
from tests.support.storages import files_of, stored
from tests.support.tables import COW, MOR, create

Beside = Callable[[Table], Any]
BY_NAME, UPPER = "secondary_index_by_name", "expr_index_upper"
STATISTICS = ["column_stats", "partition_stats"]


@copied
def made(table_type: str, *, version: int = 9) -> Table:
    """Return a table with some commits."""
    created = create(SCHEMA, table_type=table_type, partition_by="part", ordering="ts", version=version)
    table = opened(created)
    history = History(table, "GLOBAL_SIMPLE", 1)
    for ids in (range(20), range(5, 9), (3, 30)):
        table.upsert(history.rows(list(ids), True), options=QUIET)
    return table


def opened(table: Table, start_ms: int = START_MS) -> Table:
    context = TableContext(context_of(table).storage, clock=SteppingClock(start_ms), uses_metadata=True)
    return Table(context)


def check(table: Table) -> None:
    """Check that the indexes of a table are those that its files give."""
    known = {each.name for each in table.indexes.list() if each.is_complete}
    if "record_index" in known:
        assert indexed_places(table) == places(table)
    if BY_NAME in known:
        assert indexed_values(table, BY_NAME) == stored_values(table, "name")
    if "bloom_filters" in known:
        assert indexed_filters(table) == stored_filters(table)
    if UPPER in known:
        assert expression_indexes.kept(table, UPPER) == expression_indexes.built(table, UPPER)
    for name, maintainer in (
        ("column_stats", ColumnStatsMaintainer()),
        ("partition_stats", PartitionStatsMaintainer()),
    ):
        if name in known:
            assert built_statistics.kept(table, name) == built_statistics.built(table, maintainer)


def schedule(table: Table, name: str) -> str:
    if name == BY_NAME:
        return table.indexes.schedule("by_name", "name")
    if name == UPPER:
        return table.indexes.schedule("upper", "name", using="column_stats", options={"expr": "upper"})
    return table.indexes.schedule(name)


def beside(monkeypatch: pytest.MonkeyPatch, act: Callable[[], Any]) -> None:
    """Have something happen after an index is begun, before its records are written."""
    fill, acts = indexing.fill_partition, [act]

    def filling(*args: Any) -> list[str]:
        if acts:
            acts.pop()()
        return fill(*args)

    monkeypatch.setattr(indexing, "fill_partition", filling)


@pytest.mark.parametrize("name", ["record_index", "bloom_filters", "column_stats", BY_NAME, UPPER])
@pytest.mark.parametrize(("table_type", "version"), [(COW, 9), (MOR, 9), (MOR, 8)])
def test_writers_and_services_go_on_while_an_index_is_built(
    table_type: str, version: int, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(table_type, version=version)
    if name == BY_NAME:
        table.indexes.create("record_index")
    writer = opened(table, START_MS + HOUR_MS)
    history = History(writer, "GLOBAL_SIMPLE", 7)
    beside(monkeypatch, lambda: [history.step() for _ in range(4)])
    instant = schedule(table, name)
    assert name in {each.name for each in table.indexes.list() if not each.is_complete}
    writer.upsert(history.rows([2, 60], True), options=QUIET)
    built = {each.name for each in table.indexes.run(instant)}
    assert built == ({*STATISTICS} if name == "column_stats" else {name})
    check(table)
    assert not table.config.properties.get("hoodie.table.metadata.partitions.inflight")
    for _ in range(3):
        history.step()
    check(writer)


def test_the_timeline_tells_of_the_index_as_that_of_hudi() -> None:
    table = made(COW)
    last = table.timeline.writes()[-1].requested
    instant = table.indexes.schedule("column_stats")
    store = TimelineStore(context_of(table).storage, table.config, SteppingClock())
    (pending,) = store.load().pending_of(Action.INDEXING)
    assert pending == Instant(instant, Action.INDEXING, State.REQUESTED)
    plan = decode_indexing(store.read_requested(pending))
    assert [(each.name, each.up_to) for each in plan.partitions] == [(name, last) for name in STATISTICS]
    table.indexes.run()
    (done,) = store.load().completed_of(Action.INDEXING)
    assert done.requested == instant
    assert decode_indexing(store.read(done)).names == tuple(STATISTICS)
    assert table.indexes.run() == []
    with pytest.raises(InvalidError, match=f"no pending indexing {instant}. Pending are: none"):
        table.indexes.run(instant)


def test_readers_do_not_use_an_index_that_is_being_built(monkeypatch: pytest.MonkeyPatch) -> None:
    table = made(COW)
    seen: list[Any] = []
    reader = opened(table)

    def read() -> None:
        scan = reader.scan(where="upper(name) = 'NONE'")
        seen.append((scan.to_arrow().num_rows, {step.by for step in scan.explain().steps if step.skipped}))
        with pytest.raises(InvalidError, match="is still being built"):
            reader.inspect.metadata(UPPER)

    beside(monkeypatch, read)
    table.indexes.run(schedule(table, UPPER))
    assert seen == [(0, set())]
    steps = {step.by for step in reader.scan(where="upper(name) = 'NONE'").explain().steps if step.skipped}
    assert steps == {UPPER}


@pytest.mark.parametrize("table_type", [COW, MOR])
@pytest.mark.parametrize("name", ["record_index", UPPER, "column_stats"])
@pytest.mark.scaled
def test_whatever_step_an_indexer_dies_at_the_next_run_builds_the_index(table_type: str, name: str) -> None:
    table = made(table_type)
    schedule(table, name)
    files = files_of(context_of(table).storage)
    for steps in range(0, STEPS_MAX, 3 * stride()):
        storage = stored(files)
        faulty = FaultyStorage(storage, steps)
        with suppress(InjectedFault):
            Table(TableContext(faulty, clock=SteppingClock(START_MS), uses_metadata=True)).indexes.run()
        survivor = Table(TableContext(storage, clock=SteppingClock(START_MS + HOUR_MS), uses_metadata=True))
        survivor.upsert(History(survivor, "GLOBAL_SIMPLE", steps).rows([1, 70], True), options=QUIET)
        check(survivor)
        survivor.indexes.run()
        assert name in {each.name for each in survivor.indexes.list() if each.is_complete}, steps
        check(survivor)
        if faulty.changes < steps:
            assert steps > 6
            return
    raise AssertionError(f"still failing after {STEPS_MAX} changes")


def test_an_index_that_is_dropped_while_it_is_built_stays_away(monkeypatch: pytest.MonkeyPatch) -> None:
    table = made(MOR)
    other = opened(table, START_MS + HOUR_MS)
    with monkeypatch.context() as patch:
        beside(patch, lambda: other.indexes.drop("column_stats"))
        with pytest.raises(ConflictError, match=r"was dropped.* Schedule it again"):
            table.indexes.run(table.indexes.schedule("column_stats"))
    assert table.indexes.list() == []
    other.upsert(History(other, "GLOBAL_SIMPLE", 3).rows([1], True), options=QUIET)
    assert other.indexes.create("column_stats")
    check(other)


def test_an_index_that_is_planned_can_be_dropped_and_not_planned_twice() -> None:
    table = made(COW)
    instant = table.indexes.schedule("upper", "name", using="column_stats", options={"expr": "upper"})
    for again in (table.indexes.schedule, table.indexes.create):
        with pytest.raises(InvalidError, match=f"The indexing {instant} builds the index {UPPER}"):
            again("upper", "name", using="column_stats", options={"expr": "lower"})
    table.indexes.drop("upper")
    assert table.indexes.run() == []
    table.indexes.create("upper", "name", using="column_stats", options={"expr": "lower"})
    assert expression_indexes.kept(table, UPPER) == expression_indexes.built(table, UPPER)


def test_a_restore_while_an_index_is_built_has_it_built_again(monkeypatch: pytest.MonkeyPatch) -> None:
    table = made(COW)
    other = opened(table, START_MS + HOUR_MS)
    then = table.timeline.writes()[-1].requested
    other.upsert(History(other, "GLOBAL_SIMPLE", 4).rows([1, 80], True), options=QUIET)
    instant = schedule(table, UPPER)
    with monkeypatch.context() as patch:
        beside(patch, lambda: other.savepoints.restore(then))
        with pytest.raises((ConflictError, InvalidError)):
            table.indexes.run(instant)
    if other.indexes.run() == []:
        other.indexes.run(schedule(other, UPPER))
    check(other)
    assert UPPER in {each.name for each in other.indexes.list() if each.is_complete}


def test_two_processes_do_not_build_one_index(monkeypatch: pytest.MonkeyPatch) -> None:
    table = made(COW)
    other = opened(table)
    instant = schedule(table, UPPER)
    refused: list[str] = []

    def run() -> None:
        assert other.indexes.run() == []
        with pytest.raises(ConflictError, match="Another process runs this indexing") as caught:
            other.indexes.run(instant)
        refused.append(str(caught.value))

    beside(monkeypatch, run)
    assert table.indexes.run(instant)
    assert len(refused) == 1


def test_a_write_of_another_engine_that_began_before_makes_the_index_wait() -> None:
    table = made(COW)
    table.indexes.create("bloom_filters")
    context = context_of(table)
    instant = schedule(table, UPPER)
    own = TimelineStore(context.storage, table.config, SteppingClock(START_MS + HOUR_MS))
    facts = load_facts(context.storage, SteppingClock())
    metadata = open_metadata_table(facts.storage, facts.config, facts.timeline, SteppingClock())
    time = own.new_time(own.load())
    begun = own.start(own.request(Action.COMMIT, time))
    known = metadata.store.start(metadata.store.request(Action.DELTA_COMMIT, time))
    lazy = {"hoodie.clean.failed.writes.policy": "NEVER"}
    with pytest.raises(ConflictError, match=rf"Another engine began the write {time} before the index"):
        table.indexes.run(instant, options=lazy)
    metadata.store.remove_pending(known)
    own.remove_pending(begun)
    assert table.indexes.run(instant, options=lazy)
    assert records(metadata, "files").num_rows


def test_a_table_of_version_6_says_why_it_plans_no_index_and_what_to_do() -> None:
    table = made(MOR, version=6)
    with pytest.raises(UnsupportedError) as told:
        table.indexes.schedule("record_index")
    assert "in tables of version 8 and later only, and the table has version 6" in str(told.value)
    assert "Create the index at once (`table.indexes.create`" in str(told.value)
    assert "drawstring versions upgrade" in str(told.value)
    assert not table.indexes.list()
    assert table.indexes.create("record_index").is_complete
