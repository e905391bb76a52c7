"""Operations that actors draw: a call of the table, and what it does to rows."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from drawstring.base.errors import ConflictError, InvalidError
from drawstring.table import Table
from tests.support.methods import method
from tests.support.simulation.writers import restores
from tests.support.simulation.writers.history import Operation, Rows
from tests.support.simulation.writers.plans import At, Kind, Plan
from tests.support.simulation.writers.sequential import deleted, merged, upserted

SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("city", pa.string(), nullable=False),
        pa.field("value", pa.int64()),
    ]
)
OPTIMISTIC = {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}
RETRIES = "hoodie.write.num.retries.on.conflict.failures"
RETENTION = {
    "hoodie.clean.commits.retained": "2",
    "hoodie.keep.min.commits": "3",
    "hoodie.keep.max.commits": "4",
}
INDEX = "column_stats"
CITIES = ("bern", "oslo", "rome")
KEYS = 9
NOT_THERE = (1, 3)
"""Some of the keys that a new table does not have yet."""

NEW_GROUPS = {"hoodie.parquet.small.file.limit": "0"}
LATE = 1000
"""Values of ordered tables are drawn from so many ranges, so that many writes come too late."""

RANGE = 100_000
LAST_VALUE = 1_000_000_000
FAVOUR = 20
"""So many times as often as by their weights the writes come that a plan favours."""


def place(key: int) -> At:
    """Return the city and the id of a key."""
    return CITIES[key % len(CITIES)], f"k{key}"


def batch(rows: Mapping[At, int]) -> pa.Table:
    """Return rows to write."""
    listed = [{"id": key, "city": city, "value": value} for (city, key), value in rows.items()]
    return pa.Table.from_pylist(listed, schema=SCHEMA)


@dataclass
class Operations:
    """Draws the operations of an actor.

    Attributes:
        draw: where they are drawn from.
        plan: says which there are.
        number: of the last operation; its rows carry it.
        due: the service that runs what was planned last.
        inserted: the inserts so far with their rows, except rows that a delete was drawn for.
    """

    draw: random.Random
    plan: Plan
    number: int
    due: str = ""
    inserted: list[tuple[Operation, Rows]] = field(default_factory=list)

    @property
    def kind(self) -> Kind:
        return self.plan.kind

    def write(self) -> Operation:
        """Return the next operation of a writer."""
        self.number += 1
        writes = _WRITES | (_MERGES if self.plan.merges else {})
        if self.kind.is_ordered:  # a late row after a delete wins or not, as compactions go
            writes = {name: each for name, each in writes.items() if name != "delete_where"}
        favour = {name: FAVOUR if name in self.plan.favours else 1 for name in writes}
        weights = [weight * favour[name] for name, (_, weight) in writes.items()]
        chosen = self.draw.choices(list(writes), weights=weights)[0]
        return writes[chosen][0](self)

    def service(self, *, plans: bool) -> Operation:
        """Return the next operation of a process that looks after the table.

        Args:
            plans: whether it may plan what keeps writers away.
        """
        names = ["clean", "clean", "archive"]
        names += ["compact", "compact", "schedule_compaction"] if self.kind.is_mor else []
        names += [] if self.kind.is_hashed or not plans else ["cluster", "cluster", "schedule_clustering"]
        names += list(restores.WEIGHTED) if self.plan.restores and plans else []
        names += ["indexes.schedule", "indexes.schedule", "indexes.drop"] if self.plan.indexes else []
        name = self.due or self.draw.choice(names)
        self.due = _DUE.get(name, "")
        return restores.OPERATIONS[name](self.draw) if name in restores.OPERATIONS else service(name)

    def upsert(self) -> Operation:
        """Write keys, with merges half of the time the new ones among them into new file groups."""
        new = self._values()
        more = NEW_GROUPS if self.plan.merges and self.draw.random() < 0.5 else {}

        def act(table: Table, options: dict[str, str]) -> Any:
            return table.upsert(batch(new), options={**options, **more})

        return Operation(f"upsert {new}", act, lambda rows: upserted(self.kind, rows, new))

    def insert(self) -> Operation:
        """Insert keys that nobody else has, half of the time into new file groups."""
        new = self._new_values()
        more = NEW_GROUPS if self.draw.random() < 0.5 else {}

        def act(table: Table, options: dict[str, str]) -> Any:
            return table.insert(batch(new), options={**options, **more})

        inserted = Operation(f"insert {new}", act, lambda rows: rows | new)
        self.inserted.append((inserted, new))
        return inserted

    def delete(self) -> Operation:
        """Delete keys; in ordered tables those of an insert, so that no late row comes after it."""
        gone = self._values() if not self.kind.is_ordered else self._inserted()
        if not gone:
            return self.insert()

        def act(table: Table, options: dict[str, str]) -> Any:
            return table.delete(batch(gone), options=options)

        missed = frozenset(map(self.kind.name_of, gone))
        return Operation(
            f"delete {sorted(gone)}", act, lambda rows: deleted(self.kind, rows, gone), missed=missed
        )

    def update(self) -> Operation:
        """Add 1 to some rows: those of a city, or all."""
        city = self.draw.choice((*CITIES, ""))
        where = f"city = '{city}'" if city else "value >= 0"

        def act(table: Table, options: dict[str, str]) -> Any:
            return table.update(where, {"value": "value + 1"}, options=options)

        def apply(rows: Rows) -> Rows:
            return {at: value + (city in ("", at[0])) for at, value in rows.items()}

        return Operation(f"update where {where}", act, apply)

    def merge(self) -> Operation:
        """Add to the values of some keys; insert those that are not there, half of the time."""
        more, inserts = self._values(), self.draw.random() < 0.5

        def act(table: Table, options: dict[str, str]) -> Any:
            merge = table.merge(batch(more), options=options)
            merge = merge.when_matched_update({"value": "target.value + source.value"})
            return (merge.when_not_matched_insert_all() if inserts else merge).execute()

        def apply(rows: Rows) -> Rows:
            return merged(self.kind, rows, more, inserts=inserts)

        return Operation(f"merge {more}{' with inserts' if inserts else ''}", act, apply)

    def delete_where(self) -> Operation:
        """Delete the rows that are odd."""

        def act(table: Table, options: dict[str, str]) -> Any:
            return table.delete(where="value % 2 = 1", options=options)

        def apply(rows: Rows) -> Rows:
            return {at: value for at, value in rows.items() if value % 2 != 1}

        return Operation("delete where value is odd", act, apply)

    def overwrite(self) -> Operation:
        """Replace partitions; where a key is in the table once, by keys that nobody else has."""
        new = self._new_values() if self.kind.is_global else self._values()
        cities = {city for city, _ in new}

        def act(table: Table, options: dict[str, str]) -> Any:
            return table.insert_overwrite(batch(new), options=options)

        def apply(rows: Rows) -> Rows:
            return {at: value for at, value in rows.items() if at[0] not in cities} | new

        return Operation(f"insert_overwrite {new}", act, apply)

    def drop(self) -> Operation:
        city = self.draw.choice(CITIES)

        def act(table: Table, options: dict[str, str]) -> Any:
            try:
                return table.delete_partition(city, options=options)
            except ConflictError as error:
                if "in the pending compaction" not in str(error):
                    raise
                with suppress(InvalidError):  # others ran it meanwhile
                    table.services.compact(error.instant, options=options)
                return table.delete_partition(city, options=options)

        def apply(rows: Rows) -> Rows:
            return {at: value for at, value in rows.items() if at[0] != city}

        return Operation(f"delete_partition {city}", act, apply)

    def move(self) -> Operation:
        """Give the column of the values another place, in a commit without rows."""
        after = self.draw.choice(("", *(name for name in SCHEMA.names if name != "value")))

        def act(table: Table, options: dict[str, str]) -> Any:
            with suppress(InvalidError):  # it is there already
                return table.columns.move("value", first=not after, after=after or None, options=options)
            return None

        return Operation(f"move_column value {after or 'first'}", act, lambda rows: rows)

    def _values(self) -> Rows:
        """Draw one to three keys, half of them of one city, so that writers meet."""
        keys = self.draw.sample(range(KEYS), self.draw.randint(1, 3))
        if self.draw.random() < 0.5:
            keys = keys[:1]
        if self.kind.is_global and self.draw.random() < 0.5:  # keys that two writers may bring to two places
            keys = [self.draw.choice(NOT_THERE)]
        return {self._place(key): self._value(key) for key in sorted(keys)}

    def _new_values(self) -> Rows:
        first = 1000 + 10 * self.number
        return {place(key): key for key in range(first, first + self.draw.randint(1, 2))}

    def _inserted(self) -> Rows:
        """Take the rows of an insert that is done."""
        done = [each for each in self.inserted if each[0].outcome == "done"]
        if not done:
            return {}
        chosen = self.draw.choice(done)
        self.inserted.remove(chosen)
        return dict.fromkeys(chosen[1], LAST_VALUE)

    def _place(self, key: int) -> At:
        """Return where a key is written: where a key is in the table once, often to another partition."""
        return (self.draw.choice(CITIES), f"k{key}") if self.kind.is_global else place(key)

    def _value(self, key: int) -> int:
        late = RANGE * self.draw.randrange(LATE) if self.kind.is_ordered else 0
        return late + 100 * self.number + key


_WRITES: dict[str, tuple[Callable[[Operations], Operation], int]] = {
    "upsert": (Operations.upsert, 8),
    "insert": (Operations.insert, 3),
    "delete": (Operations.delete, 2),
    "update": (Operations.update, 2),
    "delete_where": (Operations.delete_where, 1),
    "overwrite": (Operations.overwrite, 1),
    "drop": (Operations.drop, 1),
    "move": (Operations.move, 3),
}
_MERGES: dict[str, tuple[Callable[[Operations], Operation], int]] = {"merge": (Operations.merge, 3)}


_DUE = {
    "schedule_compaction": "compact",
    "schedule_clustering": "cluster",
    "indexes.schedule": "indexes.run",
}


def options_of(kind: Kind) -> dict[str, str]:
    """Return the options of all writes and services of a table."""
    return {**OPTIMISTIC, **RETENTION, **dict(kind.options)}


def service(name: str) -> Operation:
    """Return the operation of a table service, which changes no rows."""

    def act(table: Table, options: dict[str, str]) -> Any:
        arguments = [INDEX] if name in ("indexes.schedule", "indexes.drop") else []
        with suppress(InvalidError) if arguments else nullcontext():  # it is there already, or not there
            return method(table, name)(*arguments, options=options)

    return Operation(name, act)
