"""An attempt of a write that lost before: it goes first where it writes, without the table lock."""

from __future__ import annotations

import pickle
import threading
from pathlib import Path

import pytest

from drawstring.base.errors import ConflictError, LostRaceError, ReservedError
from drawstring.filegroups.write.markers import MARKER_ROOT
from drawstring.model.instant import time_of
from drawstring.storage.protocol import LOCK_FOLDER
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.txn.reservations import RESERVED_SUFFIX
from tests.support.interleavings import OPTIMISTIC
from tests.support.interrupted import (
    Act,
    Interrupted,
    Standing,
    in_no_time,
    on,
    slept,
    upserting,
    while_it_sleeps,
)
from tests.support.methods import method
from tests.support.rows import held, rides
from tests.support.tables import COW, MOR, NEW_FILE_GROUPS, WITHOUT_SERVICES, filled, store_of, table_at

RETRIES = "hoodie.write.num.retries.on.conflict.failures"
WAIT = "hoodie.write.lock.wait_time_ms"
TWICE = {**OPTIMISTIC, RETRIES: "1"}
ONCE = {**OPTIMISTIC, RETRIES: "0", WAIT: "100"}
OWN, RIVAL, OTHER = ("a", "rome", 9, 9.0), ("a", "rome", 5, 5.0), ("o", "oslo", 6, 6.0)
WAIT_SECONDS = 30
BEGUN = "f9-0_0-1-0_20260101000000000.parquet"
CHANGES_MAX = 100
kinds = pytest.mark.parametrize(("table_type", "version"), [(COW, 9), (MOR, 9), (MOR, 6)])


def reserved(table: Table) -> list[str]:
    """Return the times of the writes that have a reservation."""
    names = context_of(table).storage.list_names(LOCK_FOLDER)
    return [name.removesuffix(RESERVED_SUFFIX) for name in names if name.endswith(RESERVED_SUFFIX)]


def in_last_attempt(table: Table, act: Act, write: Act | None = None) -> None:
    """Let a write lose once, and let others act while its last attempt writes a file in Rome."""
    acts = [upserting(RIVAL, options={**OPTIMISTIC, **WITHOUT_SERVICES}), act]

    def let_others_act(other: Table) -> None:
        if len(acts) == 2 or (acts and reserved(other)):
            acts.pop(0)(other)

    writer = on(Interrupted(table, let_others_act, times=CHANGES_MAX))
    (write or upserting(OWN, options=TWICE))(writer)
    assert acts == []


@kinds
def test_others_write_elsewhere_meanwhile_and_not_where_it_writes(table_type: str, version: int) -> None:
    table = filled(table_type=table_type, version=version)

    def act(other: Table) -> None:
        (pending,) = other.timeline.pending_writes()
        assert reserved(other) == [pending.requested]
        other.upsert(rides(OTHER), options=ONCE)
        for refused in (
            upserting(RIVAL, options=ONCE),
            lambda other: other.insert_overwrite(rides(RIVAL), options=ONCE),
            lambda other: other.delete_partition("rome", options=ONCE),
            lambda other: other.update("fare > 0", {"fare": "fare + 1"}, options=ONCE),
        ):
            with pytest.raises(ReservedError, match="goes first in partition rome:") as caught:
                refused(other)
            assert caught.value.instant == pending.requested
            assert pending.requested in str(caught.value)
        assert [each.requested for each in other.timeline.pending_writes()] == [pending.requested]

    in_last_attempt(table, act)
    assert {OWN, OTHER} <= set(held(table))
    assert reserved(table) == []


def test_a_write_goes_first_from_its_third_attempt_on() -> None:
    table, lost = filled(), set()

    def win_if_possible(other: Table) -> None:
        (pending,) = other.timeline.pending_writes()
        if pending.requested not in lost and not reserved(other):
            lost.add(pending.requested)
            other.upsert(rides(RIVAL), options=ONCE)

    on(Interrupted(table, win_if_possible, times=CHANGES_MAX)).upsert(rides(OWN))
    assert len(lost) == 2
    assert OWN in held(table)


def test_a_write_that_lost_begins_again_when_those_are_done_that_were_at_work() -> None:
    table = filled()
    next_one = Standing(table, upserting(("b", "rome", 6, 6.0)))

    def lose(other: Table) -> None:
        clock = context_of(other).clock
        clock.sleep(1.0)  # so long does the attempt take
        table.upsert(rides(RIVAL))
        next_one.start()

    late = while_it_sleeps(table, lambda _: next_one.finish(), after=1.3)
    on(Interrupted(late, lose)).upsert(rides(OWN))
    assert next_one.error is None
    own, other = table.timeline.writes()[-1], table.timeline.writes()[-2]
    assert own.requested > time_of(other)
    assert len(table.timeline.rolled_back) == 1
    assert held(table)[:2] == [OWN, ("b", "rome", 6, 6.0)]


