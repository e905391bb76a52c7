"""Writers beside others that stand still until they lose the table lock, or die while they hold it."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from typing import Any

import pyarrow as pa
import pytest

from drawstring.base.errors import ConflictError, DecidedError, LostRaceError
from drawstring.model.instant import Action, State
from drawstring.model.table_version import LAYOUT_1, LAYOUT_2
from drawstring.storage.memory import MemoryStorage
from drawstring.storage.protocol import LOCK_FOLDER
from drawstring.table import Table
from drawstring.timeline.claims import Claim, ClaimState
from drawstring.timeline.store import TimelineStore
from drawstring.timeline.timeline import Timeline, parse_instant
from drawstring.txn.foreign_features import MetadataTableGuard
from drawstring.txn.heartbeat import HEARTBEAT_FOLDER
from tests.support.faulty_storage import FaultyStorage, InjectedFault
from tests.support.interleavings import OPTIMISTIC, opened
from tests.support.interrupted import upserting
from tests.support.rows import held, rides
from tests.support.simulation.pauses import SharedClock
from tests.support.stalled import LOST_SECONDS, NO_LIMIT, Stalled, check, shared
from tests.support.tables import COW, MOR, NEW_FILE_GROUPS, WITHOUT_COMPACTION

RETRIES = "hoodie.write.num.retries.on.conflict.failures"
KEEP_2 = {
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
}
kinds = pytest.mark.parametrize(("table_type", "version"), [(COW, 9), (MOR, 9), (MOR, 6)])


class DiesDecided(FaultyStorage):
    """Dies when it has claimed the completion of its write, before it puts the completed file."""

    def __init__(self, inner: MemoryStorage) -> None:
        super().__init__(inner, NO_LIMIT)
        self._is_dead = False

    def before_change(self, path: str) -> None:
        name = path.rpartition("/")[2]
        found = [parse_instant(name, layout) for layout in (LAYOUT_1, LAYOUT_2)]
        self._is_dead |= any(each is not None and each.state is State.COMPLETED for each in found)
        if self._is_dead:
            self.die(path)


@kinds
def test_what_a_dead_writer_had_decided_to_commit_comes_before_later_writes(
    table_type: str, version: int
) -> None:
    storage, clock = shared(table_type, version)
    with pytest.raises(InjectedFault):
        opened(DiesDecided(storage), clock).upsert(rides(("a", "rome", 2, 2.0)), options=OPTIMISTIC)
    clock.sleep(LOST_SECONDS)
    opened(storage, clock).update("fare >= 0", {"fare": "fare + 10"}, options=OPTIMISTIC)
    check(storage, clock)
    assert held(opened(storage, clock)) == [("a", "rome", 2, 12.0), ("b", "rome", 1, 11.0)]


class StallsCommitting(Stalled):
    """Stands still before it puts the claim on its completion, in one state or the other.

    Args:
        inner: the storage of all.
        clock: of all.
        state: of the claim.
        more_seconds: how much longer than a lease is good.
    """

    def __init__(
        self, inner: MemoryStorage, clock: SharedClock, state: ClaimState, more_seconds: float = 0.0
    ) -> None:
        super().__init__(inner, clock, upserting(("a", "rome", 3, 3.0)))
        self._state, self._more_seconds = state, more_seconds

    def _look(self, path: str, data: bytes) -> None:
        is_claim = path.startswith(LOCK_FOLDER) and path.endswith(".claim")
        if is_claim and not self.has_stood and Claim.decode(data).state is self._state:
            self._clock.sleep(self._more_seconds)
            self._stand()


@kinds
@pytest.mark.parametrize("state", ClaimState)
@pytest.mark.parametrize("more_seconds", [0.0, 300.0], ids=["lease", "heartbeat"])
def test_a_write_that_stands_still_just_before_it_commits_runs_again_while_it_may(
    table_type: str, version: int, state: ClaimState, more_seconds: float
) -> None:
    storage, clock = shared(table_type, version)
    stalled = StallsCommitting(storage, clock, state, more_seconds)
    once = {**OPTIMISTIC, RETRIES: "0"}
    with pytest.raises(LostRaceError):
        opened(stalled, clock).update("fare >= 0", {"fare": "fare + 10"}, options=once)
    assert stalled.has_stood
    check(storage, clock)
    assert held(opened(storage, clock)) == [("a", "rome", 3, 3.0), ("b", "rome", 1, 1.0)]
    stalled = StallsCommitting(storage, clock, state, more_seconds)
    opened(stalled, clock).update("fare >= 0", {"fare": "fare + 10"}, options=OPTIMISTIC)
    assert stalled.has_stood
    check(storage, clock)
    assert held(opened(storage, clock)) == [("a", "rome", 3, 13.0), ("b", "rome", 1, 11.0)]


@pytest.mark.parametrize(("table_type", "version"), [(COW, 9), (MOR, 9)])
def test_a_change_of_columns_that_stands_still_just_before_it_commits_runs_again(
    table_type: str, version: int
) -> None:
    storage, clock = shared(table_type, version)
    stalled = StallsCommitting(storage, clock, ClaimState.COMMITTING)
    opened(stalled, clock).columns.move("fare", first=True)
    assert stalled.has_stood
    check(storage, clock)
    table = opened(storage, clock)
    assert next(name for name in table.scan().to_arrow().column_names if name[0] != "_") == "fare"
    assert held(table) == [("a", "rome", 3, 3.0), ("b", "rome", 1, 1.0)]


class StallsDecided(Stalled):
    """Stands still when it has decided to commit, before it brings the metadata table up to date."""

    has_decided = False

    def _count(self, folder: str) -> None:
        if self.has_decided:
            self._stand()

    def _look(self, path: str, data: bytes) -> None:
        is_claim = path.startswith(LOCK_FOLDER) and path.endswith(".claim")
        self.has_decided |= is_claim and Claim.decode(data).state is ClaimState.COMMITTING


@pytest.mark.parametrize("then", ["insert", "restore", "die"])
@pytest.mark.parametrize("how", ["metadata", "listing", "metadata that is switched off"])
def test_a_write_that_others_complete_while_it_stands_still_is_done_once(
    monkeypatch: pytest.MonkeyPatch, how: str, then: str
) -> None:
    storage, clock = shared(COW, 9)
    uses_metadata = how != "listing"
    keep = MetadataTableGuard._keep
    first = opened(storage, clock, uses_metadata).upsert(rides(("b", "rome", 1, 1.0))).instant
    opened(storage, clock).savepoints.create(first)

    def act(_: Table) -> None:
        others = opened(DiesDecided(storage) if then == "die" else storage, clock, uses_metadata)
        with pytest.raises(InjectedFault) if then == "die" else nullcontext():
            others.insert(rides(("n", "oslo", 3, 3.0)), options=OPTIMISTIC)
        if then == "restore":
            others.savepoints.restore(first)

    def looks_at_the_lock(guard: MetadataTableGuard, *given: Any) -> bool:
        guard._check()  # as it does before it switches the metadata table off
        return keep(guard, *given)

    if "off" in how:
        monkeypatch.setattr(MetadataTableGuard, "_keep", looks_at_the_lock)
    stalled = StallsDecided(storage, clock, act)
    with suppress(DecidedError) if then == "restore" else nullcontext():
        opened(stalled, clock, uses_metadata).insert(rides(("i", "rome", 2, 2.0)), options=OPTIMISTIC)
    rows = {"insert": [("i", "rome", 2, 2.0), ("n", "oslo", 3, 3.0)], "die": [("i", "rome", 2, 2.0)]}
    expected = rows.get(then, [])
    assert stalled.has_stood
    check(storage, clock)
    assert held(opened(storage, clock)) == [("a", "rome", 1, 1.0), ("b", "rome", 1, 1.0), *expected]


@kinds
@pytest.mark.parametrize("lists", range(1, 6))
def test_a_writer_that_loses_the_lock_before_it_has_decided_to_commit_misses_no_row_and_runs_again(
    table_type: str, version: int, lists: int
) -> None:
    storage, clock = shared(table_type, version)
    stalled = Stalled(storage, clock, upserting(("n", "oslo", 3, 3.0)))
    stalled.lists_before = lists
    opened(stalled, clock).update("fare >= 0", {"fare": "fare + 10"}, options=OPTIMISTIC)
    assert stalled.has_stood
    check(storage, clock)
    assert [fare for *_, fare in held(opened(storage, clock))] == [11.0, 11.0, 13.0]


def rewrite_and_archive(table: Table) -> None:
    for number in range(5):
        table.upsert(rides(("a", "rome", 2 + number, 5.0)), options={**OPTIMISTIC, **KEEP_2})
    assert table.timeline.start is not None


@kinds
@pytest.mark.parametrize("lists", range(1, 4))
def test_a_writer_that_lost_the_lock_does_not_blame_the_table_for_files_that_others_removed(
    table_type: str, version: int, lists: int
) -> None:
    storage, clock = shared(table_type, version)
    stalled = Stalled(storage, clock, rewrite_and_archive)
    stalled.lists_before = lists
    try:
        opened(stalled, clock).delete_partition("rome", options=OPTIMISTIC)
    except ConflictError:
        assert held(opened(storage, clock))
    assert stalled.has_stood
    check(storage, clock)


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("lists", range(1, 14))
def test_a_clustering_whose_runner_lost_its_lease_says_that_others_unscheduled_it(
    version: int, lists: int
) -> None:
    storage, clock = shared(COW, version)
    stalled = Stalled(storage, clock, upserting(("a", "rome", 3, 3.0)))
    stalled.lists_before = lists
    with suppress(ConflictError):
        opened(stalled, clock).services.cluster(options=OPTIMISTIC)
    assert stalled.has_stood
    check(storage, clock)
    assert held(opened(storage, clock)) == [("a", "rome", 3, 3.0), ("b", "rome", 1, 1.0)]


@pytest.mark.parametrize("version", [6, 9])
def test_a_clustering_whose_runner_lost_its_lease_does_not_blame_the_table_for_cleaned_files(
    version: int,
) -> None:
    storage, clock = shared(COW, version)
    opened(storage, clock).upsert(rides(("c", "oslo", 1, 1.0)))

    class StallsReading(Stalled):
        def open(self, path: str) -> pa.NativeFile:
            if path.startswith("rome/"):
                self._stand()
            return super().open(path)

    stalled = StallsReading(storage, clock, rewrite_and_archive)
    with pytest.raises(ConflictError):
        opened(stalled, clock).services.cluster(options=OPTIMISTIC)
    check(storage, clock)


class StallsBehindLog(Stalled):
    """Stands still, until its heartbeat has expired, when it has put a log file."""

    def put(self, path: str, data: bytes) -> None:
        super().put(path, data)
        if path.startswith("rome/.") and ".log." in path:
            self._clock.sleep(LOST_SECONDS)
            self._stand()


def clean_and_plan(table: Table) -> None:
    table.services.clean(options=OPTIMISTIC)
    table.upsert(rides(("b", "rome", 2, 2.0)), options={**OPTIMISTIC, **WITHOUT_COMPACTION})
    table.services.schedule_compaction(options={**OPTIMISTIC, "hoodie.compact.inline.max.delta.commits": "1"})


def test_a_log_file_that_was_rolled_back_stays_for_a_plan_that_includes_it() -> None:
    storage, clock = shared(MOR, 6)
    stalled = StallsBehindLog(storage, clock, clean_and_plan)
    with pytest.raises(ConflictError):
        opened(stalled, clock).upsert(
            rides(("a", "rome", 3, 3.0)),
            options={**OPTIMISTIC, "hoodie.write.num.retries.on.conflict.failures": "0"},
        )
    table = opened(storage, clock)
    assert table.services.compact(options=OPTIMISTIC)
    check(storage, clock)
    assert held(table) == [("a", "rome", 1, 1.0), ("b", "rome", 2, 2.0)]
    assert table.services.validate().findings == ()


class StalledAtItsHeartbeat(Stalled):
    """Stands still once before it puts its heartbeat."""

    def put(self, path: str, data: bytes) -> None:
        if path.startswith(HEARTBEAT_FOLDER):
            self._stand()
        super().put(path, data)


@kinds
def test_a_plan_that_goes_after_the_lock_was_lost_is_no_damage(table_type: str, version: int) -> None:
    storage, clock = shared(table_type, version)
    opened(storage, clock).insert(rides(("c", "rome", 1, 1.0)), options=NEW_FILE_GROUPS)
    planned = opened(storage, clock).services.schedule_clustering()
    assert planned
    stalled = StalledAtItsHeartbeat(storage, clock, lambda other: other.services.rollback(planned))
    opened(stalled, clock).upsert(rides(("x", "oslo", 1, 1.0)), options=OPTIMISTIC)
    assert stalled.has_stood
    check(storage, clock)
    assert ("x", "oslo", 1, 1.0) in held(opened(storage, clock))


class StallsAtItsRequest(Stalled):
    """Stands still just before it puts the requested file of a write on the timeline."""

    requested = ""

    def _look(self, path: str, data: bytes) -> None:
        name = path.rpartition("/")[2]
        if name.endswith("commit.requested") and not self.has_stood:
            self.requested = name.partition(".")[0]
            self._stand()


@kinds
def test_a_write_that_took_the_time_of_another_one_after_it_lost_the_lock_leaves_its_files(
    table_type: str, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage, clock = shared(table_type, version)
    stalled: StallsAtItsRequest

    def overwrite_at_the_same_time(table: Table) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(TimelineStore, "new_time", same_time)
            rows = rides(("new", "rome", 2, 2.0))
            assert table.insert_overwrite(rows, options=WITHOUT_COMPACTION).instant == stalled.requested

    new_time = TimelineStore.new_time

    def same_time(store: TimelineStore, timeline: Timeline) -> str:
        is_taken = timeline.find(stalled.requested) is not None
        return new_time(store, timeline) if is_taken else stalled.requested

    stalled = StallsAtItsRequest(storage, clock, overwrite_at_the_same_time)
    with suppress(ConflictError):
        opened(stalled, clock).upsert(rides(("late", "oslo", 9, 9.0)))
    assert stalled.has_stood
    check(storage, clock)
    table = opened(storage, clock)
    times = [instant.requested for instant in table.timeline.instants]
    assert len(times) == len(set(times))  # files are named by them
    assert ("new", "rome", 2, 2.0) in held(table)


@kinds
def test_a_write_that_took_the_time_of_a_live_one_leaves_its_heartbeat(table_type: str, version: int) -> None:
    storage, clock = shared(table_type, version)
    stalled: StallsAtItsRequest

    def begin_at_the_same_time(table: Table) -> None:
        table.upsert(rides(("n", "oslo", 2, 2.0)), options=OPTIMISTIC)  # takes the lock over
        store = TimelineStore(storage, table.config, clock)
        store.request(Action.REPLACE_COMMIT, stalled.requested)
        storage.put(f"{HEARTBEAT_FOLDER}/{stalled.requested}", b"")

    stalled = StallsAtItsRequest(storage, clock, begin_at_the_same_time)
    with pytest.raises(ConflictError):
        table = opened(stalled, clock)
        table.upsert(rides(("late", "oslo", 9, 9.0)), options={**OPTIMISTIC, RETRIES: "0"})
    assert stalled.has_stood
    assert storage.exists(f"{HEARTBEAT_FOLDER}/{stalled.requested}")
    check(storage, clock)
