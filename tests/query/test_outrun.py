"""Readers beside cleaning and archiving: right rows or a right error, wherever these come in between."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest

from drawstring.base.errors import CorruptTableError, InvalidError, UnavailableError
from drawstring.model.instant import time_of
from drawstring.query.scan import Scan
from drawstring.storage.protocol import Storage
from drawstring.table import Table
from drawstring.testing import context_of
from tests.support.combinations import others_long
from tests.support.concurrent_changes import Race, Raced, races
from tests.support.concurrent_writers import (
    ALL,
    HELD,
    KEEP_1,
    ONLY_THE_WRITE,
    ChangedTable,
    Rows,
    changed_table,
    rows_of,
    table_on,
)
from tests.support.faults import spaced, stride
from tests.support.rows import SCHEMA, rides
from tests.support.storages import stored
from tests.support.tables import COW, MOR, create

pytestmark = pytest.mark.scaled

KINDS = [(COW, 6), (COW, 9), (MOR, 6), (MOR, 8), (MOR, 9)]
kinds = pytest.mark.parametrize(("table_type", "version"), others_long(KINDS, KINDS[::2]))
some_kinds = pytest.mark.parametrize(("table_type", "version"), KINDS[::2])


@dataclass
class Outcomes:
    """Counts what became of readings, and refuses what must not happen."""

    seen: Counter[str] = field(default_factory=Counter)

    def read(self, what: str, read: Callable[[], Any], check: Callable[[Any], bool], where: object) -> None:
        try:
            found = read()
        except InvalidError as error:
            assert "cleaned away" in str(error) or "archived" in str(error), f"{what}, {where}: {error}"
            self.seen["refused"] += 1
        except UnavailableError as error:
            assert "again" in str(error), f"{what}, {where}: {error}"
            self.seen["outrun"] += 1
        else:
            assert check(found), f"{what}, {where}: {found}"
            self.seen["read"] += 1


def run(
    changed: ChangedTable,
    what: str,
    read: Callable[[Table], Any],
    check: Callable[[Any], bool],
    pace: int = ALL,
) -> Counter[str]:
    """Read against the changes of others from every call on; return what became of it."""
    outcomes = Outcomes()

    def reading(storage: Storage, race: Race) -> None:
        outcomes.read(what, lambda: read(table_on(storage)), check, race)

    assert list(races(changed, pace, reading, spaced(1 if pace == ALL else 3)))
    return outcomes.seen


@kinds
def test_a_snapshot_is_one_that_the_table_had(table_type: str, version: int) -> None:
    changed = changed_table(table_type, version)
    states = set(changed.states[changed.after :])
    seen = run(changed, "snapshot", lambda table: rows_of(table.scan(SCHEMA.names)), states.__contains__)
    assert seen["read"] > 2 * seen["outrun"] > 0 == seen["refused"]


@kinds
def test_a_read_optimized_snapshot_is_one_that_the_table_had(table_type: str, version: int) -> None:
    changed = changed_table(table_type, version)
    states = set(changed.optimized[changed.after :])

    def read(table: Table) -> Rows:
        return rows_of(table.scan(SCHEMA.names, read_optimized=True))

    seen = run(changed, "read-optimised", read, states.__contains__)
    assert seen["read"] > 2 * seen["outrun"] > 0 == seen["refused"]


@pytest.mark.parametrize("policy", ["KEEP_LATEST_COMMITS", "KEEP_LATEST_FILE_VERSIONS"])
@kinds
def test_an_instant_is_read_as_it_was_or_refused(table_type: str, version: int, policy: str) -> None:
    changed = changed_table(table_type, version, policy=policy)
    for at in (1, changed.after):
        time = changed.writes[at].requested

        def read(table: Table, time: str = time) -> Rows:
            return rows_of(table.scan(SCHEMA.names, as_of=time))

        seen = run(changed, f"as of {time}", read, changed.states[at].__eq__, ALL)
        assert seen["refused"] > 0


@some_kinds
def test_the_newest_file_slices_are_those_of_some_time(table_type: str, version: int) -> None:
    changed = changed_table(table_type, version)

    def read(table: Table) -> list[Any]:
        return table.inspect.files()

    groups = len(read(table_on(stored(changed.files))))
    seen = run(changed, "file slices", read, lambda found: len(found) >= groups - 1)
    assert set(seen) == {"read"}


@some_kinds
def test_a_hold_is_placed_where_all_is_there_or_refused(table_type: str, version: int) -> None:
    changed = changed_table(table_type, version)
    position = time_of(changed.writes[0])

    def read(table: Table) -> bool:
        return table.holds.add("reader", position).position == position

    seen = run(changed, "hold", read, lambda found: found)
    assert seen["refused"] > 0 < seen["read"]


def pieces(table: Table, changed: ChangedTable, full_scan: bool) -> Scan:
    start, end = time_of(changed.writes[0]), time_of(changed.writes[-1])
    return table.incremental(start, end, columns=SCHEMA.names, full_scan=full_scan)


@kinds
def test_an_increment_has_all_rows_or_is_refused(table_type: str, version: int) -> None:
    changed = changed_table(table_type, version)
    whole = rows_of(pieces(table_on(stored(changed.files)), changed, full_scan=False))
    seen = run(changed, "increment", lambda table: rows_of(pieces(table, changed, False)), whole.__eq__)
    assert seen["refused"] > 0 < seen["read"]


@kinds
def test_an_increment_by_commit_times_has_all_rows_that_are_left(table_type: str, version: int) -> None:
    changed = changed_table(table_type, version)
    whole = set(rows_of(pieces(table_on(stored(changed.files)), changed, full_scan=False)))
    left = whole & set(changed.states[-1])
    assert left

    def check(found: Rows) -> bool:
        return left <= set(found) <= whole

    seen = run(changed, "increment", lambda table: rows_of(pieces(table, changed, True)), check)
    assert seen["refused"] == 0 < seen["read"]


@kinds
def test_changes_are_all_told_or_refused(table_type: str, version: int) -> None:
    changed = changed_table(table_type, version)
    start, end = time_of(changed.writes[0]), time_of(changed.writes[-1])

    def read(table: Table) -> Rows:
        rows = table.changes(start, end).to_arrow().to_pylist()
        return tuple(tuple(row.values()) for row in rows)

    whole = read(table_on(stored(changed.files)))
    assert len(whole) >= 5
    seen = run(changed, "changes", read, whole.__eq__)
    assert seen["refused"] > 0 < seen["read"]


@pytest.mark.parametrize("pace", [1, 11])
@some_kinds
def test_changes_that_come_one_by_one_mislead_nobody(table_type: str, version: int, pace: int) -> None:
    changed = changed_table(table_type, version)
    states = set(changed.states[changed.after :])
    time, state = changed.writes[changed.after].requested, changed.states[changed.after]
    run(changed, "snapshot", lambda table: rows_of(table.scan(SCHEMA.names)), states.__contains__, pace)
    run(changed, "as of", lambda table: rows_of(table.scan(SCHEMA.names, as_of=time)), state.__eq__, pace)
    whole = rows_of(pieces(table_on(stored(changed.files)), changed, full_scan=False))
    run(changed, "increment", lambda table: rows_of(pieces(table, changed, False)), whole.__eq__, pace)


def followed(table: Table, start: Any = None, **how: Any) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    for batch in table.follow(start, poll_seconds=None, **how):
        yield batch.position, batch.rows.to_arrow().to_pylist()


@pytest.mark.parametrize("pace", [ALL, 5])
@kinds
def test_a_follower_under_a_hold_sees_each_commit_once(table_type: str, version: int, pace: int) -> None:
    changed = changed_table(table_type, version, hold=True)
    start = time_of(changed.writes[HELD])
    storage = Raced(stored(changed.files), changed.changes, Race(0, ALL))
    storage.play()
    whole = list(followed(table_on(storage), start, max_commits=1))
    assert len(whole) >= 6
    assert {row["_hoodie_commit_time"] for _, rows in whole for row in rows} >= {
        each.requested for each in changed.writes[HELD + 1 :]
    }

    def read(storage: Storage, race: Race) -> None:
        assert isinstance(storage, Raced)
        table = table_on(storage)
        found = list(followed(table, start, max_commits=1, hold="reader", hold_hours=10_000))
        storage.play()
        rest = followed(table, found[-1][0] if found else start, max_commits=1)
        assert [*found, *rest] == whole, race

    assert list(races(changed, pace, read, 2 + stride()))


@pytest.mark.parametrize("version", [6, 9])
def test_the_newest_commit_up_to_an_archived_time_is_not_just_empty(version: int) -> None:
    changed = changed_table(COW, version)
    storage = Raced(stored(changed.files), changed.changes, Race(0, ALL))
    storage.play()
    table, first = table_on(storage), time_of(changed.writes[0])
    with pytest.raises(InvalidError, match="archived"):
        table.incremental(end=first, full_scan=False).to_arrow()
    with pytest.raises(InvalidError, match="archived"):
        table.changes(end=first).to_arrow()
    found = table.incremental(end=first).to_arrow()
    assert set(found.column("_hoodie_commit_time").to_pylist()) <= {changed.writes[0].requested}


@some_kinds
def test_a_follower_who_takes_the_table_for_what_is_gone_ends_with_its_rows(
    table_type: str, version: int
) -> None:
    changed = changed_table(table_type, version)
    final = {row[0]: row for row in changed.states[-1]}

    def read(storage: Storage, race: Race) -> None:
        assert isinstance(storage, Raced)
        found: dict[str, tuple[Any, ...]] = {}
        position = None
        for is_over in (False, False, True):
            if is_over:
                storage.play()
            try:
                for at, rows in followed(
                    table_on(storage), position, columns=SCHEMA.names, max_commits=2, on_cleaned="snapshot"
                ):
                    position = at
                    found |= {row["id"]: tuple(row.values()) for row in rows}
            except UnavailableError as error:
                assert not is_over and "again" in str(error)
        assert {key: found.get(key) for key in final} == final, race

    assert list(races(changed, ALL, read, 2 + stride()))


def test_a_file_that_is_lost_is_told_from_one_that_was_cleaned() -> None:
    table = create()
    table.insert(rides(("a", "rome", 1, 1.0), ("b", "oslo", 1, 1.0)), options=ONLY_THE_WRITE)
    scan = table.scan()
    scan.tasks()
    lost = [
        each.path for each in context_of(table).storage.list_files("rome") if each.name.endswith(".parquet")
    ]
    context_of(table).storage.delete(lost)
    with pytest.raises(CorruptTableError, match="missing") as caught:
        scan.to_arrow()
    assert caught.value.path == lost[0]
    with pytest.raises(CorruptTableError, match="missing"):
        table.scan().to_arrow()


def test_a_scan_that_handed_rows_out_says_that_it_was_outrun() -> None:
    table = create()
    table.insert(rides(("a", "rome", 1, 1.0), ("b", "oslo", 1, 1.0)), options=ONLY_THE_WRITE)
    batches = table.scan(SCHEMA.names).to_batches()
    assert isinstance(next(batches), pa.RecordBatch)
    for number in (2, 3):
        table.upsert(rides(("a", "rome", number, 0.0), ("b", "oslo", number, 0.0)), options=ONLY_THE_WRITE)
    table.services.clean(options=KEEP_1)
    with pytest.raises(UnavailableError, match="deleted after the query was planned"):
        list(batches)
    assert len(rows_of(table.scan(SCHEMA.names))) == 2
