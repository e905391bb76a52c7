"""Compaction: logs become base files, readers see the same rows, and what was begun is finished."""

from __future__ import annotations

from pathlib import Path

import pytest

import drawstring
from drawstring.base.errors import CorruptTableError, InvalidError
from drawstring.model.files import BaseFile, FileSlice, FileStatus, LogFile
from drawstring.model.instant import Action
from drawstring.model.plans import CompactionPlan
from drawstring.services.compaction import plan_compaction
from drawstring.testing import context_of
from tests.support.compaction import FIRST, MERGED, NEWER, logged, schedule
from tests.support.faults import leftovers, orphans
from tests.support.golden import golden_storage
from tests.support.rows import held, rides
from tests.support.tables import BUCKETS, COW, MOR, create, logs, versions


@versions
@pytest.mark.parametrize("index", [{}, BUCKETS], ids=["simple", "bucket"])
def test_logs_become_base_files_with_the_same_rows(version: int, index: dict[str, str]) -> None:
    table = logged(version, properties=index)
    assert (held(table), held(table, read_optimized=True)) == (MERGED, sorted(FIRST))
    before = table.scan(columns=["_hoodie_record_key", "_hoodie_commit_time"]).to_arrow().to_pylist()
    result = table.services.compact()
    assert result
    assert (result.operation, result.files) == ("compact", 3 if index else 2)
    assert logs(table) == 0
    assert held(table) == held(table, read_optimized=True) == MERGED
    after = table.scan(columns=["_hoodie_record_key", "_hoodie_commit_time"]).to_arrow().to_pylist()
    assert sorted(map(str, after)) == sorted(map(str, before))
    assert table.timeline.latest_write() == table.timeline.find(result.instant)


@versions
def test_without_logs_there_is_nothing_to_compact(version: int) -> None:
    table = logged(version)
    table.services.compact()
    instants = table.timeline.instants
    assert not table.services.compact()
    assert table.timeline.instants == instants
    assert not create(table_type=MOR, version=version).services.compact()


def test_only_file_groups_with_logs_are_compacted() -> None:
    table = logged(9)
    table.services.compact()
    table.upsert(rides(("b", "rome", 9, 9.0)))
    result = table.services.compact()
    assert result
    assert (result.files, result.records_written) == (1, 3)


@versions
def test_a_file_group_whose_rows_are_all_deleted_compacts_to_an_empty_one(version: int) -> None:
    table = create(table_type=MOR, version=version, properties=BUCKETS)
    table.upsert(rides(*FIRST))
    table.delete(rides(*FIRST))
    table.services.compact()
    assert held(table) == []
    table.upsert(rides(*NEWER))
    assert held(table) == sorted(NEWER)


def test_a_copy_on_write_table_is_not_compacted() -> None:
    table = create(table_type=COW)
    with pytest.raises(InvalidError, match="COPY_ON_WRITE table has no log files") as caught:
        table.services.compact()
    assert caught.value.table == table.uri


def test_progress_is_told_file_group_by_file_group() -> None:
    table = create(table_type=MOR)
    cities = [f"city{number}" for number in range(7)]
    for ts in (1, 2):
        table.upsert(rides(*(("a", city, ts, float(ts)) for city in cities)))
    told: list[tuple[int, int]] = []
    table.services.compact(progress=lambda done, of: told.append((done, of)))
    assert told[-1] == (7, 7)
    assert [done for done, _ in told] == sorted({done for done, _ in told})


@versions
def test_a_damaged_file_group_that_was_overwritten_holds_up_no_compaction(version: int) -> None:
    table = logged(version)
    (damaged,) = (each.logs[0].status.path for each in table.inspect.files() if each.partition == "rome")
    context_of(table).storage.put(damaged, b"#HUDI# and nothing more")
    with pytest.raises(CorruptTableError):
        table.services.compact()
    assert len(table.timeline.pending_of(Action.COMPACTION)) == 1
    table.insert_overwrite(rides(("new", "rome", 1, 1.0)))
    result = table.services.compact()
    assert result and result.files == 1
    assert table.timeline.pending_of(Action.COMPACTION) == ()
    assert logs(table) == 0
    assert held(table) == sorted([("new", "rome", 1, 1.0), *(row for row in MERGED if row[1] == "oslo")])
    table.upsert(rides(("new", "rome", 2, 2.0)))
    assert table.services.compact()


