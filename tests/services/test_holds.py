"""What readers declare stays: cleaning and archiving stop at their positions, until these are over."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from drawstring.base.clock import SteppingClock
from drawstring.base.errors import InvalidError
from drawstring.model.files import FileStatus
from drawstring.model.instant import time_of
from drawstring.storage.memory import MemoryStorage
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.txn.holds import HOLD_FOLDER
from tests.support.faults import START_MS
from tests.support.rows import held, rides
from tests.support.storages import data_files as files_in
from tests.support.tables import COW, MOR, create

ONE = {"hoodie.clean.commits.retained": "1", "hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4"}
VERSIONS = {
    **ONE,
    "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS",
    "hoodie.clean.fileversions.retained": "1",
}
HOURS = {**ONE, "hoodie.clean.policy": "KEEP_LATEST_BY_HOURS", "hoodie.clean.hours.retained": "1"}
policies = pytest.mark.parametrize("options", [ONE, VERSIONS, HOURS], ids=["commits", "versions", "hours"])
Rows = list[tuple[Any, ...]]


def table_of(table_type: str = COW, version: int = 9) -> Table:
    context = context_of(create(table_type=table_type, version=version))
    return Table(replace(context, clock=SteppingClock(START_MS)))


def write(table: Table, numbers: range, options: dict[str, str]) -> list[Rows]:
    """Upsert the same key again and again; return the rows after each."""
    states = []
    for number in numbers:
        context_of(table).clock.sleep(7200)
        table.upsert(rides(("a", "rome", number, float(number))), options=options)
        if table.config.is_merge_on_read:
            table.services.compact(options=options)
        states.append(held(table))
    return states


def fares(table: Table, start: str) -> list[float]:
    found = table.changes(start).to_arrow().to_pylist()
    return [json.loads(each["after"])["fare"] for each in found]


def data_files(table: Table) -> set[str]:
    found = files_in(context_of(table).storage)
    return {path for path in found if not path.startswith(".hoodie")}


@pytest.mark.parametrize(
    ("table_type", "version", "options"),
    [
        (COW, 6, ONE),
        (COW, 9, VERSIONS),
        (COW, 9, HOURS),
        (MOR, 6, VERSIONS),
        (MOR, 6, HOURS),
        (MOR, 8, ONE),
        (MOR, 9, VERSIONS),
    ],
)
def test_what_a_hold_needs_stays_until_it_is_released(
    table_type: str, version: int, options: dict[str, str]
) -> None:
    table = table_of(table_type, version)
    write(table, range(3), options)
    placed = table.holds.add("pipeline-7", hours=10_000)
    then = held(table)
    write(table, range(3, 12), options)
    assert table.holds.list() == [placed]
    assert fares(table, placed.position) == [float(number) for number in range(3, 12)]
    kept = data_files(table)

    table.holds.release("pipeline-7")
    assert table.holds.list() == []
    write(table, range(12, 13), options)
    assert len(data_files(table)) < len(kept) - 7
    assert len(table.timeline.writes()) < 9
    with pytest.raises(InvalidError):
        fares(table, placed.position)
    assert context_of(table).storage.list_files(HOLD_FOLDER) == []
    assert then != held(table)


def test_a_released_hold_goes_where_no_file_is_ever_old() -> None:
    table = table_of()
    for number in range(4):
        table.insert(rides((str(number), f"city{number}", number, 1.0)), options=ONE)
    table.holds.add("pipeline-7", hours=10_000)
    table.holds.release("pipeline-7")
    table.insert(rides(("5", "city5", 5, 1.0)), options=ONE)
    assert context_of(table).storage.list_files(HOLD_FOLDER) == []


@policies
def test_a_scan_that_takes_long_is_read_to_its_end_under_a_hold(options: dict[str, str]) -> None:
    table = table_of()
    write(table, range(2), options)
    with table.holds.temporary(hours=10_000):
        scan, then = table.scan(columns=["id", "city", "ts", "fare"]), held(table)
        write(table, range(2, 8), options)
        table.insert_overwrite(rides(("other", "rome", 9, 9.0)), options=options)
        write(table, range(9, 11), options)
        assert [tuple(row.values()) for row in scan.to_arrow().to_pylist()] == then
    assert table.holds.list() == []


def test_a_hold_whose_reader_never_came_back_ends_by_itself(caplog: pytest.LogCaptureFixture) -> None:
    table = table_of()
    write(table, range(2), ONE)
    table.holds.add("forgotten", hours=10)
    write(table, range(2, 6), ONE)
    assert len(table.holds.list()) == 1
    write(table, range(6, 12), ONE)
    assert table.holds.list() == []
    assert len(data_files(table)) <= 3
    assert [each for each in caplog.messages if "forgotten" in each and "did not renew it" in each]


def test_a_query_window_keeps_files_however_many_commits_there_are() -> None:
    window = {"drawstring.clean.window.minutes": "600"}
    table = table_of()
    write(table, range(2), {**ONE, **window})
    scan, then = table.scan(columns=["id", "city", "ts", "fare"]), held(table)
    write(table, range(2, 6), {**ONE, **window})
    assert [tuple(row.values()) for row in scan.to_arrow().to_pylist()] == then
    write(table, range(6, 10), {**ONE, **window})
    assert len(data_files(table)) < 8


def test_a_reader_that_follows_under_a_hold_sees_every_commit() -> None:
    table = table_of()
    write(table, range(2), ONE)
    batches = table.follow("latest", poll_seconds=None, max_commits=1, hold="loop", hold_hours=10_000)
    write(table, range(2, 12), ONE)
    seen: list[Any] = []
    for batch in batches:
        seen += batch.rows.to_arrow()["fare"].to_pylist()
        write(table, range(20, 20), ONE)
    assert seen == [float(number) for number in range(2, 12)]
    assert [each.position for each in table.holds.list()] == [time_of(table.timeline.writes()[-1])]
    write(table, range(12, 18), ONE)
    (batch,) = table.follow(seen_until(table), poll_seconds=None, hold="loop")
    assert batch.rows.to_arrow()["fare"].to_pylist() == [17.0]


def seen_until(table: Table) -> str:
    (hold,) = table.holds.list()
    return hold.position


def test_what_is_gone_cannot_be_held() -> None:
    table = table_of()
    write(table, range(2), ONE)
    first = time_of(table.timeline.writes()[0])
    write(table, range(2, 5), {**ONE, "hoodie.archive.automatic": "false"})
    with pytest.raises(InvalidError, match="cleaned away"):
        table.holds.add("late", first)
    write(table, range(5, 12), ONE)
    with pytest.raises(InvalidError, match="archived"):
        table.holds.add("late", "earliest")
    assert table.holds.list() == []
    assert table.holds.add("late", time_of(table.timeline.writes()[-1])) in table.holds.list()


def test_a_hold_that_comes_while_a_clean_is_planned_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of()
    never = {"hoodie.clean.automatic": "false"}
    write(table, range(5), never)
    position = time_of(table.timeline.writes()[1])
    real, looks = MemoryStorage.list_files, 0

    def late(storage: MemoryStorage, folder: str) -> list[FileStatus]:
        nonlocal looks
        found = real(storage, folder)
        if folder == HOLD_FOLDER:
            looks += 1
            if looks == 1:
                Table(context_of(table)).holds.add("late", position)
        return found

    before = data_files(table)
    with monkeypatch.context() as patched:
        patched.setattr(MemoryStorage, "list_files", late)
        assert not table.services.clean(options=ONE)
    assert data_files(table) == before
    assert table.timeline.pending() == ()
    assert fares(table, position) == [2.0, 3.0, 4.0]
    table.holds.release("late")
    assert table.services.clean(options=ONE)


def test_a_hold_is_refused_once_a_clean_is_about_to_take_what_it_needs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = table_of()
    write(table, range(5), {"hoodie.clean.automatic": "false"})
    position = time_of(table.timeline.writes()[1])
    asked: list[str] = []
    real = MemoryStorage.delete

    def deleting(storage: MemoryStorage, paths: Any) -> None:
        paths = list(paths)
        if not asked and any(path.endswith(".parquet") for path in paths):
            asked.append(position)
            with pytest.raises(InvalidError, match="cleaned away"):
                Table(context_of(table)).holds.add("late", position)
        real(storage, paths)

    monkeypatch.setattr(MemoryStorage, "delete", deleting)
    assert table.services.clean(options=ONE)
    assert asked
    assert table.holds.list() == []


@pytest.mark.parametrize(
    ("call", "says"),
    [
        ({"name": "../x"}, "not a valid name"),
        ({"name": ""}, "not a valid name"),
        ({"name": "x", "hours": 0}, "hours"),
        ({"name": "x", "hours": float("nan")}, "hours"),
        ({"name": "x", "position": "when?"}, "not a time"),
    ],
)
def test_a_hold_that_makes_no_sense_leaves_no_file(call: dict[str, Any], says: str) -> None:
    table = table_of()
    write(table, range(1), ONE)
    with pytest.raises(InvalidError, match=says):
        table.holds.add(**call)
    assert context_of(table).storage.list_files(HOLD_FOLDER) == []


def test_a_damaged_hold_stops_nothing() -> None:
    table = table_of()
    context_of(table).storage.put(f"{HOLD_FOLDER}/x~1.json", b"{")
    write(table, range(5), ONE)
    assert table.holds.list() == []
    assert len(data_files(table)) == 2


def test_readers_with_one_name_and_many_do_not_disturb_each_other() -> None:
    table = table_of()
    write(table, range(2), ONE)
    older = table.holds.add("a", hours=10_000)
    write(table, range(2, 4), ONE)
    newer = table.holds.add("b", hours=10_000)
    moved = table.holds.add("a", hours=10_000)
    assert {each.name for each in table.holds.list()} == {"a", "b"}
    assert older.position < moved.position == newer.position
    with pytest.raises(
        InvalidError, match=r"There is no hold 'c', or it has ended. The holds of the table are a, b\."
    ):
        table.holds.release("c")
    assert len(context_of(table).storage.list_files(HOLD_FOLDER)) == 2
