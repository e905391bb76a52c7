"""Writers that stall before they write a log file, and resume after others wrote on."""

from __future__ import annotations

import threading
from contextlib import suppress
from itertools import takewhile

import pytest

from drawstring.base.errors import ConflictError, MissingFileError
from drawstring.engine.local import LocalEngine
from drawstring.filegroups.read_task import ReadTask
from drawstring.storage.protocol import Storage
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.txn.table_context import TableContext
from tests.support.faults import dead_write
from tests.support.rows import held, rides
from tests.support.simulation.pauses import CALLS_MAX, PAUSE_MS, PausingStorage, SharedClock
from tests.support.storages import data_files, files_of, stored
from tests.support.tables import MOR, WITHOUT_SERVICES, create, listing, versions

START_MS = 1_900_000_000_000


def upsert(storage: Storage, clock: SharedClock, version: int) -> None:
    table = Table(TableContext(storage, LocalEngine(threads=1), clock))
    table.upsert(rides(("a", "rome", version, float(version))))


def stall(files: dict[str, bytes], call: int) -> tuple[str, list[tuple[object, ...]]] | None:
    """Let a writer stall before a storage call while another one writes; None if it makes fewer calls."""
    storage, clock = stored(files), SharedClock(START_MS)
    pausing = PausingStorage(storage, call)

    def stalling() -> None:
        with suppress(ConflictError):
            upsert(pausing, clock, 2)

    thread = threading.Thread(target=stalling, daemon=True)
    thread.start()
    if not pausing.wait_for_pause(lambda: not thread.is_alive()):
        return None
    where = pausing.where
    if where.startswith("change rome/"):
        clock.sleep(PAUSE_MS / 1000)
        upsert(storage, clock, 3)
    pausing.go_on()
    thread.join()
    return where, held(Table(TableContext(storage, LocalEngine(threads=1), clock)))


@versions
def test_a_writer_that_resumes_overwrites_no_log_file_of_others(version: int) -> None:
    table = create(table_type=MOR, version=version)
    table.upsert(rides(("a", "rome", 1, 1.0)))
    files = files_of(context_of(table).storage)
    stalls = list(takewhile(bool, (stall(files, call) for call in range(CALLS_MAX))))
    logs = {where: rows for where, rows in filter(None, stalls) if where.startswith("change rome/")}
    assert any(".log.1_" in where or "_1.log.parquet" in where for where in logs)
    assert logs == {where: [("a", "rome", 3, 3.0)] for where in logs}


@pytest.mark.parametrize("is_committed", [False, True], ids=["late", "lost"])
def test_a_query_is_planned_again_if_a_late_log_file_is_deleted_before_it_is_read(
    is_committed: bool,
) -> None:
    table = create(table_type=MOR, version=6)
    for ts in (1, 2):
        table.upsert(rides(("a", "rome", ts, float(ts))), options=WITHOUT_SERVICES)
    table.services.rollback(dead_write(table).requested)
    storage = context_of(table).storage
    (log,) = [path for path in data_files(storage) if ".log." in path]
    late = log.replace(".log.1_", ".log.2_")
    storage.put(late, storage.read(log))
    scan = listing(table).scan()
    (task,) = scan.tasks()
    assert isinstance(task, ReadTask) and len(task.file_slice.logs) == 2
    storage.delete([log if is_committed else late])
    if is_committed:
        with pytest.raises(MissingFileError):
            scan.to_arrow()
    else:
        assert scan.to_arrow().column("ts").to_pylist() == [2]
