"""Processes that stand still until they lose the table lock, while others act."""

from __future__ import annotations

from collections.abc import Callable

from drawstring.model.files import FileStatus
from drawstring.storage.memory import MemoryStorage
from drawstring.storage.protocol import LOCK_FOLDER
from drawstring.table import Table
from drawstring.timeline.claims import Claim, ClaimState
from tests.support.interleavings import NOW_MS, OPTIMISTIC, opened
from tests.support.rows import held, rides
from tests.support.simulation.pauses import SharedClock
from tests.support.storages import WatchedPuts
from tests.support.tables import create, new_address
from tests.support.validation import errors

LOST_SECONDS = 90.0
"""Longer than a lease is good, shorter than a heartbeat."""

NO_LIMIT = 1 << 60


class Stalled(WatchedPuts):
    """Stands still once, until its lease has run out and others have acted.

    Args:
        inner: the storage of all.
        clock: of all.
        act: what the others do to the table.
    """

    def __init__(self, inner: MemoryStorage, clock: SharedClock, act: Callable[[Table], object]) -> None:
        super().__init__(inner, NO_LIMIT)
        self._clock, self._act, self.has_stood = clock, act, False
        self.lists_before = -1
        self.is_before_commit = False

    def list_files(self, folder: str) -> list[FileStatus]:
        self._count(folder)
        return super().list_files(folder)

    def list_names(self, folder: str) -> list[str]:
        self._count(folder)
        return super().list_names(folder)

    def _count(self, folder: str) -> None:
        if folder.startswith(".hoodie"):
            self.lists_before -= 1
            if self.lists_before == 0:
                self._stand()

    def _look(self, path: str, data: bytes) -> None:
        is_claim = path.startswith(LOCK_FOLDER) and path.endswith(".claim")
        if self.is_before_commit and is_claim and Claim.decode(data).state is ClaimState.COMMITTING:
            self._stand()

    def _stand(self) -> None:
        if not self.has_stood:
            self.has_stood = True
            self._clock.sleep(LOST_SECONDS)
            self._act(opened(self._inner, self._clock))


def shared(table_type: str, version: int) -> tuple[MemoryStorage, SharedClock]:
    """Create a table with two rows in a storage whose files are as old as a clock says."""
    address, clock = new_address(), SharedClock(NOW_MS)
    create(path=address, table_type=table_type, version=version)
    storage = MemoryStorage(address, clock)
    opened(storage, clock).upsert(rides(("a", "rome", 1, 1.0), ("b", "rome", 1, 1.0)))
    return storage, clock


def check(storage: MemoryStorage, clock: SharedClock) -> None:
    """Make sure that a table is sound and can be cleaned."""
    clock.sleep(3600.0)
    table = opened(storage, clock)
    before = held(table)
    table.services.clean(options=OPTIMISTIC)
    assert (held(table), errors(table), table.timeline.pending_writes()) == (before, [], ())
