"""Hybrid compactions that merge the newest log files of a file group and leave the older ones as they are."""

from __future__ import annotations

import random
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest

from drawstring.base.errors import ConflictError
from drawstring.filegroups.read_task import InstantRange
from drawstring.filegroups.write.log_compaction import LogRun, log_runs
from drawstring.formats.metadata.records import one_record
from drawstring.model.instant import Action
from drawstring.table import Table
from drawstring.testing import context_of
from tests.support.faults import HOUR_MS, START_MS, Prepared, leftovers, opened, orphans
from tests.support.rows import held, rides
from tests.support.seeds import scaled_steps
from tests.support.sorted_tables import LSM, check_sorted, sorted_table
from tests.support.tables import MOR, WITHOUT_COMPACTION, create

BUCKET = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
ROWS = 20_000
TIERED = {
    "drawstring.compaction.hybrid": "true",
    "hoodie.log.compaction.blocks.threshold": "3",
    "drawstring.compaction.hybrid.log.ratio": "9",
    "drawstring.compaction.hybrid.space.ratio": "9",
}
KINDS = pytest.mark.parametrize(
    "how",
    [{"version": 8}, {"version": 9, "ordering": ()}, {"version": 10}, {"version": 10, "properties": LSM}],
    ids=["8", "9 without ordering", "10", "lsm_tree"],
)


def with_base(how: dict[str, Any]) -> Table:
    """Create a table of one file group with a large base file."""
    properties = {**BUCKET, **how.get("properties", {})}
    table = create(table_type=MOR, **{**how, "properties": properties})
    table.bulk_insert(noise(range(ROWS), 1))
    return table


def noise(numbers: Iterable[int], ts: int) -> pa.Table:
    """Return rows that cannot be compressed much."""
    chance = random.Random(ts)
    return rides(*((f"{number:05}", "rome", ts, chance.random()) for number in numbers))


def upsert(table: Table, ts: int, first: int, count: int) -> None:
    table.upsert(noise(range(first, first + count), ts), options=WITHOUT_COMPACTION)


def runs(table: Table) -> list[LogRun]:
    """Return what a reader merges with the base file of the only file group."""
    (file_slice,) = table.inspect.files()
    return log_runs(context_of(table).storage, table.config, file_slice, InstantRange.of(table.timeline))


def one_large_and_two_small(how: dict[str, Any]) -> Table:
    table = with_base(how)
    upsert(table, 2, 0, 9000)
    upsert(table, 3, 1400, 5)
    upsert(table, 4, 1402, 5)
    return table


def log_files_of_plan(table: Table, instant: str | None) -> list[int]:
    plan = one_record(context_of(table).storage.read(f".hoodie/timeline/{instant}.compaction.requested"))
    return [len(each["deltaFilePaths"]) for each in plan["operations"]]


def changes_since(table: Table, start: str) -> set[str]:
    return set(map(str, table.incremental(start, columns=["id", "ts", "fare"]).to_arrow().to_pylist()))


@KINDS
def test_only_the_newest_runs_are_merged_if_an_older_one_is_large(how: dict[str, Any]) -> None:
    table = one_large_and_two_small(how)
    rows, large = held(table), runs(table)[0]
    past = [held(table, as_of=each.requested) for each in table.timeline.writes()]
    instant = table.services.schedule_compaction(options=TIERED)
    assert log_files_of_plan(table, instant) == [2]
    assert table.services.compact(instant=instant).files == 1
    assert [runs(table)[0], len(runs(table))] == [large, 2]
    assert held(table) == rows
    assert [held(table, as_of=each.requested) for each in table.timeline.writes()[:-1]] == past
    assert table.timeline.writes()[-1].action is Action.COMMIT
    upsert(table, 5, 1403, 2)
    upsert(table, 1, 1404, 2)
    rows, instant = held(table), table.services.schedule_compaction(options=TIERED)
    assert log_files_of_plan(table, instant) == [5], "with the files that the last one replaced"
    table.services.compact(instant=instant)
    assert (len(runs(table)), held(table)) == (2, rows)
    table.services.compact()
    assert (runs(table), held(table), held(table, read_optimized=True)) == ([], rows, rows)
    assert (leftovers(table), orphans(table)) == ([], [])


