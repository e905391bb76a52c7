"""Writes to buckets that are being resized beside other processes, dead writers, savepoints and archiving."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

import pytest

from drawstring.base.errors import ConflictError, DrawstringError
from drawstring.engine.local import LocalEngine
from drawstring.index.consistent_bucket import ConsistentIndex
from drawstring.model.instant import Action
from drawstring.storage import open_storage
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.txn.table_context import TableContext
from drawstring.write import executor
from tests.support.consistent_buckets import (
    ALLOW,
    CONSISTENT,
    MORE,
    ROWS,
    check_places,
    dual_write_logs,
    ring_of,
    row,
    rows_of,
    written_during_resizing,
)
from tests.support.faults import HOUR_MS, START_MS, STEPS_MAX, leftovers, opened, orphans
from tests.support.faulty_storage import FaultyStorage
from tests.support.rows import rides
from tests.support.service_process import runner
from tests.support.tables import MOR, WITHOUT_SERVICES, create, versions
from tests.support.validation import problems
from tests.support.writer_process import writer

WHILE_IT_WRITES = 7
"""Changes after which a runner is at work on its first base file, and the table lock is free."""

LEFT_TO_CLEANS = {
    "hoodie.write.concurrency.mode": "SINGLE_WRITER",
    "hoodie.clean.failed.writes.policy": "LAZY",
}


def on_disk(folder: Path) -> tuple[Table, str]:
    """A table on disk whose resizing is pending."""
    table = create(path=folder / "rides", table_type=MOR, properties=CONSISTENT)
    table.upsert(rides(*ROWS))
    table.services.compact()
    resizing = table.services.schedule_clustering(options=MORE)
    assert resizing is not None
    return table, resizing


class Recording(FaultyStorage):
    """A storage that dies once, and tells before what."""

    path = ""

    def die(self, path: str) -> None:
        self.path = self.path or path
        super().die(path)


def first_copy(folder: Path, resizing: str) -> int:
    """How many changes `writer` makes before it writes the first log file of a new bucket."""
    for steps in range(STEPS_MAX):
        copied = shutil.copytree(folder / "rides", folder / f"copy{steps}")
        storage = Recording(open_storage(str(copied)), steps)
        with suppress(DrawstringError):
            rows = rides(*(("k001", city, 900, 900.0) for city in ("oslo", "rome")))
            Table(TableContext(storage, LocalEngine(1))).upsert(rows)
        if storage.path.startswith("rome/") and f"_{resizing}.log" in storage.path:
            return steps
    raise AssertionError("nothing was written twice")


def test_a_write_goes_on_beside_a_process_that_resizes_the_buckets(tmp_path: Path) -> None:
    table, resizing = on_disk(tmp_path)
    table.upsert(rides(row(1, 500)))
    with runner(table.uri, resizing, WHILE_IT_WRITES, "cluster") as other:
        assert other.says().endswith(f"_{resizing}.parquet.marker.CREATE")
        table.upsert(rides(row(2, 500), row(90, 500)))
        table.delete(rides(row(3, 500)))
        expected = rows_of(table)
        other.go_on()
        assert other.says() == "done"
    assert len(expected) == 40 and expected["k002"] == row(2, 500)
    assert (rows_of(table), len(ring_of(table).values)) == (expected, 4)
    check_places(table)
    assert (problems(table), orphans(table), leftovers(table)) == ([], [], [])


def test_a_process_that_is_killed_while_it_writes_twice_leaves_nothing_in_either_bucket(
    tmp_path: Path,
) -> None:
    table, resizing = on_disk(tmp_path)
    before = rows_of(table)
    with writer(table.uri, "k001", 900, first_copy(tmp_path, resizing)) as other:
        assert f"_{resizing}.log" in other.says()
        other.kill()
    assert dual_write_logs(table, resizing) == [] and rows_of(table) == before
    table.upsert(rides(row(5, 500)))
    assert table.services.cluster(instant=resizing)
    assert rows_of(table) == {**before, "k005": row(5, 500)}
    assert (problems(table), orphans(table), leftovers(table)) == ([], [], [])


@pytest.mark.parametrize("version", [6, 9])
def test_a_dead_write_that_is_left_for_a_clean_does_not_count_in_new_buckets_either(version: int) -> None:
    table, resizing, before = written_during_resizing(version)
    storage, lazy = context_of(table).storage, {**LEFT_TO_CLEANS, **WITHOUT_SERVICES}
    steps = 6
    while not table.timeline.pending_writes():
        with suppress(DrawstringError):
            opened(FaultyStorage(storage, steps), START_MS).upsert(rides(row(7, 600)), options=lazy)
        steps += 1
    table = opened(storage, START_MS + HOUR_MS)
    table.upsert(rides(row(8, 700)), options=lazy)
    assert table.services.cluster(instant=resizing, options=lazy)
    expected = {**before, "k008": row(8, 700)}
    assert rows_of(table) == expected and table.timeline.pending_writes()
    table.services.clean(options=lazy)
    assert (rows_of(table), table.timeline.pending()) == (expected, ())
    assert (problems(table), orphans(table)) == ([], [])


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("is_run", [False, True])
def test_a_restore_takes_what_was_written_twice_out_of_both_buckets(version: int, is_run: bool) -> None:
    table, resizing, before = written_during_resizing(version)
    saved = table.savepoints.create()
    table.upsert(rides(row(8, 700), row(95, 700)))
    if is_run:
        assert table.services.cluster(instant=resizing)
        table.upsert(rides(row(9, 800)))
    table.savepoints.restore(saved)
    assert rows_of(table) == before
    assert bool(dual_write_logs(table, resizing)) is not is_run or version == 6
    assert len(table.timeline.pending_of(Action.CLUSTERING)) == (0 if is_run else 1)
    assert (problems(table), orphans(table)) == ([], [])
    table.upsert(rides(row(10, 900)))
    table.services.cluster(options=MORE)
    assert rows_of(table) == {**before, "k010": row(10, 900)}
    check_places(table)
    assert (problems(table), orphans(table)) == ([], [])


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("gives_up", [False, True])
def test_the_timeline_is_archived_past_a_resizing_that_was_written_twice_for(
    version: int, gives_up: bool
) -> None:
    table, resizing, rows = written_during_resizing(version)
    if gives_up:
        table.upsert(rides(row(8, 700)), options=ALLOW)
    else:
        table.services.cluster(instant=resizing)
        table.upsert(rides(row(8, 700)))
    rows = {**rows, "k008": row(8, 700)}
    short = {
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
        "hoodie.clean.commits.retained": "1",
    }
    for number in range(10, 22):
        table.upsert(rides(row(number, 800)), options=short)
        rows[f"k{number:03}"] = row(number, 800)
        if number % 4 == 0:
            table.services.compact()
        assert rows_of(table) == rows
        assert problems(table) == []
    assert table.timeline.start is not None and table.timeline.start > resizing
    check_places(table)


@versions
def test_a_resizing_whose_new_buckets_lost_what_was_written_to_them_is_given_up(version: int) -> None:
    table, resizing, before = written_during_resizing(version)
    context_of(table).storage.delete([dual_write_logs(table, resizing)[0].status.path])
    assert rows_of(table) == before
    assert not table.services.cluster(instant=resizing)
    assert (rows_of(table), table.timeline.pending(), dual_write_logs(table, resizing)) == (before, (), [])
    assert (problems(table), len(ring_of(table).values)) == ([], 2)


@versions
@pytest.mark.parametrize("is_running", [False, True])
def test_a_writer_that_does_not_know_of_the_resizing_ends_it(
    version: int, is_running: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, resizing, before = written_during_resizing(version)

    def write_once(done: int = 1, total: int = 1) -> None:
        with monkeypatch.context() as patched:
            patched.setattr(ConsistentIndex, "dual_write", lambda *_: None)
            patched.setattr(executor, "cancel_conflicting_clusterings", lambda *_: None)
            if done == total:
                table.upsert(rides(row(11, 900)), options=ALLOW)

    if is_running:
        with pytest.raises(
            ConflictError,
            match=r"while it ran: the (delta)?commit \d+ in ",
        ):
            table.services.cluster(progress=write_once, instant=resizing)
    else:
        write_once()
        assert not table.services.cluster(instant=resizing)
    assert rows_of(table) == {**before, "k011": row(11, 900)}
    assert (table.timeline.pending(), dual_write_logs(table, resizing), problems(table)) == ((), [], [])
