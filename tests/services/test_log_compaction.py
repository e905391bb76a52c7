"""Log compaction, alone and as part of a hybrid compaction: fewer blocks to read, the same rows."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Any

import pytest

from drawstring.base.errors import ConflictError, InvalidError, UnsupportedError
from drawstring.filegroups.read_task import InstantRange
from drawstring.filegroups.write.log_compaction import log_runs
from drawstring.filegroups.write.markers import Markers
from drawstring.formats.metadata.records import one_record
from drawstring.model.files import LogFile
from drawstring.model.instant import Action
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.timeline.store import TimelineStore
from drawstring.write.placement import PlaceGroups
from tests.support.combinations import others_long
from tests.support.compaction import once
from tests.support.faults import HOUR_MS, START_MS, Prepared, leftovers, opened, orphans
from tests.support.rows import SCHEMA, held, rides, sorted_rows
from tests.support.tables import BUCKETS, COW, MOR, WITHOUT_COMPACTION, create, logs, versions

FEW = {"hoodie.log.compaction.blocks.threshold": "2"}
HYBRID = {
    **FEW,
    "drawstring.compaction.hybrid": "true",
    "drawstring.compaction.hybrid.log.ratio": "0.5",
}
BASE = [(key, city, 5, 5.0) for city in ("oslo", "rome") for key in "abcdef"]
STEPS: list[tuple[str, list[tuple[Any, ...]]]] = [
    ("upsert", [("a", "rome", 6, 6.0), ("b", "rome", 6, 6.0), ("a", "oslo", 1, 1.0)]),
    ("delete", [("b", "rome", 0, 0.0), ("c", "rome", 0, 0.0), ("b", "oslo", 0, 0.0)]),
    ("upsert", [("c", "rome", 1, 1.0), ("b", "oslo", 7, 7.0), ("a", "rome", 4, 4.0)]),
    ("delete", [("a", "oslo", 9, 9.0)]),
]


def with_logs(version: int, steps: int = len(STEPS), **how: Any) -> Table:
    table = create(table_type=MOR, version=version, **how)
    table.upsert(rides(*BASE))
    for verb, rows in STEPS[:steps]:
        getattr(table, verb)(rides(*rows), options=WITHOUT_COMPACTION)
    return table


def blocks(table: Table) -> dict[str, int]:
    """How many log blocks a query merges, by partition."""
    instants = InstantRange.of(table.timeline)
    return {
        each.partition: sum(
            run.blocks for run in log_runs(context_of(table).storage, table.config, each, instants)
        )
        for each in table.inspect.files()
    }


@versions
@pytest.mark.parametrize("block_format", ["parquet", "avro"])
@pytest.mark.parametrize("ordering", ["ts", ()])
def test_many_log_blocks_become_few_and_the_rows_stay(version: int, block_format: str, ordering: Any) -> None:
    options = {"hoodie.logfile.data.block.format": block_format}
    table = with_logs(version, ordering=ordering)
    columns = ["_hoodie_record_key", "_hoodie_commit_time", "_hoodie_commit_seqno", "ts"]
    before = sorted(map(str, table.scan(columns=columns).to_arrow().to_pylist()))
    rows = held(table)
    assert blocks(table) == {"oslo": 4, "rome": 3}
    result = table.services.log_compact(options={**FEW, **options})
    assert result
    assert (result.operation, result.files) == ("log_compact", 4 if version == 10 else 2)
    assert blocks(table) == {"oslo": 2, "rome": 2}
    assert sorted(map(str, table.scan(columns=columns).to_arrow().to_pylist())) == before
    assert table.timeline.writes()[-1].action is Action.DELTA_COMMIT
    assert not table.services.log_compact(options=FEW)
    table.services.compact()
    assert (held(table), held(table, read_optimized=True), logs(table)) == (rows, rows, 0)
    assert (leftovers(table), orphans(table)) == ([], [])


SEEDS = [(6, 0), (8, 2), (9, 3), (6, 1), (8, 0), (9, 0)]


@pytest.mark.parametrize(("version", "seed"), others_long(SEEDS, SEEDS[:3]))
def test_a_table_whose_logs_are_compacted_now_and_then_equals_one_without(version: int, seed: int) -> None:
    chance = random.Random(seed)
    ordering = chance.choice(["ts", ()])
    one, other = (create(table_type=MOR, version=version, ordering=ordering) for _ in range(2))
    for table in (one, other):
        table.upsert(rides(*BASE))
    for turn in range(12):
        keys = chance.sample("abcdefgh", 4)
        rows = rides(
            *((key, chance.choice(["oslo", "rome"]), chance.randrange(10), float(turn)) for key in keys)
        )
        verb = chance.choice(["upsert", "upsert", "delete"])
        for table in (one, other):
            getattr(table, verb)(rows, options=WITHOUT_COMPACTION)
        if chance.random() < 0.4:
            one.services.log_compact(options=FEW)
        if chance.random() < 0.1:
            one.services.compact()
            other.services.compact()
        assert held(one) == held(other), turn
    one.services.compact()
    assert held(one) == held(one, read_optimized=True) == held(other)


@versions
def test_queries_of_earlier_times_and_of_changes_see_what_they_saw(version: int) -> None:
    table = with_logs(version)
    times = [each.requested for each in table.timeline.writes()]
    past = [held(table, as_of=time) for time in times]
    start = table.timeline.writes()[0].completed or times[0]
    increment = sorted(map(str, table.incremental(start).to_arrow().to_pylist()))
    table.services.log_compact(options=FEW)
    assert [held(table, as_of=time) for time in times] == past
    assert sorted(map(str, table.incremental(start).to_arrow().to_pylist())) == increment
    newest = table.timeline.writes()[-2].completed or times[-1]
    assert table.incremental(newest).to_arrow().num_rows == 0


@versions
@pytest.mark.parametrize("index", [{}, BUCKETS], ids=["simple", "bucket"])
def test_writers_go_on_while_logs_are_compacted(version: int, index: dict[str, str]) -> None:
    table = with_logs(version, properties=index)
    expected = with_logs(version, properties=index)

    def more(each: Table) -> None:
        each.upsert(rides(("a", "rome", 8, 8.0), ("b", "rome", 8, 8.0)), options=WITHOUT_COMPACTION)
        each.delete(rides(("f", "oslo", 0, 0.0)), options=WITHOUT_COMPACTION)

    more(expected)
    assert table.services.log_compact(progress=once(lambda: more(table)), options=FEW)
    assert held(table) == held(expected)
    table.services.log_compact(options=FEW)
    assert held(table) == held(expected)
    table.services.compact()
    assert held(table) == held(table, read_optimized=True) == held(expected)


@pytest.mark.parametrize(
    ("version", "begins_first"),
    [(6, False), *((version, first) for version in (8, 9, 10) for first in (True, False))],
)
def test_a_write_during_a_log_compaction_is_in_the_increment_that_has_both(
    version: int, begins_first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = with_logs(version, ordering=(), properties=BUCKETS)
    before = table.timeline.writes()[-1]
    plans = [] if begins_first else [table.services.schedule_log_compaction(options=FEW)]
    places = PlaceGroups.__call__

    def placed(task: PlaceGroups, *given: Any) -> Any:
        if not plans:
            plans.append(table.services.schedule_log_compaction(options=FEW))
        return places(task, *given)

    monkeypatch.setattr(PlaceGroups, "__call__", placed)
    written = table.upsert(rides(("a", "rome", 0, 90.0)), options=WITHOUT_COMPACTION)
    assert plans[0]
    assert (written.instant < plans[0]) == begins_first
    table.services.log_compact(instant=plans[0])
    start = before.completed or before.requested
    found = table.incremental(start, columns=SCHEMA.names).to_arrow()
    assert sorted_rows(found) == [("a", "rome", 0, 90.0)]


@versions
@pytest.mark.scaled
def test_a_log_compaction_that_dies_at_any_step_is_begun_anew(version: int) -> None:
    table = with_logs(version)
    instant = table.services.schedule_log_compaction(options=FEW)
    assert instant is not None
    rows, every = held(table), 1 if version == 9 else 3
    start = Prepared.of(table)
    for copy, step in start.deaths(
        lambda each: each.services.log_compact(instant=instant), steps_min=10, every=every
    ):
        writer = opened(copy, START_MS + HOUR_MS)
        writer.upsert(rides(("f", "rome", 9, 9.0)), options=WITHOUT_COMPACTION)
        expected = sorted([("f", "rome", 9, 9.0), *(row for row in rows if row[:2] != ("f", "rome"))])
        assert held(writer) == expected, step
        with suppress(ConflictError):  # its runner may only stand still: the plan is unscheduled
            opened(copy, START_MS + 2 * HOUR_MS).services.log_compact(instant=instant)
        assert held(writer) == expected, step
        opened(copy, START_MS + 2 * HOUR_MS).services.log_compact(options=FEW)
        assert (orphans(writer), leftovers(writer)) == ([], []), step
        opened(copy, START_MS + 3 * HOUR_MS).services.compact()
        assert held(writer, read_optimized=True) == expected, step


@versions
def test_a_log_file_that_another_engine_wrote_by_half_when_it_died_is_not_in_the_way(version: int) -> None:
    table = with_logs(version)
    instant = table.services.schedule_log_compaction(options=FEW)
    assert instant is not None
    storage, rows = context_of(table).storage, held(table)
    store = TimelineStore(storage, table.config, context_of(table).clock)
    store.start(store.load().pending()[0])
    log = next(each.logs[-1] for each in table.inspect.files() if each.partition == "rome")
    named_by = log.instant if version == 6 else instant
    name = LogFile.name_of(log.file_id, named_by, log.version + 1, "9-9-9")
    if log.native is not None:
        name = LogFile.native_name_of(log.file_id, named_by, log.version + 1, "9-9-9", log.native)
    path = f"rome/{name}"
    Markers(storage, instant).create(path, "APPEND")
    storage.put(path, storage.read(log.status.path)[:-40])
    assert table.services.log_compact(instant=instant)
    assert held(table) == rows and not storage.exists(path)


def test_the_plan_on_the_timeline_is_the_one_of_hudi() -> None:
    table = with_logs(9)
    instant = table.services.schedule_log_compaction(options=FEW)
    name = f".hoodie/timeline/{instant}.logcompaction.requested"
    plan = one_record(context_of(table).storage.read(name))
    assert plan["strategy"]["compactorClassName"].endswith("LogCompactionExecutionHelper")
    assert plan["preserveHoodieMetadata"] is True
    assert [len(each["deltaFilePaths"]) for each in plan["operations"]] == [4, 3]
    assert table.services.schedule_log_compaction(options=FEW) is None
    assert table.services.schedule_compaction() is None
    assert table.services.compact()
    assert (table.timeline.pending(), logs(table)) == ((), 0)


def test_a_write_compacts_logs_by_itself() -> None:
    table = create(table_type=MOR)
    options = {"hoodie.log.compaction.inline": "true", "hoodie.log.compaction.blocks.threshold": "3"}
    for turn in range(1, 9):
        table.upsert(rides(("a", "rome", turn, float(turn))), options=options)
        assert blocks(table)["rome"] < 3
    assert held(table) == [("a", "rome", 8, 8.0)]


def test_logs_that_cannot_be_merged_among_themselves_are_left_alone() -> None:
    table = create(table_type=MOR)
    table.upsert(rides(*BASE))
    for ts in (6, 7):
        part = rides(("a", "rome", ts, 1.0)).select(["id", "city", "ts"])
        table.upsert(part, options={"drawstring.write.partial_update": "true"})
    assert not table.services.log_compact(options=FEW)
    with pytest.raises(InvalidError, match="COPY_ON_WRITE"):
        create(table_type=COW).services.log_compact()
    without = create(table_type=MOR, properties={"hoodie.populate.meta.fields": "false"})
    with pytest.raises(UnsupportedError, match="no meta columns"):
        without.services.log_compact()


def grown(version: int = 9) -> Table:
    """`rome` has logs as large as its base file, `oslo` a few small ones, `bern` one of them."""
    table = create(table_type=MOR, version=version)
    many = [(str(number), city, 1, float(number)) for number in range(3000) for city in ("oslo", "bern")]
    table.upsert(rides(*many, ("a", "rome", 1, 1.0)))
    for ts in (2, 3, 4):
        table.upsert(rides(("a", "rome", ts, 1.0), ("1", "oslo", ts, 1.0)))
    table.delete(rides(("2", "bern", 9, 1.0)), options=WITHOUT_COMPACTION)
    return table


def test_a_hybrid_compaction_decides_for_each_file_group() -> None:
    table, expected = grown(), held(grown())
    instant = table.services.schedule_compaction(options=HYBRID)
    plan = one_record(context_of(table).storage.read(f".hoodie/timeline/{instant}.compaction.requested"))
    kinds = {each["partitionPath"]: "DRAWSTRING_LOGS_ONLY" in each["metrics"] for each in plan["operations"]}
    assert kinds == {"rome": False, "oslo": True}
    result = table.services.compact(instant=instant)
    assert result and (result.operation, result.files) == ("compact", 2)
    assert table.timeline.writes()[-1].action is Action.COMMIT
    assert blocks(table) == {"bern": 1, "oslo": 1, "rome": 0}
    assert held(table) == expected
    table.upsert(rides(("1", "oslo", 9, 9.0), ("a", "rome", 9, 9.0)), options=WITHOUT_COMPACTION)
    after = sorted(row for row in expected if row[:2] not in (("1", "oslo"), ("a", "rome")))
    after = sorted([*after, ("1", "oslo", 9, 9.0), ("a", "rome", 9, 9.0)])
    assert held(table) == after
    table.services.compact()
    assert (held(table), held(table, read_optimized=True), logs(table)) == (after, after, 0)
    assert (leftovers(table), orphans(table)) == ([], [])


@pytest.mark.scaled
def test_writers_go_on_while_a_hybrid_compaction_runs_and_dies() -> None:
    table = grown()
    instant = table.services.schedule_compaction(options=HYBRID)
    rows = held(table)
    for copy, step in Prepared.of(table).deaths(lambda each: each.services.compact(instant=instant), every=3):
        writer = opened(copy, START_MS + HOUR_MS)
        writer.upsert(rides(("1", "oslo", 9, 9.0)), options=WITHOUT_COMPACTION)
        with suppress(ConflictError):  # its runner may only stand still: the plan is unscheduled
            opened(copy, START_MS + 2 * HOUR_MS).services.compact(instant=instant)
        expected = sorted([("1", "oslo", 9, 9.0), *(row for row in rows if row[:2] != ("1", "oslo"))])
        assert held(writer) == expected, step
        opened(copy, START_MS + 3 * HOUR_MS).services.compact()
        assert held(writer) == expected, step
        assert (orphans(writer), leftovers(writer)) == ([], []), step


def test_hybrid_compaction_is_refused_where_readers_could_not_cope() -> None:
    table = grown(6)
    with pytest.raises(UnsupportedError, match="needs table version 8"):
        table.services.schedule_compaction(options=HYBRID)
    assert table.timeline.pending() == ()
    table.services.schedule_compaction()
    planned = table.timeline.pending()
    with pytest.raises(UnsupportedError, match="needs table version 8"):
        table.services.compact(options=HYBRID)
    (done,) = table.services.run(options={**HYBRID, "hoodie.clean.automatic": False})
    assert isinstance(done.error, UnsupportedError)
    assert table.timeline.pending() == planned, "what is refused runs no plan either"