@versions
def test_a_compaction_whose_file_groups_were_all_replaced_ends_without_files(version: int) -> None:
    table = logged(version)
    schedule(table)
    table.insert_overwrite_table(rides(("new", "rome", 1, 1.0)))
    result = table.services.compact()
    assert result and result.files == 0
    assert held(table) == [("new", "rome", 1, 1.0)]
    assert not table.services.compact()


@versions
def test_a_compaction_left_on_the_timeline_is_run_with_what_came_after_it(version: int) -> None:
    table = logged(version)
    pending = schedule(table)
    assert held(table) == MERGED
    table.upsert(rides(("b", "rome", 3, 3.0), ("new", "bern", 1, 1.0)))
    expected = sorted(
        row
        for row in [*MERGED, ("b", "rome", 3, 3.0), ("new", "bern", 1, 1.0)]
        if row != ("b", "rome", 1, 1.0)
    )
    assert held(table) == expected
    table.services.compact()
    assert held(table) == expected
    completed = table.timeline.find(pending.requested)
    assert completed is not None
    assert completed.is_completed
    assert (logs(table), table.timeline.pending(), orphans(table), leftovers(table)) == (0, (), [], [])


@versions
def test_a_missing_log_file_stops_a_compaction_and_loses_nothing(version: int, tmp_path: Path) -> None:
    table = create(path=tmp_path / "rides", table_type=MOR, version=version)
    table.upsert(rides(*FIRST))
    table.upsert(rides(("a", "rome", 2, 2.0)))
    pending = schedule(table)
    (log,) = (tmp_path / "rides/rome").glob("*.log.*")
    log.rename(tmp_path / "kept")
    with pytest.raises(CorruptTableError, match="missing") as caught:
        table.services.compact()
    assert (caught.value.path, caught.value.table) == (f"rome/{log.name}", table.uri)
    (tmp_path / "kept").rename(log)
    expected = sorted([("a", "rome", 2, 2.0), *(row for row in FIRST if row[:2] != ("a", "rome"))])
    assert held(table) == expected
    result = table.services.compact()
    assert result
    assert result.instant == pending.requested
    assert (held(table), logs(table), orphans(table)) == (expected, 0, [])


@pytest.mark.parametrize("name", ["v6_mor_compaction_pending", "v9_mor_compaction_pending"])
def test_a_compaction_that_real_hudi_requested_is_run(name: str, tmp_path: Path) -> None:
    storage, _ = golden_storage(name, tmp_path)
    table = drawstring.open(storage.spec.uri)
    (pending,) = table.timeline.pending()
    columns = table.schema.names
    before = table.scan(columns=columns).to_arrow().sort_by([(name, "ascending") for name in columns])
    assert table.services.compact()
    after = table.scan(columns=columns).to_arrow().sort_by([(name, "ascending") for name in columns])
    assert after.equals(before)
    assert (table.timeline.pending(), logs(table)) == ((), 0)
    assert table.timeline.write_at(pending.requested)


def test_a_plan_has_one_operation_for_each_slice_with_logs() -> None:
    def file_slice(file_id: str, *log_names: str) -> FileSlice:
        base = BaseFile.parse(FileStatus(f"rome/{file_id}_0-0-0_10.parquet", 1 << 20))
        files = (LogFile.parse(FileStatus(f"rome/{name}", 1 << 19)) for name in log_names)
        return FileSlice("rome", file_id, "10", base, tuple(file for file in files if file))

    names = [".f1-0_12.log.1_0-0-0", ".f1-0_14.log.1_0-0-0"]
    plan = plan_compaction([file_slice("f1-0", *names), file_slice("f2-0")])
    (operation,) = plan.operations
    assert (operation.partition, operation.file_id, operation.base_instant) == ("rome", "f1-0", "10")
    assert operation.base_file == "f1-0_0-0-0_10.parquet"
    assert list(operation.log_files) == names
    assert operation.metrics["TOTAL_LOG_FILES"] == 2
    assert operation.metrics["TOTAL_IO_READ_MB"] == 2
    assert plan_compaction([file_slice("f2-0")]) == CompactionPlan(())
