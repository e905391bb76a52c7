"""Writers that give way to others before they write a file, by the markers of these."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from drawstring.base.errors import LostRaceError, RivalError
from drawstring.engine.local import LocalEngine
from drawstring.filegroups.write.markers import MARKER_ROOT, Markers
from drawstring.storage.protocol import LOCK_FOLDER
from drawstring.table import Table
from drawstring.testing import context_of
from tests.support.interleavings import OPTIMISTIC, interleave
from tests.support.interrupted import (
    ActingClock,
    Interrupted,
    Standing,
    on,
    slept,
    upserting,
    while_it_sleeps,
)
from tests.support.limits import SetLimits
from tests.support.rows import held, rides
from tests.support.storages import by_clock
from tests.support.tables import COW, MOR, C, filled, table_at

EARLY = {**OPTIMISTIC, "hoodie.write.concurrency.early.conflict.detection.enable": "true"}
ONE_ATTEMPT = {"hoodie.write.num.retries.on.conflict.failures": "0"}
FIRST, SECOND = ("a", "rome", 5, 5.0), ("b", "rome", 7, 7.0)
kinds = pytest.mark.parametrize(("table_type", "version"), [(COW, 9), (MOR, 9), (MOR, 6)])


def standing(table: Table) -> Standing:
    """Return a writer that has begun a file of the file group in Rome."""
    writer = Standing(table, upserting(FIRST, options={**OPTIMISTIC, **ONE_ATTEMPT}))
    writer.start()
    return writer


def in_text_files(table: Table) -> None:
    """Replace the markers of the pending write by those of Hudi's timeline server."""
    storage = context_of(table).storage
    (pending,) = table.timeline.pending_writes()
    folder = f"{MARKER_ROOT}/{pending.requested}"
    marked = [status.path for status in storage.list_tree(folder)]
    storage.put(f"{folder}/MARKERS.type", b"TIMELINE_SERVER_BASED")
    lines = "".join(f"{path.removeprefix(folder + '/')}\n" for path in marked)
    storage.put(f"{folder}/MARKERS0", lines.encode())
    storage.delete(marked)


@pytest.mark.parametrize("in_text", [False, True], ids=["direct", "text"])
@kinds
def test_a_write_gives_way_before_it_writes_a_file(table_type: str, version: int, in_text: bool) -> None:
    table = filled(table_type=table_type, version=version)
    first = standing(table)
    if in_text:
        in_text_files(table)
    storage = context_of(table).storage
    before = {status.path for status in storage.list_tree("rome")}
    with pytest.raises(RivalError) as caught:
        table.upsert(rides(SECOND), options={**EARLY, **ONE_ATTEMPT})
    (pending,) = table.timeline.pending_writes()
    assert (caught.value.instant, caught.value.path) == (pending.requested, "rome")
    assert {status.path for status in storage.list_tree("rome")} == before
    table.upsert(rides(("x", "lima", 1, 1.0)), options={**EARLY, **ONE_ATTEMPT})
    first.finish()
    if not in_text:  # its own markers are gone otherwise
        assert first.error is None
        assert FIRST in held(table)


@kinds
def test_a_write_notices_a_rival_that_begins_while_it_writes_other_file_groups(
    table_type: str, version: int, limit: SetLimits
) -> None:
    limit(groups_ahead_max=1)
    table = filled(table_type=table_type, version=version)
    first = Standing(table, upserting(("x", "lima", 1, 1.0)), folder="lima")
    first.start()
    (rival,) = table.timeline.pending_writes()
    begun = [f"{each.partition}/{each.file_id}_0-0-0_1.parquet" for each in table.inspect.files()]

    def begin_others(_: Table) -> None:
        for path in begun:
            Markers(context_of(table).storage, rival.requested).create(path, "MERGE")

    second = on(Interrupted(on(Interrupted(table, begin_others, folder="pisa")), begin_others))
    in_turn = Table(replace(context_of(second), engine=LocalEngine(threads=1)))
    with pytest.raises(RivalError):
        in_turn.upsert(rides(SECOND, C), options={**EARLY, **ONE_ATTEMPT})
    first.finish()


@kinds
def test_it_runs_again_when_the_other_one_is_done(table_type: str, version: int) -> None:
    table = filled(table_type=table_type, version=version)
    first = standing(table)
    second = while_it_sleeps(table, lambda _: first.finish())
    second.upsert(rides(SECOND), options={**EARLY, "hoodie.write.num.retries.on.conflict.failures": "1"})
    assert first.error is None
    assert {FIRST, SECOND} <= set(held(table))
    assert len(table.timeline.rolled_back) <= 1
    assert slept(second) < 2


def test_the_last_attempt_wins_against_a_writer_that_takes_too_long() -> None:
    table = filled()
    first = standing(table)
    second = while_it_sleeps(table, lambda _: None)
    waits = {"hoodie.write.num.retries.on.conflict.failures": "1", "hoodie.write.lock.wait_time_ms": "5000"}
    second.upsert(rides(SECOND), options={**EARLY, **waits})
    assert 4 < slept(second) < 7
    first.finish()
    assert isinstance(first.error, LostRaceError)
    assert SECOND in held(table)


def test_a_write_does_not_wait_for_a_rival_that_is_killed(tmp_path: Path) -> None:
    table = table_at(tmp_path / "rides", COW)
    first = standing(table)

    def kill(_: Table) -> None:
        """Leave what a killed process leaves: a young heartbeat, and a lock file that nobody holds."""
        (lock,) = (tmp_path / "rides" / LOCK_FOLDER).glob("*.service")
        lock.unlink()
        lock.touch()

    second = while_it_sleeps(table, kill)
    second.upsert(rides(SECOND), options=EARLY)
    assert 0.3 < slept(second) < 5
    first.finish()
    assert isinstance(first.error, LostRaceError)
    assert SECOND in held(table)


def test_nobody_gives_way_to_a_dead_writer() -> None:
    table = filled()
    first = standing(table)
    clock = ActingClock(context_of(table).clock, lambda: None)
    clock.slept = 3600
    by_clock(context_of(table).storage, clock)
    later = Table(replace(context_of(table), clock=clock))
    later.upsert(rides(SECOND), options={**EARLY, **ONE_ATTEMPT})
    first.finish()
    assert SECOND in held(table)


def test_by_default_conflicts_show_at_the_commit() -> None:
    table = filled(table_type=MOR)
    first = standing(table)
    table.upsert(rides(("a", "rome", 7, 7.0)), options={**OPTIMISTIC, **ONE_ATTEMPT})
    first.finish()
    assert ("a", "rome", 7, 7.0) in held(table)


@kinds
def test_what_two_writers_leave_is_what_one_after_the_other_leaves(table_type: str, version: int) -> None:
    def first(table: Table, options: dict[str, str]) -> object:
        return table.upsert(rides(FIRST, ("new", "rome", 1, 1.0)), options=options)

    def second(table: Table, options: dict[str, str]) -> object:
        return table.upsert(rides(("a", "rome", 6, 6.0), ("new", "rome", 2, 2.0)), options=options)

    table = filled(table_type=table_type, version=version)
    assert interleave(table, first, second, every=9, offset=version % 9, mode=EARLY)
