"""Log compaction of the metadata table: the same records in fewer log files."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from drawstring.base.clock import SteppingClock, SystemIds
from drawstring.filegroups.write.log_compaction import log_runs
from drawstring.formats.metadata.commit import decode_compaction_plan
from drawstring.metadata.compaction import compact, compact_logs
from drawstring.metadata.table import MetadataTable, open_metadata_table
from drawstring.metadata.writer import MetadataWriter
from drawstring.model.commit import WriteOperation
from drawstring.model.instant import Action, State
from drawstring.storage.protocol import Storage
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.txn.table_context import TableContext
from tests.support.copies import copied
from tests.support.faults import HOUR_MS, START_MS, STEPS_MAX, stride
from tests.support.faulty_storage import FaultyStorage, InjectedFault
from tests.support.limits import SetLimits
from tests.support.record_indexes import indexed_places, places
from tests.support.rows import held, rides
from tests.support.storages import files_of, stored
from tests.support.tables import COW, MOR, create
from tests.support.validation import problems

SELDOM = {
    "hoodie.clean.automatic": "false",
    "hoodie.compact.inline": "false",
    "hoodie.metadata.compact.max.delta.commits": "50",
}
INDEXED = {**SELDOM, "hoodie.index.type": "RECORD_INDEX", "hoodie.metadata.index.column.stats.enable": "true"}
OFTEN = {
    "hoodie.metadata.log.compaction.enable": "true",
    "hoodie.metadata.log.compaction.blocks.threshold": "3",
}
EVERY_CLEAN = {**SELDOM, "hoodie.clean.commits.retained": "1"}


def opened(storage: Storage, start_ms: int = START_MS) -> Table:
    return Table(TableContext(storage, clock=SteppingClock(start_ms), uses_metadata=True))


@copied
def indexed(table_type: str, version: int) -> Table:
    """Return a table with every kind of partition in its metadata table."""
    table = opened(context_of(create(table_type=table_type, version=version)).storage)
    table.upsert(rides(("a", "rome", 1, 1.0), ("b", "oslo", 1, 1.0), ("c", "bern", 1, 1.0)), options=INDEXED)
    for name in ("bloom_filters", "column_stats"):
        if name not in table.config.metadata_partitions:
            table.indexes.create(name)
    if version > 6:
        table.indexes.create("by_fare", "fare")
        table.indexes.create("by_city", "city", using="column_stats", options={"expr": "upper"})
    return table


def change(table: Table, ts: int) -> None:
    """Change all kinds of things, so that records are added, changed, removed, and come again."""
    table.upsert(rides(("a", "rome", ts, 1.0 + ts), (f"new{ts}", "oslo", ts, 2.0)), options=SELDOM)
    table.delete(rides(("b", "oslo", ts, 0.0)), options=SELDOM)
    table.services.clean(options=EVERY_CLEAN)
    table.upsert(rides(("b", "oslo", ts + 1, 3.0 + ts), ("d", "rome", ts, 1.0)), options=SELDOM)
    table.services.clean(options=EVERY_CLEAN)


def metadata_of(table: Table) -> MetadataTable:
    return open_metadata_table(
        context_of(table).storage, table.config, table.timeline, context_of(table).clock
    )


def writer_of(table: Table) -> MetadataWriter:
    return MetadataWriter.of(context_of(table).storage, context_of(table).clock, SystemIds())


def compact_now(table: Table) -> str | None:
    return compact(writer_of(table), metadata_of(table), table.timeline, lambda: None)


def compact_logs_now(table: Table, blocks: int = 2) -> str | None:
    return compact_logs(writer_of(table), metadata_of(table), table.timeline, blocks, lambda: None)


def contents(table: Table) -> dict[str, list[dict[str, Any]]]:
    partitions = table.inspect.metadata().column("partition").to_pylist()
    return {each: table.inspect.metadata(each).to_pylist() for each in partitions}


def runs(table: Table) -> dict[str, int]:
    """Return by file group of the metadata table of how many delta commits readers merge the blocks."""
    metadata = metadata_of(table)
    slices = [each for partition in metadata.ready for each in metadata.slices(partition)]
    return {
        each.file_id: len(log_runs(metadata.storage, metadata.config, each, metadata.instants))
        for each in slices
    }


@pytest.mark.parametrize(
    ("table_type", "version"),
    [(COW, 9), pytest.param(MOR, 8, marks=pytest.mark.long), (MOR, 6), (MOR, 10)],
)
def test_records_are_the_same_before_and_after_and_in_the_base_files_of_a_compaction(
    table_type: str, version: int
) -> None:
    table = indexed(table_type, version)
    change(table, 10)
    table.delete_partition("bern", options=SELDOM)
    assert compact_now(table)
    change(table, 20)
    table.services.clean(options=EVERY_CLEAN)  # the partition bern is gone
    table.upsert(rides(("c", "bern", 30, 1.0)), options=SELDOM)
    before = contents(table)
    assert len(before) >= (7 if version > 6 else 4)
    assert max(runs(table).values()) > 3

    assert compact_logs_now(table)
    assert set(runs(table).values()) <= {0, 1}
    assert (contents(table), problems(table)) == (before, [])
    change(table, 40)
    before = contents(table)
    assert compact_logs_now(table), "blocks of the first one are merged with newer ones"
    assert contents(table) == before
    assert compact_now(table)
    assert (contents(table), problems(table)) == (before, [])


@pytest.mark.parametrize("version", [6, 9])
def test_writes_compact_log_files_when_asked_to(version: int) -> None:
    table = opened(context_of(create(table_type=COW, version=version)).storage)
    for ts in range(8):
        table.upsert(rides(("a", "rome", ts, 1.0), (f"k{ts}", "oslo", ts, 1.0)), options={**SELDOM, **OFTEN})
    metadata = metadata_of(table)
    done = [
        each
        for each in metadata.own_timeline.completed_of(Action.DELTA_COMMIT)
        if metadata.store.commit_metadata(each).operation == WriteOperation.LOG_COMPACT
    ]
    assert len(done) == 3
    planned = replace(done[0], action=Action.LOG_COMPACTION, state=State.REQUESTED, completed=None)
    (operation,) = decode_compaction_plan(metadata.storage.read(metadata.store.path(planned))).operations
    assert (operation.partition, len(operation.log_files)) == ("files", 3)
    assert runs(table)["files-0000-0"] < 4
    assert (len(held(table)), problems(table)) == (9, [])
    rows = held(opened(context_of(table).storage))
    assert rows == held(Table(TableContext(context_of(table).storage, uses_metadata=False)))


def test_without_the_option_log_files_stay_and_the_number_of_delta_commits_decides() -> None:
    table = opened(context_of(create(table_type=COW)).storage)
    few = {**SELDOM, "hoodie.metadata.compact.max.delta.commits": "4"}
    for ts in range(4):
        table.upsert(rides(("a", "rome", ts, 1.0)), options=SELDOM)
    assert metadata_of(table).own_timeline.completed_of(Action.COMMIT) == ()
    table.upsert(rides(("a", "rome", 9, 1.0)), options=few)
    assert len(metadata_of(table).own_timeline.completed_of(Action.COMMIT)) == 1
    assert problems(table) == []


def test_it_waits_while_the_instant_of_a_delta_commit_is_pending() -> None:
    table = indexed(COW, 9)
    change(table, 10)
    timeline, last = table.timeline, table.timeline.writes()[-1]
    reopened = replace(last, state=State.INFLIGHT, completed=None)
    pending = timeline.with_instants(tuple(reopened if each == last else each for each in timeline.instants))
    assert compact_logs(writer_of(table), metadata_of(table), pending, 2, lambda: None) is None
    assert compact_logs_now(table)


def test_a_compaction_of_version_6_that_waits_for_long_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    table = opened(context_of(create(table_type=MOR, version=6)).storage)
    often = {**SELDOM, "hoodie.metadata.compact.max.delta.commits": "2"}
    waiting = {**often, "hoodie.metadata.max.deltacommits.when_pending": "6"}
    for ts in range(2):
        table.upsert(rides(("a", "rome", ts, 1.0)), options=SELDOM)
    planned = table.services.schedule_compaction()
    assert planned is not None
    for ts in range(2, 8):
        table.upsert(rides(("a", "rome", ts, 1.0)), options=waiting)
    told = [each.message for each in caplog.records if "waits for" in each.message]
    assert len([each for each in caplog.records if each.levelname == "WARNING"]) == len(told) == 1
    assert f"waits for the compaction {planned}" in told[0]
    assert not metadata_of(table).own_timeline.completed_of(Action.COMMIT)
    table.services.compact(instant=planned, options=often)
    table.upsert(rides(("a", "rome", 9, 1.0)), options=often)
    assert metadata_of(table).own_timeline.completed_of(Action.COMMIT)


def test_few_log_files_stay_as_they_are() -> None:
    table = indexed(COW, 9)
    change(table, 10)
    before = files_of(context_of(table).storage)
    assert compact_logs_now(table, blocks=30) is None
    assert files_of(context_of(table).storage) == before


def test_large_log_files_are_written_in_several_blocks(limit: SetLimits) -> None:
    limit(metadata_block_bytes=1)
    table = indexed(MOR, 9)
    change(table, 10)
    change(table, 20)
    before = contents(table)
    assert compact_logs_now(table)
    assert (contents(table), indexed_places(table)) == (before, places(table))
    assert compact_now(table)
    assert contents(table) == before


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.scaled
def test_whatever_step_a_writer_dies_at_no_record_is_lost(version: int) -> None:
    table = opened(context_of(create(table_type=COW, version=version)).storage, START_MS - HOUR_MS)
    options = {**INDEXED, **OFTEN}
    row = rides(("a", "rome", 5, 5.0), ("new", "oslo", 5, 5.0))
    table.upsert(rides(("a", "rome", 1, 1.0), ("b", "oslo", 1, 1.0)), options=options)
    while True:
        files, before = files_of(context_of(table).storage), held(table)
        table.upsert(row, options=options)
        if runs(table)["files-0000-0"] == 1:  # this write compacted the log files
            break
    after = held(table)
    for steps in range(0, STEPS_MAX, 2 * stride()):
        storage = stored(files)
        faulty = FaultyStorage(storage, steps)
        with suppress(InjectedFault):
            opened(faulty).upsert(row, options=options)
        survivor = opened(storage, START_MS + HOUR_MS)
        assert held(survivor) in (before, after), steps
        survivor.upsert(rides(("next", "rome", 99, 9.0), ("a", "rome", 99, 9.0)), options=options)
        assert indexed_places(survivor) == places(survivor), steps
        assert [each for each in survivor.services.validate().findings if each.check == "metadata"] == [], (
            steps
        )
        if faulty.changes < steps:
            assert steps > 3
            return
    raise AssertionError(f"still failing after {STEPS_MAX} changes")
