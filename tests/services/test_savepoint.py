"""Savepoints keep files; restores undo whatever came after, on every kind of table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from drawstring.base.errors import CorruptTableError, InvalidError
from drawstring.formats.metadata.commit import encode_compaction_plan
from drawstring.formats.metadata.records import one_record
from drawstring.formats.metadata.rollback import decode_savepoint, encode_savepoint, rollback_of
from drawstring.model.instant import Action, Instant, State
from drawstring.model.plans import CompactionPlan
from drawstring.table import Table
from drawstring.testing import context_of
from tests.support.consistent_buckets import MORE, check_places, resizable_table, ring_of
from tests.support.faults import HOUR_MS, START_MS, Prepared, leftovers, opened, orphans
from tests.support.golden import golden_storage
from tests.support.rows import held, rides, sorted_rows
from tests.support.tables import BUCKETS, COW, MOR, WITHOUT_SERVICES, create, listing, store_of

KEEP_1 = {"hoodie.clean.commits.retained": "1"}
SHORT = {**KEEP_1, "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}

tables = pytest.mark.parametrize(
    ("table_type", "version"), [(COW, 6), (COW, 9), (MOR, 6), (MOR, 8), (MOR, 9)]
)


def begun(table_type: str, version: int, **how: Any) -> tuple[Table, str, list[tuple[Any, ...]]]:
    """Make a table with a savepoint of its second write."""
    table = create(table_type=table_type, version=version, **how)
    table.upsert(rides(("a", "rome", 1, 1.0), ("b", "oslo", 1, 1.0)), options=WITHOUT_SERVICES)
    table.upsert(rides(("a", "rome", 2, 2.0)), options=WITHOUT_SERVICES)
    return table, table.savepoints.create(comments="before the import"), held(table)


def much_more(table: Table) -> None:
    """Write in every way there is."""
    table.upsert(rides(("a", "rome", 3, 3.0), ("c", "bern", 3, 3.0)), options=WITHOUT_SERVICES)
    if table.config.is_merge_on_read:
        table.services.compact(options=WITHOUT_SERVICES)
    table.delete(rides(("b", "oslo", 4, 4.0)), options=WITHOUT_SERVICES)
    table.insert_overwrite(rides(("d", "rome", 5, 5.0)), options=WITHOUT_SERVICES)
    table.upsert(rides(("d", "rome", 6, 6.0), ("e", "oslo", 6, 6.0)), options=WITHOUT_SERVICES)
    table.delete_partition("bern", options=WITHOUT_SERVICES)


@tables
def test_a_table_goes_back_to_a_savepoint_whatever_was_done_since(table_type: str, version: int) -> None:
    table, saved, rows = begun(table_type, version)
    much_more(table)
    assert held(table) != rows
    planned = table.savepoints.plan_restore(saved)
    result = table.savepoints.restore(saved)
    assert result and result.rolled_back == tuple(time for time, _ in planned.instants)
    assert len(result.rolled_back) == (6 if table_type == MOR else 5)
    assert held(table) == rows
    assert table.timeline.writes()[-1].requested == saved
    assert (orphans(table), leftovers(table), table.services.validate().findings) == ([], [], ())
    assert not table.savepoints.restore(saved)
    table.upsert(rides(("a", "rome", 9, 9.0), ("new", "bern", 9, 9.0)))
    assert held(table) == sorted([("a", "rome", 9, 9.0), ("b", "oslo", 1, 1.0), ("new", "bern", 9, 9.0)])
    if table_type == MOR:
        table.services.compact()
        assert len(held(table)) == 3


@tables
def test_cleaning_and_archiving_leave_a_savepoint_alone_until_it_is_deleted(
    table_type: str, version: int
) -> None:
    table, saved, rows = begun(table_type, version)
    for number in range(10, 16):
        table.upsert(rides(("a", "rome", number, 1.0)), options=SHORT)
        if table_type == MOR:
            table.services.compact(options=SHORT)
    table.services.clean(options=KEEP_1)
    assert not table.services.archive(options=SHORT)
    names = {
        name
        for each in decode_savepoint(store_of(table).read(_saved(table, saved))).files.values()
        for name in each
    }
    there = {status.name for status in context_of(table).storage.list_tree("")}
    assert names and names <= there
    copy = Prepared.of(table).copy()
    assert opened(copy, START_MS).savepoints.restore(saved)
    assert held(opened(copy, START_MS)) == rows
    table.savepoints.delete(saved)
    assert table.services.clean(options=KEEP_1)
    assert not names <= {status.name for status in context_of(table).storage.list_tree("")}
    assert table.services.archive(options=SHORT)
    assert held(table) == [("a", "rome", 15, 1.0), ("b", "oslo", 1, 1.0)]


def _saved(table: Table, saved: str) -> Instant:
    return next(i for i in table.timeline.instants if (i.requested, i.action) == (saved, Action.SAVEPOINT))


@pytest.mark.parametrize("version", [6, 9])
def test_a_write_without_a_savepoint_is_gone_back_to_while_its_files_are_there(version: int) -> None:
    table = create(version=version)
    times = [
        table.upsert(rides(("a", "rome", n, float(n))), options=WITHOUT_SERVICES).instant for n in range(5)
    ]
    table.services.clean(options={"hoodie.clean.commits.retained": "2"})
    with pytest.raises(InvalidError, match=f"Choose {times[3]} or later"):
        table.savepoints.restore(times[1])
    with pytest.raises(InvalidError, match="cleaned away"):
        table.savepoints.create(times[1])
    assert table.savepoints.restore(times[3])
    assert held(table) == [("a", "rome", 3, 3.0)]
    assert table.savepoints.create() == times[3] == table.savepoints.create()


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("index", [{}, BUCKETS], ids=["simple", "bucket"])
def test_compactions_pending_before_and_after_the_savepoint_are_no_obstacle(
    version: int, index: dict[str, str]
) -> None:
    table = create(table_type=MOR, version=version, properties=index)
    table.upsert(rides(("a", "rome", 1, 1.0), ("b", "oslo", 1, 1.0)), options=WITHOUT_SERVICES)
    table.upsert(rides(("a", "rome", 2, 2.0)), options=WITHOUT_SERVICES)
    before = table.services.schedule_compaction()
    table.upsert(rides(("a", "rome", 3, 3.0)), options=WITHOUT_SERVICES)
    rows, saved = held(table), table.savepoints.create()
    table.upsert(rides(("b", "oslo", 4, 4.0)), options=WITHOUT_SERVICES)
    after = table.services.schedule_compaction()
    table.upsert(rides(("a", "rome", 5, 5.0), ("b", "oslo", 5, 5.0)), options=WITHOUT_SERVICES)
    assert before and after
    result = table.savepoints.restore(saved)
    assert result and after in result.rolled_back
    assert held(table) == rows
    assert [each.requested for each in table.timeline.pending()] == [before]
    table.upsert(rides(("b", "oslo", 6, 6.0)), options=WITHOUT_SERVICES)
    assert table.services.compact()
    assert held(table) == sorted([("a", "rome", 3, 3.0), ("b", "oslo", 6, 6.0)])
    assert table.timeline.pending() == ()


@pytest.mark.parametrize(("table_type", "version"), [(COW, 9), (MOR, 6), (MOR, 9)])
@pytest.mark.scaled
def test_a_restore_that_dies_at_any_step_is_finished_by_the_next_writer(
    table_type: str, version: int
) -> None:
    table, saved, rows = begun(table_type, version)
    table.upsert(rides(("a", "rome", 3, 3.0), ("c", "bern", 3, 3.0)), options=WITHOUT_SERVICES)
    if table_type == MOR:
        table.services.compact(options=WITHOUT_SERVICES)
    table.insert_overwrite(rides(("d", "rome", 5, 5.0)), options=WITHOUT_SERVICES)
    start = Prepared.of(table)
    for storage, step in start.deaths(lambda each: each.savepoints.restore(saved), steps_min=10):
        table = opened(storage, START_MS + HOUR_MS)
        assert held(table), step
        begun_at_all = any(
            each.action is Action.RESTORE and each.state is not State.REQUESTED
            for each in table.timeline.instants
        )
        table.upsert(rides(("next", "oslo", 9, 9.0)), options=WITHOUT_SERVICES)
        seen = rows if begun_at_all else start.before
        assert held(table) == sorted([*seen, ("next", "oslo", 9, 9.0)]), step
        assert (orphans(table), leftovers(table)) == ([], []), step


@pytest.mark.parametrize(("table_type", "version"), [(COW, 9), (MOR, 6)])
@pytest.mark.scaled
def test_a_savepoint_that_dies_at_any_step_is_made_by_the_next_call(table_type: str, version: int) -> None:
    table = create(table_type=table_type, version=version)
    table.upsert(rides(("a", "rome", 1, 1.0)), options=WITHOUT_SERVICES)
    start = Prepared.of(table)
    for storage, step in start.deaths(lambda each: each.savepoints.create(), steps_min=0):
        table = opened(storage, START_MS + HOUR_MS)
        assert held(table) == start.after, step
        saved = table.savepoints.create()
        table.upsert(rides(("a", "rome", 2, 2.0)))
        assert table.savepoints.restore(saved)
        assert held(table) == start.after
        assert leftovers(table) == [], step


def test_what_stands_in_the_way_of_a_restore_is_told_and_nothing_changes() -> None:
    table, saved, _ = begun(COW, 9)
    first = table.timeline.writes()[0].requested
    with pytest.raises(InvalidError, match=f"{saved}.*Delete them first"):
        table.savepoints.restore(first)
    with pytest.raises(InvalidError, match="no completed write 20200101000000000"):
        table.savepoints.restore("20200101000000000")
    with pytest.raises(InvalidError, match="no completed savepoint"):
        table.savepoints.delete(first)
    with pytest.raises(InvalidError, match="has no writes yet"):
        create().savepoints.create()
    table.upsert(rides(("a", "rome", 3, 3.0)), options=WITHOUT_SERVICES)
    before = Prepared.of(table).files
    (file,) = [s.path for s in context_of(table).storage.list_files("oslo") if s.name.endswith(".parquet")]
    content = context_of(table).storage.read(file)
    context_of(table).storage.delete([file])
    with pytest.raises(CorruptTableError, match="of the savepoint is gone"):
        table.savepoints.restore(saved)
    context_of(table).storage.put(file, content)
    assert Prepared.of(table).files.keys() == before.keys()


@tables
def test_a_savepoint_is_read_after_cleaning(table_type: str, version: int) -> None:
    table, saved, rows = begun(table_type, version)
    much_more(table)
    for number in range(10, 16):
        table.upsert(rides(("a", "rome", number, 1.0), ("b", "oslo", number, 1.0)), options=SHORT)
        if table_type == MOR and number % 2:
            table.services.compact(options=SHORT)
    first = table.timeline.writes()[0].requested
    with pytest.raises(InvalidError, match="cleaned away"):
        table.scan(as_of=first if first != saved else table.timeline.writes()[1].requested).to_arrow()
    assert held(table) != rows
    read = table.scan(["id", "city", "ts", "fare"], as_of=saved).to_arrow()
    assert sorted_rows(read) == rows


def test_a_file_of_a_savepoint_that_is_gone_is_named() -> None:
    table, saved, _ = begun(COW, 9)
    table = listing(table)
    (content,) = (decode_savepoint(store_of(table).read(each)) for each in saved_instants(table))
    path = f"oslo/{content.files['oslo'][0]}"
    context_of(table).storage.delete([path])
    with pytest.raises(CorruptTableError, match="of the savepoint is missing") as caught:
        table.scan(as_of=saved).to_arrow()
    assert (caught.value.path, caught.value.instant) == (path, saved)
    assert table.scan(as_of=saved, where="city = 'rome'").to_arrow().num_rows > 0


def test_a_savepoint_without_the_log_files_of_its_write_keeps_too_little_to_be_read() -> None:
    """As old releases of Hudi made them."""
    table, saved, _ = begun(MOR, 9)
    store = store_of(table)
    (instant,) = saved_instants(table)
    content = decode_savepoint(store.read(instant))
    bases = {place: tuple(n for n in names if ".log." not in n) for place, names in content.files.items()}
    assert bases != content.files
    context_of(table).storage.put(store.path(instant), encode_savepoint(replace(content, files=bases)))
    for number in range(10, 16):
        table.upsert(rides(("a", "rome", number, 1.0)), options=SHORT)
        table.services.compact(options=SHORT)
    with pytest.raises(InvalidError, match="cleaned away"):
        table.scan(as_of=saved).to_arrow()


def saved_instants(table: Table) -> tuple[Instant, ...]:
    return table.timeline.completed_of(Action.SAVEPOINT)


def test_a_restore_tells_what_it_undid() -> None:
    table, saved, _ = begun(MOR, 6)
    table.upsert(rides(("a", "rome", 3, 3.0)), options=WITHOUT_SERVICES)
    undone = table.timeline.writes()[-1]
    result = table.savepoints.restore(saved)
    (instant,) = [each for each in table.timeline.instants if each.action is Action.RESTORE]
    done = one_record(store_of(table).read(instant))
    assert result and result.rolled_back == (undone.requested,)
    assert done["restoreInstantInfo"] == [{"commitTime": undone.requested, "action": "deltacommit"}]
    (rollback,) = done["hoodieRestoreMetadata"][undone.requested]
    (stat,) = rollback_of(rollback, "").stats
    assert stat.partition == "rome" and len(stat.command_files) == 1


@pytest.mark.parametrize(
    "name", ["v6_cow_savepoint_clean", "v9_cow_savepoint_clean", "v8_cow_savepoint_clean"]
)
def test_a_savepoint_of_real_hudi_is_gone_back_to(name: str, tmp_path: Any) -> None:
    storage, _ = golden_storage(name, tmp_path)
    table = opened(storage, START_MS)
    (saved,) = [each.requested for each in table.timeline.instants if each.action is Action.SAVEPOINT]
    columns = table.schema.names
    expected = table.scan(columns=["_hoodie_commit_time", *columns]).to_arrow()
    assert max(expected["_hoodie_commit_time"].to_pylist()) > saved
    as_kept = table.scan(columns=["_hoodie_commit_time", *columns], as_of=saved).to_arrow()
    assert table.savepoints.restore(saved)
    rows = table.scan(columns=["_hoodie_commit_time", *columns]).to_arrow()
    assert sorted(map(str, rows.to_pylist())) == sorted(map(str, as_kept.to_pylist()))
    assert max(rows["_hoodie_commit_time"].to_pylist()) <= saved
    assert rows.num_rows > 0
    assert table.timeline.writes()[-1].requested == saved


def test_a_pending_restore_of_another_engine_is_finished() -> None:
    table, saved, rows = begun(COW, 9)
    table.upsert(rides(("a", "rome", 3, 3.0)), options=WITHOUT_SERVICES)
    undone = table.timeline.writes()[-1]
    store = store_of(table)
    from drawstring.formats.metadata.rollback import encode_restore_plan
    from drawstring.model.plans import RestorePlan

    plan = RestorePlan(((undone.requested, "commit"),), saved)
    store.start(store.request(Action.RESTORE, store.new_time(store.load()), encode_restore_plan(plan)))
    table.upsert(rides(("n", "oslo", 4, 4.0)), options=WITHOUT_SERVICES)
    assert held(table) == sorted([*rows, ("n", "oslo", 4, 4.0)])
    assert table.timeline.pending() == ()


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("is_run", [True, False], ids=["run", "pending"])
def test_a_ring_is_what_it_was_before_its_buckets_were_split(version: int, is_run: bool) -> None:
    table = resizable_table(version)
    rows, ring, saved = held(table), ring_of(table), table.savepoints.create()
    if is_run:
        assert table.services.cluster(options=MORE)
        table.upsert(rides(("k003", "rome", 200, 1.0), ("new", "rome", 1, 1.0)), options=WITHOUT_SERVICES)
        assert ring_of(table) != ring
    else:
        assert table.services.schedule_clustering(options=MORE)
    assert table.savepoints.restore(saved)
    assert (held(table), ring_of(table)) == (rows, ring)
    table.upsert(rides(("k003", "rome", 300, 3.0), ("new", "rome", 1, 1.0)))
    check_places(table)
    assert len(held(table)) == len(rows) + 1
    assert table.services.compact() and table.services.cluster(options=MORE)
    check_places(table)
    assert table.services.validate().findings == ()


def test_a_compaction_without_work_is_undone_too() -> None:
    table, saved, rows = begun(MOR, 9)
    store = store_of(table)
    time = store.new_time(store.load())
    store.request(Action.COMPACTION, time, encode_compaction_plan(CompactionPlan(())))
    assert Instant(time, Action.COMPACTION, State.REQUESTED) in table.timeline.pending()
    result = table.savepoints.restore(saved)
    assert result and result.rolled_back == (time,)
    assert (held(table), table.timeline.pending()) == (rows, ())
