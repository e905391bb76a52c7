"""Writers that die at any step, and what they leave."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from hypothesis import settings

from drawstring.base.clock import SteppingClock, SystemClock
from drawstring.base.errors import DrawstringError
from drawstring.filegroups.write.markers import Markers
from drawstring.formats.log_inline import BlockType, scan_blocks
from drawstring.model.files import FileStatus, LogFile
from drawstring.model.instant import WRITE_ACTIONS, Action, Instant
from drawstring.model.table_version import LAYOUT_2
from drawstring.storage.protocol import LOCK_FOLDER, Storage
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.timeline.claims import Claim, ClaimState
from drawstring.timeline.timeline import parse_instant
from drawstring.txn.table_context import TableContext
from tests.support.faulty_storage import FaultyStorage
from tests.support.rows import held, rides
from tests.support.storages import by_clock, data_files, files_of, stored
from tests.support.tables import create, store_of

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
    "compact": lambda table: table.services.compact(),
}
NO_ROLLBACK = {"hoodie.clean.failed.writes.policy": "NEVER"}


def stride() -> int:
    """Return of how many steps one is taken to die at: of six, in `make test-long` of one."""
    return 6 if settings.get_current_profile_name() == "same" else 1


def spaced(every: int) -> int:
    """Return of how many calls one is tried: of so many, in `make test` of twice as many; see `stride`."""
    return every if stride() == 1 else 2 * every


@dataclass
class Prepared:
    """A table with some commits, ready to be copied."""

    files: dict[str, bytes]
    before: Rows
    after: Rows

    @staticmethod
    def of(table: Table, before: Rows | None = None, after: Rows | None = None) -> Prepared:
        """A table as it is, with the rows that readers may see before and after what is to come."""
        before = held(table) if before is None else before
        return Prepared(files_of(context_of(table).storage), before, before if after is None else after)

    def copy(self) -> Storage:
        return stored(self.files)

    def deaths(
        self, act: Callable[[Table], Any], *, steps_min: int = 5, every: int = 1
    ) -> Iterator[tuple[Storage, str]]:
        """Let an act die after numbers of changes; yield what it left, and a text for messages.

        On the last copy it did not die, after more than some changes.
        """
        for steps in range(0, STEPS_MAX, every * stride()):
            storage = self.copy()
            faulty = FaultyStorage(storage, steps)
            with suppress(DrawstringError):
                act(opened(faulty, START_MS))
            yield storage, f"after {steps} changes"
            if faulty.changes < steps:
                assert steps > steps_min
                return
        raise AssertionError(f"still failing after {STEPS_MAX} changes")


@cache
def prepared(table_type: str, version: int, operation: str, base_format: str = "parquet") -> Prepared:
    """Create a table, with the rows before and after an operation."""
    properties = {"hoodie.table.base.file.format": base_format}
    table = create(table_type=table_type, version=version, properties=properties)
    table.upsert(FIRST)
    table.upsert(rides(("c", "rome", 3, 3.0), ("d", "oslo", 3, 3.0)))
    start = Prepared.of(table)
    OPERATIONS[operation](table)
    return replace(start, after=held(table))


def opened(storage: Storage, start_ms: int) -> Table:
    """Open a table whose clock, and that of its storage, begins at a time."""
    clock = SteppingClock(start_ms)
    by_clock(storage, clock)
    return Table(TableContext(storage, clock=clock))


def committed_files(table: Table) -> set[str]:
    """Return the paths of all files that the timeline\'s writes name."""
    store = store_of(table)
    return {stat.path for each in table.timeline.writes() for stat in store.commit_metadata(each).stats}


def orphans(table: Table) -> list[str]:
    """Data files that no commit names; in version 6 a log file may stay whose blocks are taken back."""
    storage = context_of(table).storage
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
    """Return the blocks of a log file; none of a base file."""
    if not LogFile.parse(FileStatus(path, 0)):
        return []
    with storage.open(path) as file:
        return scan_blocks(file, file.size())


def leftovers(table: Table) -> list[str]:
    """What only writes under way have: markers, pending instants, claims of what was not rolled back."""
    storage, timeline = context_of(table).storage, table.timeline
    files = [*storage.list_tree(".hoodie/.temp"), *storage.list_files(".hoodie/.locks")]
    expected = {"table_lock.json", "drawstring.lock", *(f"{each}.claim" for each in timeline.rolled_back)}
    kept = [status.path for status in files if status.name not in expected]
    return kept + [str(instant) for instant in timeline.pending()]


def is_decided(storage: Storage) -> bool:
    """Whether a writer has claimed the completion of its instant: whoever comes next completes it."""
    for status in storage.list_files(LOCK_FOLDER):
        if status.name.endswith(".claim"):
            claim = Claim.decode(storage.read(status.path))
            instant = parse_instant(claim.file_name, LAYOUT_2)
            if claim.state is ClaimState.COMMITTING and instant and instant.action in WRITE_ACTIONS:
                return True
    return False


def settled_rows(storage: Storage, start: Prepared, seen: Any) -> Any:
    """The rows once the next writer has settled what a dead one left: one that had decided is completed."""
    return start.after if is_decided(storage) else seen


def dead_write(table: Table) -> Instant:
    """A write whose writer died after it had written a file."""
    store = store_of(table, SystemClock())
    action = Action.DELTA_COMMIT if table.config.is_merge_on_read else Action.COMMIT
    instant = store.start(store.request(action, store.new_time(store.load())))
    path = f"rome/f9-0_0-1-0_{instant.requested}.parquet"
    Markers(context_of(table).storage, instant.requested).create(path, "CREATE")
    context_of(table).storage.put(path, b"half")
    return instant


def states(table: Table, write: Instant) -> dict[str, Instant]:
    """The files of a write on the timeline, by path."""
    listed = context_of(table).storage.list_files(table.config.timeline_folder)
    found = {each.path: parse_instant(each.name, table.config.layout) for each in listed}
    return {path: each for path, each in found.items() if each and each.requested == write.requested}


def lose_completion(table: Table, write: Instant, *, all_states: bool = False) -> dict[str, bytes]:
    """Lose the file that says that a write completed; return what was in it."""
    storage = context_of(table).storage
    paths = [path for path, each in states(table, write).items() if all_states or each.is_completed]
    lost = {path: storage.read(path) for path in paths}
    storage.delete(paths)
    return lost
