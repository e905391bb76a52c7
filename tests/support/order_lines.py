"""Lines of orders in one bucket of small row groups, and a dictionary of those that a table has."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from drawstring.schema.fields import IS_DELETED_COLUMN
from drawstring.table import Table
from tests.support.tables import MOR, WITHOUT_COMPACTION, create

ORDER, LINE, TS, KIND, PRICE, NOTE = "order_id", "line", "ts", "kind", "price", "note"
SCHEMA = pa.schema(
    [
        (ORDER, pa.int64()),
        (LINE, pa.int32()),
        (TS, pa.int64()),
        (KIND, pa.string()),
        (PRICE, pa.float64()),
        (NOTE, pa.string()),
        (IS_DELETED_COLUMN, pa.bool_()),
    ]
)
ROWS = SCHEMA.remove(len(SCHEMA) - 1)
NAMES = ROWS.names
ONE_BUCKET = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
BY_COMMIT = {"hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"}
NO_META = {"hoodie.populate.meta.fields": "false"}
SORTED = {"hoodie.table.storage.layout": "lsm_tree"}
Row = tuple[int, int, int, str, float, str]
CONDITIONS: dict[str, Callable[[Row], bool]] = {
    "price > 90": lambda row: row[4] > 90,
    "kind = 'a' and price < 40": lambda row: row[3] == "a" and row[4] < 40,
    "price > 1000": lambda row: row[4] > 1000,
    "ts > 5": lambda row: row[2] > 5,
    "order_id = 17 and line = 1": lambda row: row[:2] == (17, 1),
    "order_id between 10 and 20": lambda row: 10 <= row[0] <= 20,
}


def lineitem(rows: Sequence[Row]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(NAMES, row, strict=True)) for row in rows], ROWS)


def made(path: Path | None = None, **properties: str) -> Table:
    how: dict[str, Any] = {"record_key": [ORDER, LINE], "partition_by": [], "ordering": [TS]}
    if properties.keys() & SORTED.keys():
        how["version"] = 10
    return create(SCHEMA, path, table_type=MOR, properties=ONE_BUCKET | properties, **how)


def base_rows(count: int = 240, ts: int = 5) -> list[Row]:
    chance = random.Random(1)
    return [
        (at // 3, at % 3, ts, chance.choice("ab"), float(chance.randrange(100)), f"note {chance.random()}")
        for at in range(count)
    ]


def read(table: Table, columns: Sequence[str] | None = None, where: str | None = None) -> list[Any]:
    rows = table.scan(columns=columns or NAMES, where=where).to_arrow()
    return sorted(tuple(row.values()) for row in rows.to_pylist())


class Model:
    """The rows that a table must have, by those of its base file and those that survive in its logs.

    Log records are merged among themselves first. A delete without ordering value wins over all before it, in
    the base file too; what comes after it is new.
    """

    def __init__(self, table: Table, *, by_commit: bool = False, log_format: str = "parquet") -> None:
        self.table, self.by_commit = table, by_commit
        self.options = WITHOUT_COMPACTION | {"hoodie.logfile.data.block.format": log_format}
        self.base: dict[tuple[int, int], Row] = {}
        self.logs: dict[tuple[int, int], Row | None] = {}
        self.dated: set[Row] = set()
        self.deleted: set[tuple[int, int]] = set()

    def load(self, rows: Sequence[Row]) -> None:
        self.table.bulk_insert(lineitem(rows))
        self.base = {row[:2]: row for row in rows}

    def upsert(self, rows: Sequence[Row], *, deletes: bool = False) -> None:
        flags = pa.array([deletes] * len(rows))
        self.table.upsert(lineitem(rows).append_column(IS_DELETED_COLUMN, flags), options=self.options)
        for row in rows:
            self.logs[row[:2]] = self.newer(self.logs.get(row[:2]), row)
        self.dated |= set(rows) if deletes else set()

    def delete(self, rows: Sequence[Row]) -> None:
        self.table.delete(lineitem(rows), options=self.options)
        self.logs |= {row[:2]: None for row in rows}
        self.deleted |= {row[:2] for row in rows}

    def newer(self, old: Row | None, new: Row) -> Row:
        return new if old is None or self.by_commit or new[2] >= old[2] else old

    def _before(self, key: tuple[int, int]) -> Row | None:
        return None if key in self.deleted else self.base.get(key)

    def matching(self, is_match: Callable[[Row], bool] = lambda _: True) -> list[Row]:
        logged = {
            key: None if row is None else self.newer(self._before(key), row) for key, row in self.logs.items()
        }
        rows = (self.base | logged).values()
        return sorted(row for row in rows if row is not None and row not in self.dated and is_match(row))


def history(model: Model, chance: random.Random) -> None:
    """Load rows; then change, delete and add some, a part of them with lower ordering values."""
    model.load(base_rows())
    for number in range(3):
        keys = chance.sample([row[:2] for row in base_rows()], 16)
        changed = [
            (
                *key,
                chance.choice((3, 6, 7)),
                chance.choice("ab"),
                float(chance.randrange(120)),
                f"new {number}",
            )
            for key in keys[:8]
        ]
        new = [(chance.randrange(80, 90), 9, chance.choice((4, 8)), "a", 95.0, f"new {number}")]
        model.upsert([*changed, *new])
        model.delete([(*key, 1, "", 0.0, "") for key in keys[8:12]])
        model.upsert(
            [(*key, chance.choice((4, 9)), "gone", 1.0, str(number)) for key in keys[12:]], deletes=True
        )
