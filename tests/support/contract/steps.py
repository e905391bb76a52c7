"""Steps of histories: what happens to a table, and the same to the model.

A step knows nothing of the table: which records, and whether a row comes late, ties or is newer. `Rows`
makes rows of it, a function of `OPERATIONS` carries it out on both sides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import pyarrow as pa
import pytest

from drawstring.base.errors import InvalidError
from drawstring.model.result import CommitResult
from drawstring.table import Table
from tests.support.contract.kinds import ADDED, DELETED, Kind, Row, schema_of
from tests.support.contract.model import PARTITION_PATH, Model, Name, State

DAY = 86_400_000
PLACES = (("eu", "rome", 0), ("us", "new=york", 0), ("us", "rome", DAY))
NUMBERS = 6
DROP = {"hoodie.datasource.write.insert.drop.duplicates": "true"}
FAIL = {"hoodie.datasource.insert.dup.policy": "fail"}
PARTIAL = {"drawstring.write.partial_update": "true"}
NULLS = {"hoodie.write.set.null.for.missing.columns": "true"}
SORTS = ("NONE", "GLOBAL_SORT", "PARTITION_SORT", "PARTITION_PATH_REPARTITION")


class Pace(StrEnum):
    """How a row's time stands to that of the row that is there."""

    LATE = "late"
    TIE = "tie"
    NEWER = "newer"


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


FIRST = Step("insert", tuple(Item(number, number % len(PLACES)) for number in range(NUMBERS)))


@dataclass
class Both:
    """A table and its model, how rows are handed to the table, and with which options besides the kind's.

    `hits` is how many records that were there the last step updated.
    """

    kind: Kind
    table: Table
    model: Model
    give: Callable[[pa.Table], Any] = lambda rows: rows
    more: dict[str, str] = field(default_factory=dict)
    columns: dict[str, pa.DataType] = field(init=False)
    hits: int = 0
    _highest: dict[Name, int] = field(default_factory=dict)
    _values: int = 0

    def __post_init__(self) -> None:
        self.columns = dict(self.kind.columns)

    def take(self, step: Step) -> CommitResult | None:
        """Carry a step out on both; None when it came to nothing."""
        options, self.hits = {**self.kind.options, **self.more}, 0
        if step.apart:
            options["hoodie.parquet.small.file.limit"] = "0"
        return OPERATIONS[step.operation](self, step, options)

    def call(self, verb: str, rows: list[Row], step: Step, options: dict[str, str]) -> CommitResult:
        """Hand rows to a verb of the table."""
        columns = {**self.kind.columns, **(ADDED if step.wide else {})}
        if verb != "delete":
            self.columns |= columns
        given = self.give(table_of(rows, columns))  # after wider rows they lack columns, which are null then
        result: CommitResult = getattr(self.table, verb)(given, options={**NULLS, **options})
        return result

    def rows(self, step: Step, *, may_repeat: bool = False) -> list[Row]:
        """Make rows of a step, each record once or as often as it comes."""
        made: list[Row] = []
        names: set[Name] = set()
        for item in step.items:
            row = self._row(item, step)
            name = self.model.name(row)
            if may_repeat or name not in names:
                names.add(name)
                made.append(row)
        return made

    def new_rows(self, step: Step) -> list[Row]:
        return [row for row in self.rows(step) if self.model.name(row) not in self.model.state]

    def is_deleted(self, row: Row) -> bool:
        """Tell whether a record was there and is not any more."""
        name = self.model.name(row)
        return name in self._highest and name not in self.model.state

    def sent(self, rows: Iterable[Row]) -> list[Row]:
        """Note the times of rows that go to the table."""
        found = list(rows)
        for row in found:
            name = self.model.name(row)
            self._highest[name] = max(row["ts"], self._highest.get(name, 0))
        return found

    def patch(self, rows: list[Row], result: CommitResult) -> None:
        """Tell the model of rows that set columns of records."""
        known = sum(self.model.name(row) in self.model.state for row in rows)
        self.model.patch(rows, result.instant)
        self.hits = known - len(self.model.late)

    def expected(self) -> State:
        """Return the rows of the model without meta columns."""
        nothing = dict.fromkeys(self.columns)
        state = self.model.state
        return {name: {k: row.get(k) for k in nothing} for name, row in state.items()}

    def plain(self, found: pa.Table) -> State:
        """Return rows that some reader found by name, without meta columns; none may come twice."""
        rows = found.select(list(self.columns)).to_pylist()
        by_name = {self.model.name(row): row for row in rows}
        assert len(by_name) == len(rows), f"a record comes twice: {rows}"
        return by_name

    def _row(self, item: Item, step: Step) -> Row:
        region, city, made = PLACES[item.place]
        self._values += 1
        row: Row = {"id": f"k{item.number}", "region": region, "city": city, "made": made}
        row |= {"value": self._values, "note": f"n{self._values}"}
        if not self.kind.is_bare:
            row[DELETED] = item.deleted if step.operation == "upsert" else None
        if step.wide:
            row["extra"] = f"e{self._values}"
        return {**row, "ts": self._time(self.model.name(row), item.pace)}

    def _time(self, name: Name, pace: Pace) -> int:
        """Return a time for a row; of a record that is not there always a newer one.

        Only logs remember a delete, and only until they are compacted, so what happens to a row that is
        older than the delete before it depends on more than the rows. Likewise what a row fills in that is
        older than an update whose log block has a few columns only: it ties.
        """
        there = self.model.state.get(name)
        if there is None or pace is Pace.NEWER:
            return self._highest.get(name, 100) + 10
        is_late = pace is Pace.LATE and self.model.can_patch(name, late=True)
        return int(there["ts"]) - (5 if is_late else 0)


