"""A writer that dies at any step of any operation: readers never notice, and the next write cleans up."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import pytest

from drawstring.base.clock import SteppingClock
from drawstring.base.errors import ConflictError, DrawstringError
from drawstring.formats.log_inline import BlockType, scan_blocks
from drawstring.model.files import FileStatus, LogFile, parse_data_file
from drawstring.model.instant import WRITE_ACTIONS
from drawstring.model.table_version import LAYOUT_2
from drawstring.storage import open_storage
from drawstring.storage.faults import FaultyStorage, InjectedFault
from drawstring.storage.protocol import Storage
from drawstring.table import Table
from drawstring.timeline.claims import CLAIM_FOLDER, Claim, ClaimState
from drawstring.timeline.layout import parse_instant
from drawstring.timeline.store import TimelineStore
from drawstring.txn.locks.lease_lock import LEASE_PATH, Lease
from drawstring.txn.table_context import TableContext
from tests.write.test_operations import COW, MOR, create, held, rides

Rows = list[tuple[Any, ...]]

FIRST = rides(*((key, city, 1, 1.0) for city in ("oslo", "rome") for key in "abcd"))
NEWER = rides(("a", "rome", 2, 2.0), ("b", "oslo", 2, 2.0), ("new", "bern", 2, 2.0))
START_MS, HOUR_MS = 1_900_000_000_000, 3_600_000
STEPS_MAX = 200

OPERATIONS: dict[str, Callable[[Table], Any]] = {
    "upsert": lambda table: table.upsert(NEWER),
    "delete": lambda table: table.delete(NEWER),
    "bulk_insert": lambda table: table.bulk_insert(NEWER),
    "insert_overwrite": lambda table: table.insert_overwrite(NEWER),
    "insert_overwrite_table": lambda table: table.insert_overwrite_table(NEWER),
    "compact": lambda table: table.compact(),
}
CASES = [
    *((kind, version, verb) for kind in (COW, MOR) for version in (6, 9) for verb in ("upsert", "delete")),
    *((MOR, version, "compact") for version in (6, 9)),
    *((COW, 9, "bulk_insert"), (COW, 9, "insert_overwrite"), (MOR, 6, "insert_overwrite")),
    *((COW, 6, "insert_overwrite_table"), (MOR, 9, "insert_overwrite_table")),
]


@dataclass
class Prepared:
    """A table with some commits, ready to be copied."""

    files: dict[str, bytes]
    before: Rows
    after: Rows

    @staticmethod
    def of(table: Table, before: Rows | None = None, after: Rows | None = None) -> Prepared:
        """A table as it is, with the rows that readers may see before and after what is to come."""
        storage = table.state.storage
        files = {status.path: storage.read(status.path) for status in storage.list_tree("")}
        before = held(table) if before is None else before
        return Prepared(files, before, before if after is None else after)

    def copy(self) -> Storage:
        storage = open_storage(f"memory://{uuid.uuid4()}")
        for path, data in self.files.items():
            storage.put(path, data)
        return storage

    def deaths(
        self, act: Callable[[Table], Any], *, steps_min: int = 5, every: int = 1
    ) -> Iterator[tuple[Storage, str]]:
        """Let an act die after every number of changes; yield what it left, and a text for messages.

        On the last copy it did not die, after more than some changes.
        """
        for steps in range(0, STEPS_MAX, every):
            storage = self.copy()
            faulty = FaultyStorage(storage, steps)
            with suppress(DrawstringError):
                act(opened(faulty, START_MS))
            yield storage, f"after {steps} changes"
            if faulty.changes < steps:
                assert steps > steps_min
                return
        raise AssertionError(f"still failing after {STEPS_MAX} changes")


def prepared(table_type: str, version: int, operation: str) -> Prepared:
    table = create(table_type=table_type, version=version)
    table.upsert(FIRST)
    table.upsert(rides(("c", "rome", 3, 3.0), ("d", "oslo", 3, 3.0)))
    start = Prepared.of(table)
    OPERATIONS[operation](table)
    return replace(start, after=held(table))


def opened(storage: Storage, start_ms: int) -> Table:
    return Table(TableContext(storage, clock=SteppingClock(start_ms)))


def committed_files(table: Table) -> set[str]:
    store = TimelineStore(table.state.storage, table.config, table.state.clock)
    return {stat.path for each in table.timeline.writes() for stat in store.commit_metadata(each).stats}


def data_files(storage: Storage) -> set[str]:
    return {status.path for status in storage.list_tree("") if parse_data_file(status)}


def orphans(table: Table) -> list[str]:
    """Data files that no commit names; in version 6 a log file may stay whose blocks are taken back."""
    storage = table.state.storage
    extra = data_files(storage) - committed_files(table)
    if table.config.rules.names_logs_by_slice:
        taken_back = {block.rolls_back for path in extra for block in blocks(storage, path)}
        extra = {
            path
            for path in extra
            if not LogFile.parse(FileStatus(path, 0))
            or any(
                block.kind is not BlockType.COMMAND and block.instant not in taken_back
                for block in blocks(storage, path)
            )
        }
    return sorted(extra)


def blocks(storage: Storage, path: str) -> list[Any]:
    if not LogFile.parse(FileStatus(path, 0)):
        return []
    with storage.open(path) as file:
        return scan_blocks(file, file.size())


def leftovers(table: Table) -> list[str]:
    """What only writes under way have: markers, pending instants, claims of what was not rolled back."""
    storage, timeline = table.state.storage, table.timeline
    files = [*storage.list_tree(".hoodie/.temp"), *storage.list_files(".hoodie/.locks")]
    expected = {"table_lock.json", "drawstring.lock", *(f"{each}.claim" for each in timeline.rolled_back)}
    kept = [status.path for status in files if status.name not in expected]
    return kept + [str(instant) for instant in timeline.pending()]


@pytest.mark.parametrize(("table_type", "version", "operation"), CASES)
def test_a_writer_that_dies_at_any_step_is_cleaned_up_by_the_next(
    table_type: str, version: int, operation: str
) -> None:
    start = prepared(table_type, version, operation)
    for storage, step in start.deaths(OPERATIONS[operation]):
        check_after_death(storage, start, step)


@pytest.mark.parametrize(
    ("table_type", "version", "operation"),
    [(COW, 9, "upsert"), (MOR, 6, "upsert"), (MOR, 9, "insert_overwrite"), (COW, 6, "delete")],
)
def test_a_write_that_one_failure_stops_takes_itself_back(
    table_type: str, version: int, operation: str
) -> None:
    start = prepared(table_type, version, operation)
    for steps in range(STEPS_MAX):
        faulty = FaultyStorage(start.copy(), steps, failures=1)
        table, step = opened(faulty, START_MS), f"after {steps} changes"
        try:
            OPERATIONS[operation](table)
        except InjectedFault:
            assert held(table) == start.before, step
        else:
            assert held(table) == start.after, step
            if faulty.changes < steps:
                return
        assert table.timeline.pending() == (), step
        assert orphans(table) == [], step
    raise AssertionError(f"still failing after {STEPS_MAX} changes")


def is_decided(storage: Storage) -> bool:
    """Whether a writer has claimed the completion of its instant: whoever comes next completes it."""
    for status in storage.list_files(CLAIM_FOLDER):
        if status.name.endswith(".claim"):
            claim = Claim.decode(storage.read(status.path))
            instant = parse_instant(claim.file_name, LAYOUT_2)
            if claim.state is ClaimState.COMMITTING and instant and instant.action in WRITE_ACTIONS:
                return True
    return False


def settled_rows(storage: Storage, start: Prepared, seen: Any) -> Any:
    """The rows once the next writer has settled what a dead one left: one that had decided is completed."""
    return start.after if is_decided(storage) else seen


def check_after_death(storage: Storage, start: Prepared, step: str) -> None:
    table = opened(storage, START_MS + HOUR_MS)
    seen = held(table)
    assert seen in (start.before, start.after), step
    seen = settled_rows(storage, start, seen)
    table.upsert(rides(("next", "rome", 9, 9.0)))
    expected = sorted([*seen, ("next", "rome", 9, 9.0)])
    assert held(table) == expected, step
    if table.timeline.pending():
        table.compact()
    assert held(table) == expected, step
    assert orphans(table) == [], step
    assert leftovers(table) == [], step


class LosesItsLease(FaultyStorage):
    """Before one of the changes another writer takes the lease over."""

    def die(self, path: str) -> None:
        self._inner.put(LEASE_PATH, Lease(False, START_MS + HOUR_MS, "another").encode())


@pytest.mark.parametrize(("table_type", "version"), [(COW, 9), (MOR, 6)])
def test_a_writer_that_lost_its_lease_does_not_commit(table_type: str, version: int) -> None:
    start = prepared(table_type, version, "upsert")
    committed = []
    for steps in range(1, STEPS_MAX):
        faulty = LosesItsLease(start.copy(), steps, failures=1)
        table, step = opened(faulty, START_MS), f"before change {steps + 1}"
        try:
            table.upsert(NEWER)
            assert held(table) == start.after, step
            committed.append(steps)
        except ConflictError:
            assert committed == [], step
            assert held(table) == start.before, step
        if faulty.changes < steps:
            break
    # It is too late only once the lease was checked for the last time.
    assert len(committed) <= 7
    assert min(committed) > 8
