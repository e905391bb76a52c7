"""What plans of cleans find to be clean: remembered in the process, noted where others need it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from drawstring.config.options.write_options import options_of
from drawstring.model.instant import Instant
from drawstring.services import clean
from drawstring.services.clean import writes_between
from drawstring.storage.protocol import Storage
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.txn.table_context import TableContext
from tests.support.cleaning import KEEP_2, NEVER, VERSIONS, cleans, deleted, written
from tests.support.faulty_storage import FaultyStorage
from tests.support.rows import held, rides
from tests.support.tables import create, store_of


@pytest.mark.parametrize("version", [6, 9])
def test_a_table_that_is_appended_to_is_not_listed_again_and_again(version: int) -> None:
    table = create(version=version)
    looked: list[str] = []
    storage = Watched(context_of(table).storage, looked)
    watched = Table(TableContext(storage, clock=context_of(table).clock))
    for number in range(30):
        rows = rides((str(number), f"city{number}", number, 1.0))
        watched.bulk_insert(rows)
        looked.append("--")
    last = looked[len(looked) - looked[::-1].index("--", 1) :]
    assert not [each for each in last if each.startswith("city") and each != "city29"]
    assert len(held(table, as_of=table.timeline.writes()[0].requested)) == 1
    assert cleans(table) == []


@pytest.mark.parametrize("version", [6, 9])
def test_processes_that_write_once_leave_each_other_a_note_of_what_is_clean(version: int) -> None:
    table = create(version=version)
    for number in range(40):
        clean._EMPTY_PLANS.clear()
        table.bulk_insert(rides((str(number), f"city{number}", number, 1.0)))
    assert deleted(table) == []
    assert 2 <= len(cleans(table)) <= 4
    clean._EMPTY_PLANS.clear()
    assert len(writes_looked_at(table)) <= 8


def test_a_process_that_goes_on_writing_looks_at_each_write_once() -> None:
    table = create()
    for number in range(24):
        table.bulk_insert(rides((str(number), f"city{number}", number, 1.0)))
    assert len(writes_looked_at(table)) == 1
    assert cleans(table) == []


def writes_looked_at(table: Table) -> list[Instant]:
    """Return the writes whose metadata the next clean would read."""
    context, config, store = context_of(table), table.config, store_of(table)
    options = options_of("insert", {}).cleaning
    table.bulk_insert(rides(("next", "lima", 1, 1.0)), options=NEVER)
    planning = clean.CleanPlanner(context, config, store, store.load(), options)
    facts = planning.facts()
    assert facts is not None
    return writes_between(facts, planning._earliest())


def test_a_savepoint_that_is_given_up_frees_what_was_found_to_be_needed() -> None:
    table = create()
    written(table, 1, **NEVER)
    saved = table.savepoints.create()
    written(table, 4, **NEVER)
    assert table.services.clean(options=KEEP_2)
    for _ in range(2):
        assert not table.services.clean(options=KEEP_2)
    table.savepoints.delete(saved)
    result = table.services.clean(options=KEEP_2)
    assert result and result.files == 2


def test_a_write_that_completes_after_it_was_looked_around_is_cleaned_as_well() -> None:
    table = create(version=6)
    written(table, 1, **NEVER)

    def batches() -> Iterator[pa.RecordBatch]:
        assert not table.services.clean(options=VERSIONS)
        yield from rides(("a", "rome", 9, 9.0)).to_batches()

    table.upsert(pa.RecordBatchReader.from_batches(rides().schema, batches()), options=NEVER)
    result = table.services.clean(options=VERSIONS)
    assert result and result.files == 1


def test_archiving_need_not_wait_for_a_clean_that_finds_nothing() -> None:
    table = create()
    table.upsert(rides(("a", "rome", 1, 1.0), ("b", "oslo", 1, 1.0)), options=NEVER)
    saved = table.savepoints.create()
    replacing = table.delete_partition("oslo", options=NEVER)
    for number in range(5):
        table.insert(rides((str(number), f"city{number}", number, 1.0)), options=KEEP_2)
    (noted,) = cleans(table)
    assert deleted(table) == [] and noted.earliest > replacing.instant
    table.savepoints.delete(saved)
    table.insert(rides(("z", "lima", 9, 1.0)), options=KEEP_2)
    assert len(deleted(table)) == 1
    assert len(cleans(table)) == 2


class Watched(FaultyStorage):
    """Notes which folders are listed."""

    def __init__(self, inner: Storage, looked: list[str]) -> None:
        super().__init__(inner, 1 << 60)
        self._looked = looked

    def list_files(self, folder: str) -> list[Any]:
        self._looked.append(folder)
        return super().list_files(folder)

    def list_tree(self, folder: str) -> list[Any]:
        self._looked.append(folder)
        return super().list_tree(folder)