@pytest.mark.parametrize(("table_type", "service"), [(COW, "cluster"), (MOR, "cluster"), (MOR, "compact")])
def test_services_plan_nothing_where_it_writes(table_type: str, service: str) -> None:
    table = filled(table_type=table_type)
    quiet = {**WITHOUT_SERVICES, **NEW_FILE_GROUPS}
    for key in "mn":
        table.insert(rides((key, "oslo", 2, 2.0), (key, "rome", 2, 2.0)), options=quiet)
    table.upsert(rides(("m", "oslo", 3, 3.0), ("m", "rome", 3, 3.0)), options=quiet)

    def act(other: Table) -> None:
        other = while_it_sleeps(other, lambda _: None)
        assert method(other, service)(options={WAIT: "1000"})
        assert 0.9 < slept(other) < 3
        latest = other.timeline.latest_write()
        assert latest is not None
        written = {stat.partition for stat in store_of(other).commit_metadata(latest).stats}
        assert "oslo" in written
        assert "rome" not in written

    in_last_attempt(table, act, upserting(OWN, options={**TWICE, **WITHOUT_SERVICES}))
    assert OWN in held(table)
    assert len(table.timeline.rolled_back) == 1, "the last attempt did not lose"


def test_a_write_that_reads_the_whole_table_reserves_it() -> None:
    table = filled()

    def act(other: Table) -> None:
        with pytest.raises(ReservedError, match="goes first in the whole table"):
            other.upsert(rides(OTHER), options=ONCE)

    in_last_attempt(table, act, lambda writer: writer.update("fare > 0", {"fare": 7.0}, options=TWICE))
    assert {fare for *_, fare in held(table)} == {7.0}


def test_a_wait_in_vain_tells_the_file_groups_in_which_it_is_at_work() -> None:
    table = filled()

    def act(other: Table) -> None:
        (pending,) = other.timeline.pending_writes()
        context_of(other).storage.put(f"{MARKER_ROOT}/{pending.requested}/rome/{BEGUN}.marker.CREATE", b"")
        for retries in ("0", "1"):
            with pytest.raises(ReservedError) as caught:
                in_no_time(other).upsert(rides(RIVAL), options={**ONCE, RETRIES: retries})
            assert ("rome", BEGUN.split("_")[0]) in caught.value.groups
            assert str(caught.value).count("It is at work in rome/") == 1
            assert "Write again when it is done" in str(caught.value)
            assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)

    in_last_attempt(table, act)


class Last(threading.Thread):
    """A write in a thread, which stands still in its last attempt until it is told to go on."""

    def __init__(self, table: Table) -> None:
        super().__init__(daemon=True)
        self._table = table
        self._stands, self._may_go_on = threading.Event(), threading.Event()
        self.error: Exception | None = None

    def run(self) -> None:
        def stand_still(_: Table) -> None:
            self._stands.set()
            self._may_go_on.wait(WAIT_SECONDS)

        try:
            in_last_attempt(self._table, stand_still)
        except Exception as error:  # looked at when the thread is over
            self.error = error

    def begin(self) -> None:
        self.start()
        assert self._stands.wait(WAIT_SECONDS)

    def finish(self) -> None:
        self._may_go_on.set()
        self.join(WAIT_SECONDS)


@kinds
@pytest.mark.parametrize("retries", ["0", "1"])
def test_others_wait_for_it_and_commit_after_it(table_type: str, version: int, retries: str) -> None:
    table = filled(table_type=table_type, version=version)
    first = Last(table)
    first.begin()
    second = while_it_sleeps(table, lambda _: first.finish())
    options = {**OPTIMISTIC, RETRIES: retries, WAIT: "5000"}
    if retries == "0":
        second.insert(
            rides(("n", "rome", 1, 1.0)), options={**options, "hoodie.parquet.small.file.limit": "0"}
        )
    else:
        second.upsert(rides(("b", "rome", 7, 7.0)), options=options)
    assert first.error is None
    assert OWN in held(table)
    assert 0.2 < slept(second) < 3