Operation = Callable[[Both, Step, dict[str, str]], CommitResult | None]


def table_of(rows: Iterable[Row], columns: dict[str, pa.DataType]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=schema_of(columns))


def upsert(both: Both, step: Step, options: dict[str, str]) -> CommitResult:
    rows = both.sent(both.rows(step, may_repeat=True))
    result = both.call("upsert", rows, step, options)
    both.model.write(rows, result.instant)
    return result


def add(verb: str, **more: str) -> Operation:
    """Return an operation that brings new records."""

    def run(both: Both, step: Step, options: dict[str, str]) -> CommitResult | None:
        if not (rows := both.sent(both.new_rows(step))):
            return None
        result = both.call(verb, rows, step, {**options, **more})
        both.model.write(rows, result.instant)
        return result

    return run


def bulk_insert(both: Both, step: Step, options: dict[str, str]) -> CommitResult | None:
    sort = SORTS[step.items[0].number % len(SORTS)]
    return add("bulk_insert", **{"hoodie.bulkinsert.sort.mode": sort})(both, step, options)


def insert_drop(both: Both, step: Step, options: dict[str, str]) -> CommitResult:
    rows = both.sent(both.rows(step))
    new = [row for row in rows if both.model.name(row) not in both.model.state]
    result = both.call("insert", rows, step, {**options, **DROP})
    both.model.write(new, result.instant)
    return result


def insert_fail(both: Both, step: Step, options: dict[str, str]) -> CommitResult | None:
    rows = both.rows(step)
    if any(both.model.name(row) in both.model.state for row in rows):
        with pytest.raises(InvalidError, match="rows to insert have keys that the table already has"):
            both.call("insert", rows, Step(step.operation), {**options, **FAIL})
        return None
    return add("insert", **FAIL)(both, step, options)


def partial(both: Both, step: Step, options: dict[str, str]) -> CommitResult | None:
    """Set a few columns, but not of deleted records.

    What a log says of these after the delete is filled up from the base file, in Apache Hudi too.
    """
    name = both.model.name
    found = [row for row in both.rows(step) if not both.is_deleted(row) and both.model.can_patch(name(row))]
    if not found:
        return None
    kept = {"id", "region", "city", "made", "ts", ("value", "note")[step.items[0].number % 2]}
    kept |= {*ADDED} if step.wide else set()
    columns = {name: kind for name, kind in both.columns.items() if name in kept}
    rows = both.sent({name: row[name] for name in columns} for row in found)
    result = both.table.upsert(both.give(table_of(rows, columns)), options={**options, **PARTIAL})
    both.patch(rows, result)
    return result


def delete(both: Both, step: Step, options: dict[str, str]) -> CommitResult:
    rows = both.sent(both.rows(step))
    result = both.call("delete", rows, step, options)
    both.model.delete(map(both.model.name, rows))
    return result


def insert_overwrite(both: Both, step: Step, options: dict[str, str]) -> CommitResult | None:
    """Bring no record that a partition has which is not overwritten."""
    state, name = both.model.state, both.model.name
    rows = [
        row
        for row in both.rows(step)
        if name(row) not in state or state[name(row)][PARTITION_PATH] == both.kind.path_of(row)
    ]
    if not rows:
        return None
    result = both.call("insert_overwrite", both.sent(rows), step, options)
    both.model.clear(both.kind.path_of(row) for row in rows)
    both.model.write(rows, result.instant)
    return result


def insert_overwrite_table(both: Both, step: Step, options: dict[str, str]) -> CommitResult:
    rows = both.sent(both.rows(step))
    result = both.call("insert_overwrite_table", rows, step, options)
    both.model.clear()
    both.model.write(rows, result.instant)
    return result


def delete_partition(both: Both, step: Step, options: dict[str, str]) -> CommitResult:
    path = both.kind.path_of(both.rows(step)[0])
    result = both.table.delete_partition(path, options=options)
    both.model.clear([path])
    return result


