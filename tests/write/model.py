"""A table and, beside it, what it has to hold: a plain dictionary of the rows after every commit.

A history is a list of steps that know nothing of the table: which key, and whether the row comes late,
ties or is newer. `Witness.take` makes rows of a step, carries it out on both sides and compares them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import pyarrow as pa

import drawstring
from drawstring.model.result import CommitResult
from drawstring.schema.meta import META_COLUMNS

Row = dict[str, Any]
Key = tuple[str, str]
State = dict[Key, Row]

COMMIT_TIME, PARTITION_PATH = META_COLUMNS[0], META_COLUMNS[3]
DELETED = "_hoodie_is_deleted"
PLACES = (("eu", "rome"), ("us", "new york"), ("us", "rome"))
COLUMNS: dict[str, pa.DataType] = {
    "id": pa.string(),
    "region": pa.string(),
    "city": pa.string(),
    "ts": pa.int64(),
    "value": pa.int64(),
    DELETED: pa.bool_(),
}
ADDED = {"note": pa.string()}


class Pace(StrEnum):
    """How a row's time stands to that of the row that is there."""

    LATE = "late"
    TIE = "tie"
    NEWER = "newer"


@dataclass(frozen=True)
class Kind:
    """A kind of table."""

    version: int
    storage: str
    index: str
    ordered: bool
    partitions: int
    hive: bool

    def __str__(self) -> str:
        order = "event" if self.ordered else "commit"
        hive = "-hive" if self.hive else ""
        return f"v{self.version}-{self.storage}-{self.index}-{order}-{self.partitions}p{hive}".lower()

    @property
    def is_mor(self) -> bool:
        return self.storage != "cow"

    @property
    def partition_by(self) -> tuple[str, ...]:
        return ("region", "city")[: self.partitions]

    def create(self, uri: str) -> drawstring.Table:
        return drawstring.create(
            uri,
            schema_of(COLUMNS),
            name="rides",
            table_type="MERGE_ON_READ" if self.is_mor else "COPY_ON_WRITE",
            record_key="id",
            partition_by=self.partition_by,
            ordering="ts" if self.ordered else (),
            version=self.version,
            properties={
                "hoodie.datasource.write.hive_style_partitioning": str(self.hive).lower(),
                "hoodie.index.type": self.index,
                **({"hoodie.bucket.index.num.buckets": "2"} if self.index == "BUCKET" else {}),
            },
        )

    def path_of(self, row: Row) -> str:
        parts = [(name, row[name]) for name in self.partition_by]
        return "/".join(f"{name}={value}" if self.hive else value for name, value in parts)


@dataclass(frozen=True)
class Item:
    """One row of a step."""

    number: int
    place: int
    pace: Pace = Pace.NEWER
    deleted: bool = False


@dataclass(frozen=True)
class Step:
    """One commit; `wide` rows have the column that came later, `apart` new ones shun small files."""

    operation: str
    items: tuple[Item, ...] = ()
    wide: bool = False
    apart: bool = False


@dataclass(frozen=True)
class Commit:
    """A commit that was made, the state after it, and the late rows that it brought."""

    instant: str
    time: str
    state: State
    late: tuple[Row, ...] = ()


