"""The index in memory that the others are measured by: a dictionary from key to record and place."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pyarrow as pa

import drawstring
from tests.support.rows import arrow_rows, sorted_rows

SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("ts", pa.int64()), ("fare", pa.int64())])
CITIES = ("berlin", "lima", "rome")
Row = tuple[str, str, int, int]
"""Key, city, time, fare."""


def table_of(rows: list[Row]) -> pa.Table:
    return arrow_rows(SCHEMA, *rows)


@dataclass(frozen=True)
class Kind:
    """An index, and the kind of table that it works on."""

    index: str
    table_type: str
    ordering: tuple[str, ...] = ("ts",)
    moves: bool = True
    version: int = 9
    more: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        stays = "" if self.moves else "-stays"
        by = "event" if self.ordering else "commit"
        by += "-log" if ("hoodie.index.log.enable", "true") in self.more else ""
        return f"{self.index.lower()}{stays}-{self.table_type[:4].lower()}-v{self.version}-{by}"

    @property
    def is_global(self) -> bool:
        return self.index.startswith("GLOBAL") or self.index == "RECORD_INDEX"

    @property
    def options(self) -> dict[str, str]:
        if self.by_record_index:
            return {"hoodie.record.index.update.partition.path": "true"} if self.moves else {}
        if self.moves:
            return {}
        flag = f"hoodie.{self.index.partition('_')[2].lower()}.index.update.partition.path"
        return {flag: "false"}

    @property
    def by_record_index(self) -> bool:
        return "RECORD" in self.index

    def create(self, path: str) -> drawstring.Table:
        return drawstring.create(
            path,
            SCHEMA,
            name="rides",
            table_type=self.table_type,
            record_key="id",
            partition_by="city",
            ordering=self.ordering,
            version=self.version,
            properties={"hoodie.index.type": self.index, **dict(self.more)},
        )


@dataclass
class InMemory:
    """What a table with an index has to hold: each record and the partition that it is in."""

    kind: Kind
    records: dict[object, tuple[str, Row]] = field(default_factory=dict)
    graves: dict[object, str] = field(default_factory=dict)

    def upsert(self, rows: list[Row]) -> None:
        """The newest row of a key in the batch meets what is there."""
        newest: dict[object, Row] = {}
        for row in rows:
            name = self._name(row)
            if name not in newest or self._wins(row, newest[name]):
                newest[name] = row
        for name, row in newest.items():
            if name not in self.records:
                self.records[name] = (self.graves.get(name, row[1]), row)
            elif self._wins(row, self.records[name][1]):
                place = row[1] if self.kind.moves else self.records[name][0]
                self.records[name] = (place, row)

    def delete(self, rows: list[Row]) -> None:
        """Log files remember deletes, so that a record which stays where it is comes back there.

        A record index forgets them.
        """
        for name in map(self._name, rows):
            gone = self.records.pop(name, None)
            remembers = not (self.kind.moves or self.kind.by_record_index)
            if gone and self.kind.table_type == "MERGE_ON_READ" and remembers:
                self.graves[name] = gone[0]

    def content(self) -> list[tuple[str, str, int, int]]:
        """Key, partition, time and fare of all records."""
        return sorted((row[0], place, row[2], row[3]) for place, row in self.records.values())

    def _name(self, row: Row) -> object:
        return row[0] if self.kind.is_global else row[:2]

    def _wins(self, newer: Row, older: Row) -> bool:
        return not self.kind.ordering or newer[2] >= older[2]


def content(table: drawstring.Table) -> list[tuple[str, str, int, int]]:
    """Key, partition, time and fare of all records of a table."""
    return rows_of(table.scan().to_arrow())


def rows_of(found: pa.Table) -> list[tuple[str, str, int, int]]:
    return sorted_rows(found.select(["id", "_hoodie_partition_path", "ts", "fare"]))


def history(seed: int, steps: int) -> list[tuple[str, list[Row]]]:
    """Draw operations on few keys, so that most of them meet records of other partitions.

    Some rows come late, but not those of keys that were deleted.
    """
    rng = random.Random(seed)
    drawn = []
    for step in range(steps):
        operation = "delete" if step % 3 == 2 else "upsert"
        count = 4 if operation == "delete" else 16
        rows = [
            (
                f"k{rng.randrange(20):02}",
                rng.choice(CITIES),
                100 * step + rng.randrange(150),
                rng.randrange(10**6),
            )
            for _ in range(count)
        ]
        drawn.append((operation, rows))
    return drawn
