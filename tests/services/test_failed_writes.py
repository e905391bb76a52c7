"""Dead writes by policy: left to a clean that finds no heartbeat (LAZY), or to nobody (NEVER)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from drawstring.base.clock import SteppingClock
from drawstring.base.errors import ConflictError, DrawstringError, InvalidError
from drawstring.storage.memory import MemoryStorage
from drawstring.storage.protocol import Storage
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.timeline.store import TimelineStore
from drawstring.txn.heartbeat import HEARTBEAT_FOLDER
from tests.support.faults import (
    HOUR_MS,
    NEWER,
    START_MS,
    Prepared,
    is_decided,
    leftovers,
    opened,
    orphans,
    prepared,
)
from tests.support.faulty_storage import FaultyStorage
from tests.support.rows import held, rides
from tests.support.storages import data_files
from tests.support.tables import COW, MOR, create

POLICY = "hoodie.clean.failed.writes.policy"
MODE = "hoodie.write.concurrency.mode"
UNCLEANED = {
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    MODE: "SINGLE_WRITER",
}
LAZY = {POLICY: "LAZY", **UNCLEANED}
NEVER = {"hoodie.cleaner.policy.failed.writes": "never", **UNCLEANED}
NOW_MS = START_MS + HOUR_MS
NEXT = rides(("next", "rome", 9, 9.0), ("a", "rome", 9, 9.0))
KINDS = pytest.mark.parametrize(("table_type", "version"), [(COW, 6), (COW, 9), (MOR, 6), (MOR, 9)])
SHORT = {"hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4"}
EVERY = 4
"""Of all steps at which a writer may die every fourth is tried: here it is about what comes after."""


def deaths(start: Prepared, **options: Any) -> list[tuple[int, Storage]]:
    """Copies of a table, in each of which a writer died at another step before it had decided to commit."""
    found = []
    for steps in range(1, 200, EVERY):
        storage = start.copy()
        faulty = FaultyStorage(storage, steps)
        with suppress(DrawstringError):
            opened(faulty, START_MS).upsert(NEWER, options=options)
        if held(opened(storage, NOW_MS)) != start.before or is_decided(storage):
            return found
        if opened(storage, NOW_MS).timeline.pending_writes():
            found.append((steps, storage))
    raise AssertionError("it never committed")


def died(table_type: str, version: int, **options: Any) -> tuple[Prepared, Storage]:
    """A table with a writer that died as late as may be before its commit."""
    start = prepared(table_type, version, "upsert")
    return start, deaths(start, **options)[-1][1]


def beats(storage: Storage) -> list[str]:
    return [status.name for status in storage.list_files(HEARTBEAT_FOLDER)]


def beat(storage: Storage, requested: str, at_ms: int, content: bytes) -> None:
    """Let the heartbeat of a write have been at some time."""
    then = MemoryStorage(storage.spec.uri, SteppingClock(at_ms))
    then.put(f"{HEARTBEAT_FOLDER}/{requested}", content)


def after_next(start: Prepared) -> list[tuple[Any, ...]]:
    others = [row for row in start.before if row[:2] != ("a", "rome")]
    return sorted([*others, ("next", "rome", 9, 9.0), ("a", "rome", 9, 9.0)])


@KINDS
def test_a_dead_write_that_is_left_to_cleaning_never_counts(table_type: str, version: int) -> None:
    start = prepared(table_type, version, "upsert")
    found = deaths(start, **LAZY)
    assert len(found) > 1
    for steps, storage in found:
        step, table = f"after {steps} changes", opened(storage, NOW_MS)
        (dead,) = table.timeline.pending_writes()
        left = data_files(storage)
        table.upsert(NEXT, options=LAZY)
        assert table.timeline.pending_writes() == (dead,), step
        assert left <= data_files(storage), step
        if table_type == MOR:
            table.services.compact(options=LAZY)
        table.services.cluster(options=LAZY)
        assert held(table) == after_next(start), step
        assert held(table, as_of=table.timeline.writes()[1].requested) == start.before, step
        assert table.timeline.pending_writes() == (dead,), step

        table.services.clean(options=LAZY)
        assert held(table) == after_next(start), step
        assert (orphans(table), leftovers(table), beats(storage)) == ([], [], []), step


@KINDS
def test_a_dead_write_that_nobody_takes_back_stops_cleaning_and_archiving(
    table_type: str, version: int
) -> None:
    start, storage = died(table_type, version, **NEVER)
    table = opened(storage, NOW_MS)
    (dead,) = table.timeline.pending_writes()
    few = {"hoodie.clean.commits.retained": "1", **SHORT}
    for number in range(10, 17):
        table.upsert(rides(("next", "rome", number, 1.0)), options=NEVER)
    writes = table.timeline.writes()
    then = {write: held(table, as_of=write.requested) for write in writes[2:]}
    table.services.clean(options={**few, **NEVER})
    assert not table.services.archive(options={**few, **NEVER})
    assert table.timeline.writes() == writes
    assert table.timeline.pending_writes() == (dead,)
    assert {write: held(table, as_of=write.requested) for write in writes[2:]} == then

    (finding,) = [each for each in table.services.validate().findings if each.instant == dead.requested]
    assert finding.check == "pending"
    table.services.repair(only=["rollback"], apply=True)
    assert (orphans(table), leftovers(table)) == ([], [])
    assert held(table) == sorted([*start.before, ("next", "rome", 16, 1.0)])


def test_every_write_cleans_up_after_dead_ones_where_that_is_left_to_cleaning() -> None:
    start, storage = died(COW, 9, **LAZY)
    table = opened(storage, NOW_MS)
    table.upsert(NEXT, options={POLICY: "LAZY"})
    assert (orphans(table), leftovers(table), beats(storage)) == ([], [], [])
    assert held(table) == after_next(start)


@pytest.mark.parametrize(("age_ms", "is_alive"), [(60_000, True), (300_000, False)])
def test_a_clean_tells_dead_writes_by_their_heartbeat(age_ms: int, is_alive: bool) -> None:
    start, storage = died(COW, 9, **LAZY)
    table = opened(storage, NOW_MS)
    (dead,) = table.timeline.pending_writes()
    beat(storage, dead.requested, NOW_MS - age_ms, storage.read(f"{HEARTBEAT_FOLDER}/{dead.requested}"))
    table.upsert(NEXT, options=LAZY)
    table.services.clean(options=LAZY)
    assert table.timeline.pending_writes() == ((dead,) if is_alive else ())
    assert held(table) == after_next(start)
    table.services.clean(options={**LAZY, "hoodie.client.heartbeat.interval_in_ms": "1000"})
    assert table.timeline.pending_writes() == ()


@pytest.mark.parametrize("policy", ["EAGER", "LAZY", "NEVER"])
def test_nobody_writes_beside_a_live_writer_of_another_engine(policy: str) -> None:
    _, storage = died(COW, 9, **NEVER)
    table = opened(storage, NOW_MS)
    (theirs,) = table.timeline.pending_writes()
    beat(storage, theirs.requested, NOW_MS - 60_000, b"")
    with pytest.raises(ConflictError, match="Another process or engine"):
        table.upsert(NEXT, options={POLICY: policy, MODE: "SINGLE_WRITER"})
    table.upsert(
        NEXT, options={POLICY: policy, MODE: "SINGLE_WRITER", "hoodie.client.heartbeat.tolerable.misses": "1"}
    )


def test_a_writer_that_was_only_slow_cannot_complete_beside_later_writes() -> None:
    start, storage = died(MOR, 9, **NEVER)
    table = opened(storage, NOW_MS)
    (slow,) = table.timeline.pending_writes()
    table.upsert(NEXT, options=NEVER)
    late = TimelineStore(storage, table.config, context_of(table).clock)
    with pytest.raises(ConflictError, match="cannot be completed"):
        late.complete(slow, b"{}")
    assert held(table) == after_next(start)


def test_a_write_without_a_sign_of_life_for_too_long_does_not_commit() -> None:
    table = create(table_type=COW)

    def batches() -> Iterator[pa.RecordBatch]:
        context_of(table).clock.sleep(200)
        yield from NEXT.to_batches()

    slow = Table(replace(context_of(table), clock=SteppingClock(NOW_MS)))
    table = slow
    with pytest.raises(ConflictError, match="sent no heartbeat for too long"):
        slow.upsert(pa.RecordBatchReader.from_batches(NEXT.schema, batches()), options=LAZY)
    assert (slow.timeline.writes(), leftovers(slow), beats(context_of(slow).storage)) == ((), [], [])


def test_a_write_shows_signs_of_life_while_it_goes_on_and_none_after() -> None:
    table = create(table_type=COW)
    seen: list[list[str]] = []

    def batches() -> Iterator[pa.RecordBatch]:
        seen.append(beats(context_of(table).storage))
        yield from NEXT.to_batches()

    table.upsert(pa.RecordBatchReader.from_batches(NEXT.schema, batches()), options=LAZY)
    assert seen == [[table.timeline.writes()[0].requested]]
    assert beats(context_of(table).storage) == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (POLICY, "SOMETIMES"),
        ("hoodie.client.heartbeat.interval_in_ms", "999"),
        ("hoodie.client.heartbeat.tolerable.misses", "0"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_written(key: str, value: str) -> None:
    table = create(table_type=COW)
    with pytest.raises(InvalidError, match=key):
        table.upsert(NEXT, options={key: value})
    assert table.timeline.instants == ()
