"""Clusterings whose process stands still just before they complete, until it has lost the table lock.

They have looked for the writes that they give way to by then; one of these commits meanwhile.
"""

from __future__ import annotations

import threading
from typing import Any

import pyarrow as pa
import pytest

from drawstring.base.errors import ConflictError, LostRaceError
from drawstring.model.files import FileStatus
from drawstring.storage.memory import MemoryStorage
from drawstring.table import Table
from drawstring.testing import context_of
from tests.support.consistent_buckets import ALLOW, MORE, resizable_table, row
from tests.support.faulty_storage import FaultyStorage
from tests.support.interleavings import NOW_MS, OPTIMISTIC, Writer, opened
from tests.support.interrupted import WAIT_SECONDS
from tests.support.rows import held, rides
from tests.support.simulation.pauses import SharedClock
from tests.support.stalled import NO_LIMIT, Stalled, check, shared
from tests.support.storages import files_of, stored
from tests.support.tables import COW, MOR, NEW_FILE_GROUPS

RETRIES = "hoodie.write.num.retries.on.conflict.failures"
PREFER = {"hoodie.write.lock.conflict.resolution.strategy": "PreferWriterConflictResolutionStrategy"}


class Looking(FaultyStorage):
    """Stands still when it looks for the files to write to, before it has begun one, until it may go on."""

    def __init__(self, inner: MemoryStorage) -> None:
        super().__init__(inner, NO_LIMIT)
        self.begun, self.may_go_on = threading.Event(), threading.Event()

    def list_files(self, folder: str) -> list[FileStatus]:
        if folder == "rome" and not self.begun.is_set():
            self.begun.set()
            self.may_go_on.wait(WAIT_SECONDS)
        return super().list_files(folder)


def cluster_behind_a_writer(
    storage: MemoryStorage, clock: SharedClock, rows: pa.Table, options: dict[str, str], planned: str | None
) -> tuple[Writer, Writer]:
    """Let a clustering lose the lock before it completes; a writer commits then that had begun before."""

    def write(table: Table, options: dict[str, str]) -> Any:
        return table.upsert(rows, options=options)

    def cluster(table: Table, options: dict[str, str]) -> Any:
        return table.services.cluster(instant=planned, options=options)

    looking = Looking(storage)
    writer = Writer(write, looking, clock, {**OPTIMISTIC, **options, RETRIES: "0"})
    thread = threading.Thread(target=writer.run, daemon=True)

    def go_on(_: Table) -> None:
        looking.may_go_on.set()
        thread.join(WAIT_SECONDS)

    thread.start()
    assert looking.begun.wait(WAIT_SECONDS)
    stalled = Stalled(storage, clock, go_on)
    stalled.is_before_commit = True
    clustering = Writer(cluster, stalled, clock, {**OPTIMISTIC, **options})
    clustering.run()
    assert stalled.has_stood
    return writer, clustering


@pytest.mark.parametrize(("table_type", "version"), [(COW, 9), (MOR, 9), (MOR, 6)])
@pytest.mark.parametrize(("options", "is_planned"), [(PREFER, False), (PREFER | ALLOW, False), (ALLOW, True)])
def test_a_clustering_that_loses_the_lock_just_before_it_completes_undoes_no_write_that_it_gives_way_to(
    table_type: str, version: int, options: dict[str, str], is_planned: bool
) -> None:
    storage, clock = shared(table_type, version)
    opened(storage, clock).insert(rides(("c", "rome", 1, 1.0)), options=NEW_FILE_GROUPS)
    planned = opened(storage, clock).services.schedule_clustering() if is_planned else None
    rows = rides(("a", "rome", 3, 3.0))
    writer, clustering = cluster_behind_a_writer(storage, clock, rows, options, planned)
    if is_planned:  # otherwise it is planned and run again
        write = opened(storage, clock).timeline.writes()[-1]
        assert isinstance(clustering.error, LostRaceError)
        assert f"just before it completed: the {write.action} {write.requested}" in str(clustering.error)
    elif version == 6:  # there a preferred writer unschedules it
        assert isinstance(clustering.error, ConflictError)
    else:
        assert clustering.error is None
    check(storage, clock)
    assert writer.error is None
    assert held(opened(storage, clock)) == [
        ("a", "rome", 3, 3.0),
        ("b", "rome", 1, 1.0),
        ("c", "rome", 1, 1.0),
    ]


@pytest.mark.parametrize("is_planned", [False, True])
def test_a_resizing_that_loses_the_lock_just_before_it_completes_undoes_no_preferred_write(
    is_planned: bool,
) -> None:
    clock = SharedClock(NOW_MS)
    storage = MemoryStorage(stored(files_of(context_of(resizable_table()).storage)).spec.uri, clock)
    options = {**PREFER, **MORE}
    planned = opened(storage, clock).services.schedule_clustering(options=options) if is_planned else None
    rows = rides(row(3, 500), row(90, 500))
    writer, _ = cluster_behind_a_writer(storage, clock, rows, options, planned)
    assert writer.error is None
    check(storage, clock)
    assert {row(3, 500), row(90, 500)} <= set(held(opened(storage, clock)))
