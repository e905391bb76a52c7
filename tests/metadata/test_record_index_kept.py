"""The record index that drawstring keeps: after each step it says of every key where its record is."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest

import drawstring
from drawstring.base.clock import SteppingClock
from drawstring.table import Table
from drawstring.txn.table_context import TableContext
from tests.support.golden import unpack
from tests.support.record_indexes import indexed_places, places
from tests.support.tables import COW, MOR, create

TABLES = {
    "v9_idx_record_level": "GLOBAL_RECORD_LEVEL_INDEX",
    "v8_idx_record_level": "RECORD_INDEX",
    "v9_idx_record_level_partitioned": "RECORD_LEVEL_INDEX",
}
PARTS = ("p0", "p1", "p2", "p3")
SCHEMA = pa.schema(
    [
        ("id", pa.int32()),
        ("name", pa.string()),
        ("part", pa.string()),
        ("price", pa.float64()),
        ("ts", pa.int64()),
    ]
)
QUIET = {"hoodie.clean.automatic": "false", "hoodie.compact.inline": "false"}


class History:
    """Random changes of a table whose index real Hudi built."""

    def __init__(self, table: drawstring.Table, index: str, seed: int) -> None:
        self.table = table
        self.index = index
        self.rng = random.Random(seed)
        self.time = 10_000

    def rows(self, ids: list[int], by_key: bool) -> pa.Table:
        """Return a row for each id; a key has one partition, or any."""
        self.time += 1
        rows = [
            {
                "id": each,
                "name": f"n{self.time}",
                "part": PARTS[each % 4] if by_key else self.rng.choice(PARTS),
                "price": 1.0,
                "ts": self.time if self.rng.random() < 0.8 else 1,
            }
            for each in ids
        ]
        return pa.Table.from_pylist(rows, SCHEMA)

    def step(self) -> str:
        operation = self.rng.choice(
            ["upsert"] * 4
            + ["delete"] * 3
            + [
                "insert",
                "bulk_insert",
                "insert_overwrite",
                "delete_partition",
                "insert_overwrite_table",
                "compact",
                "cluster",
                "clean",
            ]
        )
        some = self.rng.sample(range(40), self.rng.randrange(1, 12))
        is_global = self.index != "RECORD_LEVEL_INDEX"
        moves = {"hoodie.record.index.update.partition.path": self.rng.choice(["true", "false"])}
        others = ["GLOBAL_SIMPLE"] if is_global else ["SIMPLE", "BLOOM"]
        kind = {"hoodie.index.type": self.rng.choice([self.index, self.index, *others])}
        match operation:
            case "upsert":
                self.table.upsert(self.rows(some, not is_global), options=QUIET | kind | moves)
            case "delete":
                columns = ["id", "part"]
                self.table.delete(self.rows(some, True).select(columns), options=QUIET | kind)
            case "insert" | "bulk_insert":
                fresh = [self.time * 10 + at for at in range(3)]
                getattr(self.table, operation)(self.rows(fresh, True), options=QUIET)
            case "insert_overwrite" | "insert_overwrite_table":
                fresh = [self.time * 10 + at for at in range(3)]
                getattr(self.table, operation)(self.rows(fresh, True), options=QUIET)
            case "delete_partition":
                self.table.delete_partition(self.rng.choice(PARTS), options=QUIET)
            case "compact":
                if self.table.config.is_merge_on_read:
                    self.table.compact()
            case "cluster":
                self.table.cluster()
            case "clean":
                self.table.clean(options={"hoodie.clean.commits.retained": "1"})
        return operation


def play(table: drawstring.Table, index: str, seed: int, steps: int) -> None:
    history = History(table, index, seed)
    assert indexed_places(table) == places(table)
    taken = []
    for _ in range(steps):
        taken.append(history.step())
        assert indexed_places(table) == places(table), taken


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", TABLES)
def test_an_index_of_real_hudi_is_right_after_each_step_of_any_history(
    tmp_path: Path, name: str, seed: int
) -> None:
    play(drawstring.open(unpack(name, tmp_path)), TABLES[name], seed, 12)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("index", ["RECORD_LEVEL_INDEX", "GLOBAL_RECORD_LEVEL_INDEX"])
@pytest.mark.parametrize("table_type", [COW, MOR])
def test_an_index_built_for_a_table_is_right_after_each_step_of_any_history(
    table_type: str, index: str, seed: int
) -> None:
    storage = create(SCHEMA, table_type=table_type, partition_by="part", ordering="ts")._context.storage
    table = Table(TableContext(storage, clock=SteppingClock(), uses_metadata=True))
    history = History(table, "SIMPLE", seed)
    table.upsert(history.rows(list(range(20)), True), options=QUIET)
    table.delete(history.rows([1, 2], True), options=QUIET)
    assert "record_index" not in table.config.metadata_partitions
    table.upsert(history.rows([3, 50], True), options=QUIET | {"hoodie.index.type": index})
    play(table, index, seed, 12)


def test_a_restore_builds_the_index_again(tmp_path: Path) -> None:
    table = drawstring.open(unpack("v9_idx_record_level_partitioned", tmp_path))
    history = History(table, "RECORD_LEVEL_INDEX", 1)
    then = table.upsert(history.rows([1, 2, 70], True), options=QUIET).instant
    table.upsert(history.rows([3, 4, 71], True), options=QUIET)
    table.restore(then)
    assert indexed_places(table) == places(table)
    keys = {key for key, _, _ in indexed_places(table)}
    assert "70" in keys
    assert "71" not in keys