def update_where(both: Both, step: Step, options: dict[str, str]) -> CommitResult | None:
    """Update what a condition finds; to an earlier time it is a late row."""
    where, hit = _condition(both, step)
    pace = step.items[0].pace
    if not all(both.model.can_patch(both.model.name(row)) for row in hit):
        return None
    shift = {Pace.LATE: -5, Pace.TIE: 0, Pace.NEWER: 10}[pace]
    result = both.table.update(where, {"value": "value + 1000", "ts": f"ts + {shift}"}, options=options)
    changed = [{**row, "value": _plus(row["value"], 1000), "ts": row["ts"] + shift} for row in hit]
    both.patch(both.sent(changed), result)
    return result


def delete_where(both: Both, step: Step, options: dict[str, str]) -> CommitResult:
    where, hit = _condition(both, step)
    result = both.table.delete(where=where, options=options)
    both.model.delete(map(both.model.name, hit))
    return result


def _condition(both: Both, step: Step) -> tuple[str, list[Row]]:
    region, ids = PLACES[step.items[0].place][0], sorted({f"k{item.number}" for item in step.items})
    where = f"region = '{region}' and id in ({', '.join(map(repr, ids))})"
    rows = both.model.state.values()
    return where, [row for row in rows if row["region"] == region and row["id"] in ids]


def merge(both: Both, step: Step, options: dict[str, str]) -> CommitResult | None:
    """Merge with all kinds of clauses."""
    model, kind = both.model, both.kind
    rows = [row for row in both.rows(step) if model.can_patch(model.name(row))]
    rows = both.sent({n: v for n, v in row.items() if n in both.columns} for row in rows)
    if not rows:
        return None
    gone = {item.number for item in step.items if item.deleted}
    source = [{**row, "fate": "gone" if int(row["id"][1:]) in gone else "stays"} for row in rows]
    data = both.give(table_of(source, {**both.columns, "fate": pa.string()}))
    on = dict.fromkeys((*kind.keys, *(() if kind.is_global else kind.partition_fields)))
    builder = both.table.merge(data, list(on), options=options).when_matched_delete("source.fate = 'gone'")
    if kind.merges_few:
        builder.when_matched_update({"value": "source.value", "ts": "source.ts"})
    else:
        builder.when_matched_update_all()
    builder.when_not_matched_insert_all("source.fate <> 'gone'")
    by_source = step.apart and not model.lagging
    if by_source:
        builder.when_not_matched_by_source_update({"value": "value + 7"}, "region = 'us'")
    result = builder.execute()
    inserted, updated, deleted = _merged(both, source, by_source=by_source)
    model.delete(deleted)
    model.write(both.sent(inserted), result.instant)
    both.patch(both.sent(updated), result)
    return result


def _merged(both: Both, source: list[Row], *, by_source: bool) -> tuple[list[Row], list[Row], list[Name]]:
    """Return the rows that the clauses of `merge` insert and update, and the records that they delete."""
    model, inserted, updated, deleted = both.model, [], [], []
    for row in source:
        there = model.state.get(model.name(row))
        if row.pop("fate") == "gone":
            deleted += [model.name(row)] if there else []
        elif there and both.kind.merges_few:
            updated.append({**there, "value": row["value"], "ts": row["ts"]})
        else:
            (updated if there else inserted).append({**dict.fromkeys(both.columns), **row})
    named = set(map(model.name, source))
    rest = [row for name, row in model.state.items() if by_source and name not in named]
    updated += [{**row, "value": _plus(row["value"], 7)} for row in rest if row["region"] == "us"]
    return inserted, updated, deleted


def _plus(value: int | None, more: int) -> int | None:
    return None if value is None else value + more


def compact(both: Both, step: Step, options: dict[str, str]) -> CommitResult | None:
    both.model.settle()
    return both.table.services.compact()


def cluster(both: Both, step: Step, options: dict[str, str]) -> CommitResult | None:
    both.model.late = []
    by = {} if both.kind.is_sorted else {"hoodie.clustering.plan.strategy.sort.columns": "value"}
    return both.table.services.cluster(options={**options, **by})


OPERATIONS: dict[str, Operation] = {
    "insert": add("insert"),
    "insert_drop": insert_drop,
    "insert_fail": insert_fail,
    "upsert": upsert,
    "partial": partial,
    "delete": delete,
    "bulk_insert": bulk_insert,
    "append": add("append"),
    "insert_overwrite": insert_overwrite,
    "insert_overwrite_table": insert_overwrite_table,
    "delete_partition": delete_partition,
    "update_where": update_where,
    "delete_where": delete_where,
    "merge": merge,
    "compact": compact,
    "cluster": cluster,
}
