"""Cleaning: old files go, what a reader, a savepoint or a pending service needs stays."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from drawstring.base.errors import DrawstringError, InvalidError
from drawstring.formats.metadata.plans import decode_clean, decode_clean_plan
from drawstring.model.instant import Action
from drawstring.services import clean
from drawstring.storage.local import LocalStorage
from drawstring.storage.protocol import Storage
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.txn.table_context import TableContext
from tests.support.cleaning import KEEP_2, NEVER, VERSIONS, cleans, deleted, written
from tests.support.faults import HOUR_MS, START_MS, Prepared, leftovers, opened
from tests.support.faulty_storage import FaultyStorage
from tests.support.golden import golden_storage
from tests.support.rows import held, rides
from tests.support.storages import data_files
from tests.support.tables import COW, MOR, WITHOUT_COMPACTION, create, store_of

tables = pytest.mark.parametrize(
    ("table_type", "version"), [(COW, 6), (COW, 9), (MOR, 6), (MOR, 8), (MOR, 9)]
)


@tables
def test_old_files_go_and_all_times_that_are_kept_can_be_read(table_type: str, version: int) -> None:
    table = create(table_type=table_type, version=version)
    states = written(table, **NEVER)
    writes = table.timeline.writes()
    before = data_files(context_of(table).storage)
    then = {write.requested: held(table, as_of=write.requested) for write in writes}
    planned = table.services.plan_clean(options=KEEP_2)
    result = table.services.clean(options=KEEP_2)
    assert planned is not None and result and planned.earliest is not None
    gone = before - data_files(context_of(table).storage)
    assert gone == {path for paths in planned.files.values() for path in paths}
    assert (result.files, result.partitions) == (len(gone), 1)
    assert all(path.startswith("rome/") for path in gone)
    assert result.earliest_retained == planned.earliest.requested == writes[-2].requested
    assert held(table) == states[-1]
    for write in writes[-2:]:
        assert held(table, as_of=write.requested) == then[write.requested]
    with pytest.raises(InvalidError, match="cleaned away"):
        held(table, as_of=writes[0].requested)
    assert not table.services.clean(options=KEEP_2)
    assert leftovers(table) == []


@pytest.mark.parametrize("table_type", [COW, MOR])
def test_a_write_takes_the_lock_for_a_clean_if_something_is_old_and_plans_it_once(
    table_type: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    locked, planned = clean.lock_table, clean.CleanPlanner.plan

    def counted_lock(*arguments: Any) -> Any:
        calls.append("lock")
        return locked(*arguments)

    def counted_plan(*arguments: Any) -> Any:
        calls.append("plan")
        return planned(*arguments)

    table = create(table_type=table_type)
    written(table, 3, **NEVER)
    monkeypatch.setattr(clean, "lock_table", counted_lock)
    monkeypatch.setattr(clean.CleanPlanner, "plan", counted_plan)
    table.upsert(rides(("a", "rome", 9, 9.0)), options=KEEP_2 | WITHOUT_COMPACTION)
    assert calls == ["plan", "lock"]
    assert deleted(table)
    for number in range(3):
        table.insert(rides(("new", f"city{number}", 1, 1.0)), options=KEEP_2 | WITHOUT_COMPACTION)
    calls.clear()
    table.insert(rides(("new", "lima", 1, 1.0)), options=KEEP_2 | WITHOUT_COMPACTION)
    assert calls == ["plan"]


@pytest.mark.parametrize(
    ("meanwhile", "plans"),
    [
        (lambda table: table.upsert(rides(("b", "rome", 8, 8.0)), options=NEVER), 1),
        (lambda table: table.insert(rides(("c", "oslo", 8, 8.0)), options=NEVER), 1),
        (lambda each: each.savepoints.create(), 2),
        (lambda table: table.services.clean(options=KEEP_2), 1),  # after which none is due
    ],
)
def test_a_clean_is_planned_again_only_if_more_than_a_write_came_before_it(
    meanwhile: Callable[[Table], object], plans: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    locked, planned = clean.lock_table, clean.CleanPlanner.plan

    def after_another(*arguments: Any) -> Any:
        monkeypatch.setattr(clean, "lock_table", locked)
        with monkeypatch.context() as undone:
            undone.setattr(clean.CleanPlanner, "plan", planned)
            meanwhile(table)
        return locked(*arguments)

    def counted_plan(*arguments: Any) -> Any:
        calls.append("plan")
        return planned(*arguments)

    table = create()
    states = written(table, 4, **NEVER)
    before = table.timeline.writes()
    monkeypatch.setattr(clean, "lock_table", after_another)
    monkeypatch.setattr(clean.CleanPlanner, "plan", counted_plan)
    table.upsert(rides(("a", "rome", 9, 9.0)), options=KEEP_2)
    assert len(calls) == plans
    assert len(deleted(table)) == len(set(deleted(table))) == 2
    assert held(table, as_of=before[-1].requested) == states[-1]
    assert table.services.validate().is_sound


@tables
def test_every_write_cleans_by_default_and_lists_what_changed_alone(table_type: str, version: int) -> None:
    table = create(table_type=table_type, version=version)
    states = written(table, 16)
    assert held(table) == states[-1]
    kept = [each for each in context_of(table).storage.list_files("rome") if ".parquet" in each.name]
    assert len(kept) <= 12
    assert deleted(table)
    assert {partition for each in cleans(table) for partition in each.partitions} == {"rome"}


@tables
def test_versions_are_counted_by_file_group(table_type: str, version: int) -> None:
    table = create(table_type=table_type, version=version)
    states = written(table, **NEVER)
    result = table.services.clean(options=VERSIONS)
    assert result and result.earliest_retained == ""
    assert all(len([g for g in table.inspect.files() if g.partition == p]) for p in ("rome", "oslo"))
    bases = [each for each in context_of(table).storage.list_files("rome") if each.name.endswith(".parquet")]
    assert len(bases) == len({each.name.partition("_")[0] for each in bases})
    assert held(table) == states[-1]
    assert not table.services.clean(options=VERSIONS)


@pytest.mark.parametrize("version", [6, 9])
def test_a_clean_that_keeps_fewer_versions_deletes_what_the_last_one_kept(version: int) -> None:
    table = create(version=version)
    states = written(table, 4, **NEVER)
    more = {**VERSIONS, "hoodie.clean.fileversions.retained": "3"}
    assert table.services.clean(options=more).files == 1
    assert not table.services.clean(options=more)
    assert table.services.clean(options=VERSIONS).files == 2
    assert held(table) == states[-1]


@pytest.mark.parametrize("version", [6, 9])
def test_hours_are_counted_from_now(version: int) -> None:
    table = create(version=version)
    storage = context_of(table).storage
    for hour in range(6):
        later = opened(storage, START_MS + hour * HOUR_MS)
        later.upsert(rides(("a", "rome", hour, float(hour))), options=NEVER)
    hours = {"hoodie.clean.policy": "KEEP_LATEST_BY_HOURS", "hoodie.clean.hours.retained": "3"}
    now = opened(storage, START_MS + 5 * HOUR_MS + HOUR_MS // 2)
    result = now.services.clean(options=hours)
    writes = now.timeline.writes()
    assert result and result.earliest_retained == writes[3].requested
    assert result.files == 2
    assert held(now) == [("a", "rome", 5, 5.0)]
    assert held(now, as_of=writes[3].requested) == [("a", "rome", 3, 3.0)]


@pytest.mark.parametrize("version", [6, 9])
def test_replaced_file_groups_go_with_their_partition_once_nobody_reads_them(version: int) -> None:
    table = create(version=version)
    table.upsert(rides(("a", "rome", 1, 1.0), ("b", "oslo", 1, 1.0)), options=NEVER)
    table.delete_partition("oslo", options=NEVER)
    assert not table.services.clean(options={"hoodie.clean.commits.retained": "1"})
    table.upsert(rides(("a", "rome", 2, 2.0)), options=NEVER)
    result = table.services.clean(options={"hoodie.clean.commits.retained": "1"})
    assert result
    assert (result.files, result.partitions_deleted) == (1, 1)
    assert context_of(table).storage.list_files("oslo") == []
    assert [each.is_gone for each in cleans(table)[-1].partitions.values()] == [True]
    assert held(table) == [("a", "rome", 2, 2.0)]
    table.upsert(rides(("b", "oslo", 3, 3.0)))
    assert held(table) == [("a", "rome", 2, 2.0), ("b", "oslo", 3, 3.0)]


@pytest.mark.parametrize("version", [6, 9])
def test_change_logs_go_with_their_slice(version: int) -> None:
    table = create(version=version, properties={"hoodie.table.cdc.enabled": "true"})
    written(table, **NEVER)
    table.services.clean(options=VERSIONS)
    kept = [each.name for each in context_of(table).storage.list_files("rome") if ".cdc" in each.name]
    assert len(kept) == 1
    assert [name for name in deleted(table) if ".cdc" in name]


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("policy", [KEEP_2, VERSIONS], ids=["commits", "versions"])
def test_a_pending_compaction_finds_its_files(version: int, policy: dict[str, str]) -> None:
    table = create(table_type=MOR, version=version)
    written(table, 3, **NEVER)
    table.upsert(rides(("a", "rome", 8, 8.0)), options=NEVER)
    pending = table.services.schedule_compaction()
    for number in range(9, 14):
        table.upsert(rides(("a", "rome", number, float(number))), options=NEVER)
    expected = held(table)
    result = table.services.clean(options=policy)
    assert not result or result.earliest_retained in ("", pending)
    assert held(table) == expected
    assert table.services.compact(options=NEVER)
    assert held(table) == expected


def prepared(table_type: str, version: int) -> Prepared:
    table = create(table_type=table_type, version=version)
    states = written(table, 4, **NEVER)
    table.delete_partition("oslo", options=NEVER)
    table.upsert(rides(("b", "rome", 9, 9.0)), options=NEVER)
    assert states[-1] != held(table)
    return Prepared.of(table)


@pytest.mark.parametrize(("table_type", "version"), [(COW, 6), (MOR, 9)])
@pytest.mark.scaled
def test_a_clean_that_dies_at_any_step_is_finished_by_the_next(table_type: str, version: int) -> None:
    start = prepared(table_type, version)
    options = {"hoodie.clean.commits.retained": "1"}
    whole = start.copy()
    opened(whole, START_MS).services.clean(options=options)
    expected = data_files(whole)
    for storage, step in start.deaths(lambda table: table.services.clean(options=options)):
        table = opened(storage, START_MS + HOUR_MS)
        assert held(table) == start.after, step
        table.services.clean(options=options)
        assert held(table) == start.after, step
        assert data_files(storage) == expected, step
        assert leftovers(table) == [], step
        table.upsert(rides(("next", "rome", 1, 1.0)))
        assert held(table) == sorted([*start.after, ("next", "rome", 1, 1.0)])


def test_a_clean_that_fails_after_a_write_is_no_failure_of_the_write(caplog: Any) -> None:
    table = create()
    written(table, 3, **NEVER)
    storage = RefusesToDelete(context_of(table).storage)
    refusing = Table(TableContext(storage, clock=context_of(table).clock))
    refusing.upsert(rides(("b", "rome", 9, 9.0)), options={"hoodie.clean.commits.retained": "1"})
    assert "the clean after it failed" in caplog.text
    assert len(table.timeline.pending_of(Action.CLEAN)) == 1
    table.upsert(rides(("c", "rome", 9, 9.0)), options=NEVER)
    assert table.timeline.pending_of(Action.CLEAN)
    table.upsert(rides(("d", "rome", 9, 9.0)))
    assert table.timeline.pending() == ()
    assert deleted(table)


class RefusesToDelete(FaultyStorage):
    """Deletes no base files."""

    def __init__(self, inner: Storage) -> None:
        super().__init__(inner, 1 << 60)

    def delete(self, paths: Any) -> None:
        doomed = list(paths)
        if any(path.endswith(".parquet") for path in doomed):
            self.die(doomed[0])
        super().delete(doomed)


def test_a_clean_without_a_plan_is_dropped() -> None:
    table = create()
    written(table, 3, **NEVER)
    store = store_of(table)
    store.request(Action.CLEAN, store.new_time(store.load()))
    result = table.services.clean(options={"hoodie.clean.commits.retained": "1"})
    assert result and result.files == 1
    assert table.timeline.pending() == ()


def test_a_partition_that_was_written_to_since_it_was_planned_to_go_stays() -> None:
    table = create()
    table.upsert(rides(("a", "rome", 1, 1.0), ("b", "oslo", 1, 1.0)), options=NEVER)
    table.delete_partition("oslo", options=NEVER)
    table.upsert(rides(("a", "rome", 2, 2.0)), options=NEVER)
    keep_1 = {"hoodie.clean.commits.retained": "1"}
    storage = context_of(table).storage
    with suppress(DrawstringError):
        opened(FaultyStorage(storage, 4), START_MS).services.clean(options=keep_1)
    table = opened(storage, START_MS + HOUR_MS)
    (pending,) = table.timeline.pending_of(Action.CLEAN)
    plan = decode_clean_plan(store_of(table).read_requested(pending))
    assert plan.partitions_to_delete == ("oslo",)
    table.upsert(rides(("new", "oslo", 3, 3.0)), options=NEVER)
    result = table.services.clean(options=keep_1)
    assert result and result.partitions_deleted == 0
    assert held(table) == [("a", "rome", 2, 2.0), ("new", "oslo", 3, 3.0)]


@pytest.mark.parametrize("before", ["delete", "delete_folder"])
def test_a_file_that_a_writer_puts_into_a_partition_that_goes_is_kept(
    before: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create(path=tmp_path / "t")
    table.upsert(rides(("a", "rome", 1, 1.0), ("b", "oslo", 1, 1.0)), options=NEVER)
    table.delete_partition("oslo", options=NEVER)
    table.upsert(rides(("a", "rome", 2, 2.0)), options=NEVER)
    delete, metadata = getattr(LocalStorage, before), "oslo/.hoodie_partition_metadata"

    def late(self: LocalStorage, what: Any) -> Any:
        if what == "oslo" or (before == "delete" and metadata in what):
            with self.create("oslo/new.parquet") as file:
                file.write(b"rows")
        return delete(self, what)

    monkeypatch.setattr(LocalStorage, before, late)
    assert table.services.clean(options={"hoodie.clean.commits.retained": "1"})
    storage = context_of(table).storage
    assert storage.read("oslo/new.parquet") == b"rows"
    assert storage.exists(metadata)


@pytest.mark.parametrize("name", ["v6_cow_clean", "v9_mor_clean", "v9_cow_savepoint_clean"])
def test_a_clean_that_real_hudi_began_is_finished(name: str, tmp_path: Path) -> None:
    storage, _ = golden_storage(name, tmp_path)
    table = opened(storage, START_MS)
    store = store_of(table)
    last = [each for each in table.timeline.instants if each.action is Action.CLEAN][-1]
    done = decode_clean(store.read(last))
    (partition, cleaned), *_ = done.partitions.items()
    back = f"{partition}/{cleaned.deleted[0]}"
    storage.put(back, b"deleted again")
    storage.delete([store.path(last)])
    columns = table.schema.names
    before = table.scan(columns=columns).to_arrow().sort_by(columns[0])
    result = table.services.clean(options={"hoodie.clean.commits.retained": "1000"})
    assert result and result.instant == last.requested
    assert not storage.exists(back)
    again = cleans(table)[-1]
    assert (again.earliest, again.last_completed) == (done.earliest, done.last_completed)
    assert {place: sorted(each.deleted) for place, each in again.partitions.items()} == {
        place: sorted(each.deleted) for place, each in done.partitions.items()
    }
    assert table.scan(columns=columns).to_arrow().sort_by(columns[0]) == before
