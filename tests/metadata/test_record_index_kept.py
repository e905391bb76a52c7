"""The record index that drawstring keeps: after each step it says of every key where its record is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import drawstring
from drawstring.base.clock import SteppingClock
from drawstring.metadata.reader import SliceRows
from drawstring.metadata.record_index_lookup import RecordIndex
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.txn.table_context import TableContext
from tests.support.golden import unpack
from tests.support.index_histories import QUIET, SCHEMA, History
from tests.support.record_indexes import indexed_places, places
from tests.support.rows import rides
from tests.support.seeds import SHORT_AND_LONG, scaled_steps
from tests.support.tables import COW, MOR, create

TABLES = {
    "v9_idx_record_level": "GLOBAL_RECORD_LEVEL_INDEX",
    "v8_idx_record_level": "RECORD_INDEX",
    "v6_idx_record_level": "RECORD_INDEX",
    "v9_idx_record_level_partitioned": "RECORD_LEVEL_INDEX",
}


def play(table: drawstring.Table, index: str, seed: int, steps: int) -> None:
    history = History(table, index, seed)
    assert indexed_places(table) == places(table)
    taken = []
    for _ in range(steps):
        taken.append(history.step())
        assert indexed_places(table) == places(table), taken


@pytest.mark.scaled
@pytest.mark.parametrize("seed", SHORT_AND_LONG)
@pytest.mark.parametrize("name", TABLES)
def test_an_index_of_real_hudi_is_right_after_each_step_of_any_history(
    tmp_path: Path, name: str, seed: int
) -> None:
    play(drawstring.open(unpack(name, tmp_path)), TABLES[name], seed, scaled_steps(12))


@pytest.mark.scaled
@pytest.mark.parametrize("seed", SHORT_AND_LONG)
@pytest.mark.parametrize(
    ("version", "index"),
    [(9, "RECORD_LEVEL_INDEX"), (9, "GLOBAL_RECORD_LEVEL_INDEX"), (6, "GLOBAL_RECORD_LEVEL_INDEX")],
)
@pytest.mark.parametrize("table_type", [COW, MOR])
def test_an_index_built_for_a_table_is_right_after_each_step_of_any_history(
    table_type: str, index: str, version: int, seed: int
) -> None:
    created = create(SCHEMA, table_type=table_type, partition_by="part", ordering="ts", version=version)
    storage = context_of(created).storage
    table = Table(TableContext(storage, clock=SteppingClock(), uses_metadata=True))
    history = History(table, "SIMPLE", seed)
    table.upsert(history.rows(list(range(20)), True), options=QUIET)
    table.delete(history.rows([1, 2], True), options=QUIET)
    assert "record_index" not in table.config.metadata_partitions
    table.upsert(history.rows([3, 50], True), options=QUIET | {"hoodie.index.type": index})
    play(table, index, seed, scaled_steps(12))


@pytest.mark.parametrize(
    ("key", "is_partitioned"),
    [
        ("hoodie.metadata.record.index.enable", False),
        ("hoodie.metadata.global.record.level.index.enable", False),
        ("hoodie.metadata.record.level.index.enable", True),
    ],
)
@pytest.mark.parametrize("table_type", [COW, MOR])
def test_an_option_builds_the_index_whatever_index_writes_look_keys_up_in(
    table_type: str, key: str, is_partitioned: bool
) -> None:
    storage = context_of(create(SCHEMA, table_type=table_type, partition_by="part", ordering="ts")).storage
    table = Table(TableContext(storage, clock=SteppingClock(), uses_metadata=True))
    lookup = "SIMPLE" if is_partitioned else "GLOBAL_SIMPLE"
    history = History(table, lookup, 1)
    table.upsert(history.rows(list(range(20)), True), options=QUIET | {key: "true"})
    assert [(each.name, each.is_partitioned) for each in table.indexes.list()] == [
        ("record_index", is_partitioned)
    ]
    play(table, lookup, 1, 6)


def test_a_restore_builds_the_index_again(tmp_path: Path) -> None:
    table = drawstring.open(unpack("v9_idx_record_level_partitioned", tmp_path))
    history = History(table, "RECORD_LEVEL_INDEX", 1)
    then = table.upsert(history.rows([1, 2, 70], True), options=QUIET).instant
    table.upsert(history.rows([3, 4, 71], True), options=QUIET)
    table.savepoints.restore(then)
    assert indexed_places(table) == places(table)
    keys = {key for key, _, _ in indexed_places(table)}
    assert "70" in keys
    assert "71" not in keys


def test_the_keys_of_all_log_files_are_looked_up_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    storage = context_of(create(table_type=MOR)).storage
    table = Table(TableContext(storage, clock=SteppingClock(), uses_metadata=True))
    options = QUIET | {"hoodie.index.type": "RECORD_INDEX"}
    rows = [(f"k{number}", f"city{number % 6}", 1, 1.0) for number in range(60)]
    table.upsert(rides(*rows), options=options)
    looked_up: list[int] = []
    locations = RecordIndex.locations

    def noted(self: RecordIndex, keys: pa.Array, partitions: Sequence[str] | None = None) -> pa.Table:
        looked_up.append(len(keys))
        return locations(self, keys, partitions)

    monkeypatch.setattr(RecordIndex, "locations", noted)
    table.upsert(rides(*((key, city, 2, 2.0) for key, city, *_ in rows)), options=options)
    assert looked_up == [60]
    assert indexed_places(table) == places(table)


def test_a_small_index_is_decoded_once_and_what_others_add_to_it_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    storage = context_of(create(table_type=MOR)).storage
    options = QUIET | {"hoodie.index.type": "RECORD_INDEX"}
    ours, theirs = (Table(TableContext(storage, clock=SteppingClock(), uses_metadata=True)) for _ in range(2))
    rows = [(f"k{number}", "rome", 1, 1.0) for number in range(60)]
    ours.upsert(rides(*rows), options=options)
    ours.upsert(rides(*((key, city, 2, 2.0) for key, city, *_ in rows)), options=options)
    read: list[str] = []
    decode = SliceRows._of_hfile

    def noted(self: SliceRows, *given: Any) -> Iterator[pa.RecordBatch]:
        read.append(self.file_slice.file_id)
        return decode(self, *given)

    monkeypatch.setattr(SliceRows, "_of_hfile", noted)
    ours.upsert(rides(*((key, city, 3, 3.0) for key, city, *_ in rows)), options=options)
    assert [each for each in read if each.startswith("record-index")] == []
    theirs.upsert(rides(("new", "rome", 1, 1.0)), options=options)
    ours.upsert(rides(("new", "oslo", 2, 2.0)), options=options)
    assert indexed_places(ours) == places(ours)
    assert len([place for key, *place in places(ours) if key == "new"]) == 1
