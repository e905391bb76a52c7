"""The list of files: what it forgets, what reading it costs, and what is no fault of it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest

from drawstring.base.clock import SteppingClock
from drawstring.model.files import BaseFile
from drawstring.model.instant import Action, Instant, State
from drawstring.storage.memory import MemoryStorage
from drawstring.storage.protocol import Storage
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.timeline.store import TimelineStore
from drawstring.txn.table_context import TableContext
from tests.support.consistent_buckets import ALLOW, MORE, resizable_table, row, rows_of
from tests.support.faults import HOUR_MS, START_MS, STEPS_MAX
from tests.support.faulty_storage import FaultyStorage, InjectedFault
from tests.support.rows import held, rides
from tests.support.storages import files_of, stored
from tests.support.tables import COW, WITHOUT_SERVICES, create
from tests.support.validation import problems

ROWS = [("a", "rome", 1, 1.0), ("b", "oslo", 1, 1.0)]
TIMELINE = ".hoodie/metadata/.hoodie/timeline/"


def kept(table: Table) -> Table:
    return Table(replace(context_of(table), uses_metadata=True))


def written(times: int) -> Table:
    table = kept(create(table_type=COW))
    for ts in range(times):
        table.upsert(rides(*((key, city, ts, fare) for key, city, _, fare in ROWS)), options=WITHOUT_SERVICES)
    return table


@pytest.mark.parametrize("version", [9, 10])
def test_files_in_the_new_buckets_of_a_resizing_that_was_given_up_are_forgotten(version: int) -> None:
    table = kept(resizable_table(version))
    table.upsert(rides(row(1, 400)))
    assert table.config.metadata_partitions == ("files",)
    assert table.services.schedule_clustering(options=MORE) is not None
    table.upsert(rides(row(3, 500), row(90, 500)))
    table.delete(rides(row(5, 500)))
    table.upsert(rides(row(4, 600)), options=ALLOW)
    rows = rows_of(table)
    assert table.config.metadata_partitions == ("files",)
    assert (problems(table), table.timeline.pending()) == ([], ())
    table.services.cluster(options=MORE)
    assert (rows_of(table), problems(table)) == (rows, [])


@pytest.mark.parametrize("writes", [5, 14])
def test_a_query_reads_no_commit_of_the_metadata_table_but_the_first(
    writes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = written(writes)
    paths: list[str] = []
    read = MemoryStorage.read

    def noted(self: MemoryStorage, path: str) -> bytes:
        paths.append(path)
        return read(self, path)

    monkeypatch.setattr(MemoryStorage, "read", noted)
    assert table.scan().to_arrow().num_rows == 2
    assert sum(path.startswith(TIMELINE) for path in paths) <= 1


@pytest.mark.parametrize("writes", [5, 14])
@pytest.mark.parametrize("extension", [".log.", ".hfile"])
def test_a_list_that_lost_a_file_is_not_used(
    writes: int, extension: str, caplog: pytest.LogCaptureFixture
) -> None:
    table = written(writes)
    storage = context_of(table).storage
    files = [each.path for each in storage.list_files(".hoodie/metadata/files") if extension in each.name]
    newest = max(files, key=lambda path: path.rpartition("_")[2] if extension == ".hfile" else path)
    rows = held(table)
    storage.delete([newest])
    caplog.clear()
    assert held(table) == rows
    assert held(Table(context_of(table))) == rows
    assert caplog.text.count("The storage is listed instead of the metadata table") == 1


def test_lost_files_are_no_fault_of_the_metadata_table() -> None:
    table = written(1)
    storage = context_of(table).storage
    base = next(found for each in storage.list_files("rome") if (found := BaseFile.parse(each)))
    storage.delete([base.status.path])
    assert {each.check for each in problems(table) if each.path == base.status.path} == {"missing"}
    assert table.services.repair() == ()


def test_files_of_a_wrong_size_and_of_no_commit_are_no_fault_of_the_metadata_table() -> None:
    table = written(1)
    storage = context_of(table).storage
    base = next(found for each in storage.list_files("rome") if (found := BaseFile.parse(each)))
    orphan = f"rome/{base.file_id}_7-7-7_{base.instant}.parquet"
    storage.put(orphan, storage.read(base.status.path))
    storage.put(base.status.path, storage.read(base.status.path)[:-9])
    found = {(each.check, each.path) for each in table.services.validate(quick=True).findings}
    assert found == {("size", base.status.path), ("orphan", orphan)}
    assert [each.path for each in table.services.repair()] == [orphan]


def test_the_list_is_not_built_while_a_file_is_missing(caplog: pytest.LogCaptureFixture) -> None:
    table = create(table_type=COW)
    table.upsert(rides(*ROWS), options={"hoodie.metadata.enable": "false"})
    storage = context_of(table).storage
    storage.delete([each.path for each in storage.list_files("rome") if BaseFile.parse(each)])
    kept(table).upsert(rides(("c", "oslo", 2, 2.0)))
    assert table.config.metadata_partitions == ()
    assert "cannot be built" in caplog.text


def test_what_archiving_would_move_is_what_it_moves() -> None:
    table = written(7)
    short = {"hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4", **WITHOUT_SERVICES}
    short["hoodie.clean.commits.retained"] = "1"
    assert (table.services.plan_archive(options=short), bool(table.services.archive(options=short))) == (
        [],
        False,
    )
    for ts in range(7, 14):
        table.upsert(rides(("a", "rome", ts, 1.0)), options=WITHOUT_SERVICES)
    planned = table.services.plan_archive(options=short)
    assert table.services.archive(options=short).instants == len(planned) > 0


def test_a_delta_commit_that_lost_its_log_file_in_a_power_cut_is_made_again() -> None:
    files = files_of(context_of(written(3)).storage)
    for steps in range(1, STEPS_MAX):
        storage = stored(files)
        with suppress(InjectedFault):
            opened(FaultyStorage(storage, steps)).upsert(
                rides(("c", "bern", 1, 1.0)), options=WITHOUT_SERVICES
            )
        pending = [each.requested for each in opened(storage).timeline.pending()]
        if pending and any(each.startswith(f"{pending[0]}_") for each in storage.list_names(TIMELINE[:-1])):
            break
    logs = [each.path for each in storage.list_files(".hoodie/metadata/files") if pending[0] in each.name]
    assert len(logs) == 1
    storage.delete(logs)
    survivor = opened(storage, START_MS + HOUR_MS)
    survivor.upsert(rides(("d", "rome", 9, 1.0)), options=WITHOUT_SERVICES)
    assert [key for key, *_ in held(survivor)] == ["a", "b", "c", "d"]
    assert (survivor.config.metadata_partitions, problems(survivor)) == (("files",), [])


def opened(storage: Storage, start_ms: int = START_MS) -> Table:
    return Table(TableContext(storage, clock=SteppingClock(start_ms), uses_metadata=True))


@pytest.mark.parametrize("version", [6, 9])
def test_a_savepoint_whose_process_died_keeps_no_list_from_being_made(version: int) -> None:
    table = create(table_type=COW, version=version)
    off = {**WITHOUT_SERVICES, "hoodie.metadata.enable": "false"}
    first = table.upsert(rides(*ROWS), options=off)
    context = context_of(table)
    store = TimelineStore(context.storage, table.config, context.clock)
    store.start(Instant(first.instant, Action.SAVEPOINT, State.REQUESTED))
    table.upsert(rides(*ROWS), options=off)  # whoever writes next bars the savepoint
    assert table.config.metadata_partitions == ()
    kept(table).upsert(rides(*ROWS), options=WITHOUT_SERVICES)
    assert table.config.metadata_partitions == ("files",)
    assert problems(table) == []


def test_an_index_whose_build_died_twice_keeps_no_list_from_being_made_again() -> None:
    table = written(2)
    storage = context_of(table).storage
    requested = table.indexes.schedule("column_stats")
    store = TimelineStore(storage, table.config, context_of(table).clock)
    inflight = store.start(Instant(requested, Action.INDEXING, State.REQUESTED))
    store.fence(inflight)  # the second process
    storage.delete_tree(".hoodie/metadata")
    for _ in range(2):  # the first write switches it off
        table.upsert(rides(*ROWS), options=WITHOUT_SERVICES)
    assert table.config.metadata_partitions == ("files",)
    assert {each.name for each in table.indexes.run()} == {"column_stats", "partition_stats"}
    assert problems(table) == []


@pytest.mark.parametrize("version", [6, 9, 10])
def test_a_list_is_whole_that_a_machine_makes_whose_clock_is_behind(version: int) -> None:
    table = create(table_type=COW, version=version)
    storage = context_of(table).storage
    for _ in range(2):
        ahead = Table(TableContext(storage, clock=SteppingClock(START_MS + HOUR_MS)))
        ahead.upsert(rides(*ROWS), options={**WITHOUT_SERVICES, "hoodie.metadata.enable": "false"})
    behind = opened(storage)
    behind.upsert(rides(*ROWS), options=WITHOUT_SERVICES)
    assert (behind.config.metadata_partitions, problems(behind)) == (("files",), [])