@pytest.mark.scaled
@KINDS
@pytest.mark.parametrize("seed", range(3))
def test_a_table_with_many_hybrid_compactions_equals_one_without(how: dict[str, Any], seed: int) -> None:
    chance, partial_plans, starts = random.Random(seed), 0, ["", ""]
    one, other = with_base(how), with_base(how)
    for turn in range(2, 2 + scaled_steps(32)):
        size = chance.choice([1, 4, 4, 30, 3000])
        numbers = chance.sample(range(ROWS + 100), size)
        verb = chance.choice(["upsert", "upsert", "delete"])
        rows = rides(*((f"{number:05}", "rome", chance.randrange(9), float(turn)) for number in numbers))
        for table in (one, other):
            getattr(table, verb)(rows, options=WITHOUT_COMPACTION)
        instant = one.services.schedule_compaction(options=TIERED)
        if instant is not None:
            partial_plans += log_files_of_plan(one, instant) != [len(one.inspect.files()[0].logs)]
            one.services.compact(instant=instant)
        assert len(runs(one)) < 3
        if turn == 12:
            starts = [each.timeline.writes()[-1].completed or "" for each in (one, other)]
        if turn % 4 == 0:
            assert held(one) == held(other), turn
    assert partial_plans
    changed = changes_since(one, starts[0])
    assert changed <= changes_since(other, starts[1]), "less what lost to versions from before"
    if "ordering" in how:
        assert changed == changes_since(other, starts[1])
    one.services.compact()
    assert held(one) == held(one, read_optimized=True) == held(other)


@pytest.mark.scaled
@pytest.mark.parametrize("properties", [{}, LSM], ids=["default", "lsm_tree"])
def test_a_merge_of_some_runs_that_dies_at_any_step_is_begun_anew(properties: dict[str, str]) -> None:
    table = one_large_and_two_small({"version": 10, "properties": properties})
    instant = table.services.schedule_compaction(options=TIERED)
    rows = held(table)
    for copy, step in Prepared.of(table).deaths(lambda each: each.services.compact(instant=instant), every=2):
        writer = opened(copy, START_MS + HOUR_MS)
        writer.upsert(rides(("01402", "rome", 9, 9.0)), options=WITHOUT_COMPACTION)
        expected = sorted([("01402", "rome", 9, 9.0), *(row for row in rows if row[0] != "01402")])
        assert held(writer) == expected, step
        with suppress(ConflictError):  # its runner may only stand still: the plan is unscheduled
            opened(copy, START_MS + 2 * HOUR_MS).services.compact(instant=instant)
        assert held(writer) == expected, step
        opened(copy, START_MS + 3 * HOUR_MS).services.compact()
        assert held(writer, read_optimized=True) == expected, step
        assert (orphans(writer), leftovers(writer)) == ([], []), step


def test_sorted_tables_keep_few_runs_and_rarely_write_base_files_by_themselves() -> None:
    table = sorted_table(properties=BUCKET)
    table.bulk_insert(noise(range(ROWS), 1))
    base_instants, most = set(), 0
    for ts in range(2, 60):
        first = ts * 379 % ROWS
        table.upsert(noise(range(first, first + 10), ts))
        most = max(most, len(runs(table)))
        base_instants.add(table.inspect.files()[0].base_instant)
    assert most < 5 + 5, "fewer than five after a compaction, and four more until the next one"
    assert 1 <= len(base_instants) <= 5, "compactions of Hudi would have written twelve"
    assert check_sorted(table)
    rows = held(table)
    assert table.services.compact()
    assert (runs(table), held(table, read_optimized=True)) == ([], rows)


def test_sorted_tables_whose_runs_cannot_be_merged_alone_get_base_files() -> None:
    table = sorted_table(properties=BUCKET)
    table.bulk_insert(noise(range(ROWS), 1))
    for ts in range(2, 12):
        part = rides(("00001", "rome", ts, 1.0)).select(["id", "city", "ts"])
        table.upsert(part, options={"drawstring.write.partial_update": "true"})
    assert len(runs(table)) < 10
    assert [row[2] for row in held(table) if row[0] == "00001"] == [11]