def test_a_second_one_that_has_lost_too_begins_after_the_first() -> None:
    table = filled()
    first = Last(table)
    first.begin()
    begun: list[int] = []

    def let_go(other: Table) -> None:
        begun.append(len(other.timeline.pending_writes()))
        first.finish()

    second = while_it_sleeps(table, let_go, after=1.0)
    second.upsert(rides(("b", "rome", 7, 7.0)), options={**TWICE, WAIT: "600"})
    assert first.error is None
    assert begun == [1], "its last attempt had not begun while the first one was at work"
    assert {OWN, ("b", "rome", 7, 7.0)} <= set(held(table))


def test_nobody_waits_for_one_whose_process_died(tmp_path: Path) -> None:
    table = table_at(tmp_path / "rides", COW)
    first = Last(table)
    first.begin()
    (lock,) = (tmp_path / "rides" / LOCK_FOLDER).glob("*.service")
    lock.unlink()
    lock.touch()
    table.upsert(rides(RIVAL), options=ONCE)
    assert reserved(table) == [], "the next writer clears it away"
    first.finish()
    assert isinstance(first.error, LostRaceError)
    assert RIVAL in held(table)


def test_one_that_stands_still_until_its_heartbeat_expires_cannot_commit_after_others() -> None:
    table = filled()
    first = Last(table)
    first.begin()
    late = while_it_sleeps(table, lambda _: None)
    context_of(late).clock.sleep(300)
    late.upsert(rides(RIVAL), options=ONCE)
    first.finish()
    assert isinstance(first.error, ConflictError)
    assert RIVAL in held(table)


def test_a_reservation_that_is_cut_short_keeps_nobody_away() -> None:
    table = filled()

    def act(other: Table) -> None:
        (time,) = reserved(other)
        context_of(other).storage.put(f"{LOCK_FOLDER}/{time}{RESERVED_SUFFIX}", b'{"parti')
        other.upsert(rides(RIVAL), options=ONCE)

    with pytest.raises(LostRaceError):
        in_last_attempt(table, act)


def test_it_runs_again_after_a_change_of_the_properties() -> None:
    table = filled()
    in_last_attempt(table, lambda other: other.indexes.create("column_stats"))
    assert OWN in held(table)
    assert len(table.timeline.rolled_back) == 2


LATE = ("b", "rome", 0, 0.0)
"""Older than the row that the table has."""


def delete_newer(table: Table) -> None:
    """Delete the row that is newer than `LATE`."""
    table.delete(where="id = 'b'", options={**OPTIMISTIC, **WITHOUT_SERVICES})


def straying(table: Table, *acts: Act) -> None:
    """Write to Oslo, and at last to Rome as well; others act once in each attempt."""
    remaining, attempts = list(acts), [[""]]

    def let_others_act(other: Table) -> None:
        if remaining and attempts[-1] != reserved(other):
            attempts.append(reserved(other))
            remaining.pop(0)(other)

    writer = on(Interrupted(table, let_others_act, times=CHANGES_MAX, folder="oslo"))
    writer.upsert(rides(("o", "oslo", 9, 9.0), LATE), options={**TWICE, WAIT: "5000"})
    assert remaining == []


def test_one_that_writes_elsewhere_as_well_reserves_that_too_when_it_loses_there() -> None:
    table = filled()
    table.upsert(rides(OTHER))
    seen: list[int] = []

    def lose(other: Table) -> None:
        upserting(("o", "oslo", 7, 7.0), options={**OPTIMISTIC, **WITHOUT_SERVICES})(other)
        delete_newer(other)

    def look(other: Table) -> None:
        (time,) = reserved(other)
        text = context_of(other).storage.read(f"{LOCK_FOLDER}/{time}{RESERVED_SUFFIX}").decode()
        seen.append(text.count("rome") + text.count("oslo"))

    def look_and_let_lose(other: Table) -> None:
        look(other)
        other.insert(rides(LATE), options={**ONCE, **WITHOUT_SERVICES})
        delete_newer(other)

    straying(table, lose, look_and_let_lose, look)
    assert seen == [1, 2]
    assert LATE in held(table)


def test_one_that_writes_elsewhere_as_well_gives_way_to_one_that_goes_first_there() -> None:
    table = filled()
    table.upsert(rides(OTHER))
    first = Last(table)

    def lose(other: Table) -> None:
        upserting(("o", "oslo", 7, 7.0), options={**OPTIMISTIC, **WITHOUT_SERVICES})(other)
        delete_newer(other)
        first.begin()

    straying(while_it_sleeps(table, lambda _: first.finish(), after=1.0), lose)
    assert first.error is None
    assert {OWN, LATE} <= set(held(table))