@dataclass
class Witness:
    """A table of a kind with its model."""

    kind: Kind
    table: drawstring.Table
    commits: list[Commit] = field(default_factory=list)
    state: State = field(default_factory=dict)
    columns: dict[str, pa.DataType] = field(default_factory=lambda: dict(COLUMNS))
    _highest: dict[Key, int] = field(default_factory=dict)
    _dead: set[Key] = field(default_factory=set)
    _values: int = 0

    def take(self, step: Step) -> CommitResult | None:
        """Carry a step out on the table and on the model; None when it came to nothing."""
        if step.operation == "compact":
            return self._compact()
        options = {"hoodie.logfile.data.block.format": self.kind.storage} if self.kind.is_mor else {}
        if step.operation.endswith("_where"):
            return self._change(step, options)
        rows = self._rows(step)
        if not rows:
            return None
        if step.apart:
            options["hoodie.parquet.small.file.limit"] = "0"
        verb = getattr(self.table, step.operation)
        columns = {**COLUMNS, **ADDED} if step.wide else COLUMNS
        if step.operation != "delete":
            self.columns |= columns
        result: CommitResult = verb(table_of(rows, columns), **options)
        self._apply(step, rows, result)
        return result

    def scan(self, **how: Any) -> State:
        """Return what the table holds, by key; a key that comes twice is an error."""
        return self._by_key(self.table.scan(**how).to_arrow())

    def check_snapshot(self) -> None:
        assert self.scan() == self._wide(self.state)

    def check_travel(self, number: int) -> None:
        """Compare the table as of a commit."""
        commit = self.commits[number]
        assert _bare(self.scan(as_of=commit.instant)) == _bare(commit.state)

    def check_incremental(self, start: int, end: int) -> None:
        """Compare the range of commits after number `start` (-1: all) up to `end`.

        The rows that the last commit of the range left, if a commit of the range wrote them. A query on
        log files alone cannot know that a late row in them lost to a row before the range.
        """
        begin = self.commits[start].time if start >= 0 else "earliest"
        found = self._by_key(self.table.incremental(begin, self.commits[end].time).to_arrow())
        asked = self.commits[start + 1 : end + 1]
        written = {commit.instant for commit in asked}
        expected = {key: row for key, row in asked[-1].state.items() if row[COMMIT_TIME] in written}
        surplus = [found.pop(key) for key in found.keys() - expected.keys()]
        assert _bare(found) == _bare(expected)
        late = [row for commit in asked for row in commit.late] if self.kind.is_mor else []
        assert [row for row in _narrow(surplus) if row not in _narrow(late)] == []

    def _change(self, step: Step, options: dict[str, str]) -> CommitResult:
        """Update or delete what a condition finds; an update to an earlier time is a late row."""
        first, region = step.items[0], PLACES[step.items[0].place][0]
        ids = sorted({f"k{item.number}" for item in step.items})
        where = f"region = '{region}' and id in ({', '.join(map(repr, ids))})"
        hit = {k: row for k, row in self.state.items() if row["region"] == region and row["id"] in ids}
        if step.operation == "delete_where":
            result = self.table.delete(where=where, **options)
            self.state = {key: row for key, row in self.state.items() if key not in hit}
            self._dead |= hit.keys()
            self._note(result, ())
            return result
        shift = {Pace.LATE: -5, Pace.TIE: 0, Pace.NEWER: 10}[first.pace]
        result = self.table.update(where, {"value": "value + 1000", "ts": f"ts + {shift}"}, **options)
        changed = {
            key: {**row, "value": row["value"] + 1000, "ts": row["ts"] + shift, COMMIT_TIME: result.instant}
            for key, row in hit.items()
        }
        is_late = self.kind.ordered and shift < 0
        self.state = self.state if is_late else {**self.state, **changed}
        for key, row in changed.items():
            self._highest[key] = max(row["ts"], self._highest[key])
        self._note(result, tuple(changed.values()) if is_late else ())
        return result

    def _compact(self) -> CommitResult | None:
        result = self.table.compact() if self.kind.is_mor else None
        if result is not None:
            self._note(result, ())
        return result

    def _rows(self, step: Step) -> list[Row]:
        """Make rows of a step: plain inserts bring each key once, and only new ones."""
        rows: list[Row] = []
        seen: set[Key] = set()
        for item in step.items:
            row = self._row(item, step)
            key = self._key(row)
            is_fresh = key not in seen and (key not in self.state or "overwrite" in step.operation)
            if step.operation in ("upsert", "delete") or is_fresh:
                rows.append(row)
                self._highest[key] = max(row["ts"], self._highest.get(key, 0))
            seen.add(key)
        return rows

    def _row(self, item: Item, step: Step) -> Row:
        region, city = PLACES[item.place]
        self._values += 1
        row: Row = {"id": f"k{item.number}", "region": region, "city": city, "value": self._values}
        row[DELETED] = item.deleted if step.operation == "upsert" else None
        if step.wide:
            row["note"] = f"n{self._values}"
        return {**row, "ts": self._time(self._key(row), item.pace)}

    def _time(self, key: Key, pace: Pace) -> int:
        """Return a time for a row; of a key that was deleted always a newer one.

        Only logs remember a delete, and only until they are compacted, so what happens to a row that is
        older than the delete before it depends on more than the rows.
        """
        there = self.state.get(key)
        if there is None or key in self._dead or pace is Pace.NEWER:
            return self._highest.get(key, 100) + 10
        return int(there["ts"]) - (5 if pace is Pace.LATE else 0)

    def _apply(self, step: Step, rows: list[Row], result: CommitResult) -> None:
        if step.operation == "insert_overwrite_table":
            self.state = {}
        if step.operation == "insert_overwrite":
            touched = {self.kind.path_of(row) for row in rows}
            self.state = {key: row for key, row in self.state.items() if key[0] not in touched}
        late = []
        for key, row in self._combined(rows).items():
            row |= {COMMIT_TIME: result.instant, PARTITION_PATH: key[0]}
            if not self._wins(key, row, step):
                late.append(row)
            elif step.operation == "delete" or row[DELETED]:
                self.state.pop(key, None)
                self._dead.add(key)
            else:
                self.state = {**self.state, key: row}
                self._dead.discard(key)
        self._note(result, tuple(late))

    def _combined(self, rows: list[Row]) -> State:
        """Keep one row of each key: the greatest time, of equal ones the last."""
        kept: State = {}
        for row in rows:
            there = kept.get(self._key(row))
            if there is None or not self.kind.ordered or row["ts"] >= there["ts"]:
                kept[self._key(row)] = dict(row)
        return kept

    def _wins(self, key: Key, row: Row, step: Step) -> bool:
        there = self.state.get(key)
        return (
            there is None or not self.kind.ordered or step.operation == "delete" or row["ts"] >= there["ts"]
        )

    def _note(self, result: CommitResult, late: tuple[Row, ...]) -> None:
        time = result.completed or result.instant
        self.commits.append(Commit(result.instant, time, dict(self.state), late))

    def _key(self, row: Row) -> Key:
        return self.kind.path_of(row), row["id"]

    def _by_key(self, found: pa.Table) -> State:
        names = [name for name in self.columns if name in found.column_names]
        rows = found.select([COMMIT_TIME, PARTITION_PATH, *names]).to_pylist()
        by_key = {(row[PARTITION_PATH], row["id"]): row for row in rows}
        assert len(by_key) == len(rows), f"a key comes twice: {rows}"
        return by_key

    def _wide(self, state: State) -> State:
        return {key: {**dict.fromkeys(self.columns), **row} for key, row in state.items()}


def schema_of(columns: dict[str, pa.DataType]) -> pa.Schema:
    return pa.schema([pa.field(name, kind, nullable=name != "id") for name, kind in columns.items()])


def table_of(rows: Iterable[Row], columns: dict[str, pa.DataType] = COLUMNS) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=schema_of(columns))


def pairwise(every: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Choose from all combinations so that any two values of two dimensions come together once."""

    def pairs(combination: tuple[Any, ...]) -> set[Any]:
        named = list(enumerate(combination))
        return {(one, other) for one in named for other in named if one[0] < other[0]}

    missing = set().union(*(pairs(each) for each in every))
    chosen = []
    while missing:
        best = max(every, key=lambda each: len(pairs(each) & missing))
        chosen.append(best)
        missing -= pairs(best)
    return chosen


def _bare(state: State) -> State:
    """Leave out null columns: a query on the past may not have columns that came later."""
    return {
        key: {name: value for name, value in row.items() if value is not None} for key, row in state.items()
    }


def _narrow(rows: Iterable[Row]) -> list[Row]:
    return [{name: value for name, value in row.items() if value is not None} for row in rows]
