"""Whoever dies, or looks, while a table changes its version finds a whole table."""

from __future__ import annotations

from contextlib import suppress

import pytest

import drawstring
from drawstring.base.errors import CorruptTableError, DrawstringError
from drawstring.config.table_config import TableConfig
from drawstring.query import table_state
from drawstring.storage import open_storage
from drawstring.storage.protocol import Storage
from drawstring.testing import context_of
from drawstring.timeline.properties import load_config
from drawstring.timeline.version_change import VERSION_CHANGE
from tests.support.combinations import others_long
from tests.support.faults import HOUR_MS, START_MS, opened
from tests.support.faulty_storage import FaultyStorage
from tests.support.rows import held, rides
from tests.support.tables import COW, MOR, WITHOUT_SERVICES, new_address
from tests.support.version_changes import change_version, files_of_other_layout, table_with_history

CHANGES = [(COW, 6, 9), (COW, 9, 6), (MOR, 6, 8), (MOR, 9, 6), (MOR, 9, 8)]


@pytest.mark.parametrize(
    ("table_type", "old", "new"), others_long(CHANGES, [(COW, 6, 9), (MOR, 9, 6), (MOR, 9, 8)])
)
def test_whoever_dies_while_the_version_changes_leaves_a_whole_table(
    table_type: str, old: int, new: int
) -> None:
    table = table_with_history(table_type, old, writes=6)
    then, rows = table.timeline.writes()[-2].requested, held(table)
    rows_then = held(table, as_of=then)
    seen = set()
    # The steps of a compaction are those of other tests as well.
    for step in range(0, 400, 1 if table_type == COW else 3):
        copied = copy_of(context_of(table).storage)
        faulty = FaultyStorage(copied, step)
        with suppress(DrawstringError):
            change_version(opened(faulty, START_MS + HOUR_MS), new)
        reader = opened(copied, START_MS + 2 * HOUR_MS + step)
        version = reader.config.version
        seen.add(version)
        assert held(reader) == rows, step
        if step % 2 == 0:
            assert held(reader, as_of=then) == rows_then, step
        if step % 7 == 0:
            copied.delete([VERSION_CHANGE])
            change_version(reader, new)
            assert (reader.config.version, held(reader)) == (new, rows), step
            if (old == 6) != (new == 6):
                assert files_of_other_layout(copied, 1 if old == 6 else 2) == [], step
        if faulty.changes < step:
            break
    else:
        pytest.fail("the change takes more steps than that")
    assert seen == {old, new}


def copy_of(storage: Storage) -> Storage:
    """Return a copy of a table whose files are as old as its own."""
    copied = open_storage(new_address())
    for status in storage.list_tree(""):
        copied.put(status.path, storage.read(status.path))
        copied.set_modified(status.path, status.modified_ms)
    return copied


def test_a_writer_that_goes_on_after_a_death_is_not_bothered() -> None:
    storage = context_of(table_with_history(COW, 6)).storage
    for step in (5, 15, 30):
        storage.delete([VERSION_CHANGE])
        with suppress(drawstring.UnavailableError):
            opened(FaultyStorage(storage, step), START_MS + step * HOUR_MS).versions.upgrade(8)
        table = opened(storage, START_MS + (step + 1) * HOUR_MS)
        assert table.config.version == 6
        table.upsert(rides(("a", "rome", 50 + step, float(step))), options=WITHOUT_SERVICES)
    rows = held(table)
    storage.delete([VERSION_CHANGE])
    table.versions.upgrade(8)
    assert held(table) == rows
    assert len(table.timeline.writes()) == len({each.requested for each in table.timeline.writes()})
    assert [each for each in table.services.validate().findings if each.check != "pending"] == []


def test_a_process_that_may_only_stand_still_keeps_others_from_changing_the_version() -> None:
    storage = context_of(table_with_history(COW, 6)).storage
    for step in range(400):
        with suppress(drawstring.UnavailableError):
            opened(FaultyStorage(storage, step), START_MS + step * HOUR_MS).versions.upgrade(8)
        if storage.exists(VERSION_CHANGE):
            break
    table = opened(storage, START_MS + 500 * HOUR_MS)
    before = storage.read(".hoodie/hoodie.properties")
    with pytest.raises(drawstring.ConflictError, match="Make sure that it has ended"):
        table.versions.upgrade(8)
    # The process that stood still replaces the properties as it read them, and no others.
    assert storage.read(".hoodie/hoodie.properties") != before
    table.upsert(rides(("a", "rome", 50, 1.0)), options=WITHOUT_SERVICES)
    storage.delete([VERSION_CHANGE])
    table.versions.upgrade(8)
    assert table.config.version == 8


def test_a_damaged_archive_stops_the_change_and_leaves_no_trace() -> None:
    table = table_with_history(COW, 6)
    storage = context_of(table).storage
    archive = storage.list_files(".hoodie/archived")[0].path
    good = storage.read(archive)
    storage.put(archive, good[: len(good) // 2])
    with pytest.raises(CorruptTableError):
        table.versions.upgrade(9)
    assert (table.config.version, files_of_other_layout(storage, 2)) == (6, [])
    storage.put(archive, good)
    table.versions.upgrade(9)
    assert table.config.version == 9


class StaleAtFirst:
    """Reads a table's properties as they were before, and then as they are."""

    def __init__(self, stale: TableConfig) -> None:
        self._answers = [stale]

    def __call__(self, storage: Storage) -> TableConfig:
        return self._answers.pop() if self._answers else load_config(storage)


@pytest.mark.parametrize(("old", "new"), [(6, 9), (9, 6)])
def test_a_reader_that_looks_while_the_version_changes_sees_all_rows(
    old: int, new: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = table_with_history(COW, old)
    rows, stale = held(table), table.config
    for fail_after in range(0, 400, 3):
        storage = copy_of(context_of(table).storage)
        with suppress(DrawstringError):
            change_version(opened(FaultyStorage(storage, fail_after), START_MS + HOUR_MS), new)
        with monkeypatch.context() as patched:
            patched.setattr(table_state, "load_config", StaleAtFirst(stale))
            assert held(opened(storage, START_MS)) == rows, fail_after
        if opened(storage, START_MS).config.version == new and not files_of_other_layout(
            storage, 1 if old == 6 else 2
        ):
            break
    else:
        pytest.fail("the change takes more steps than that")
