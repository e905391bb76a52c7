"""A table that lives through writes, services, other writers and crashes, beside a dictionary of its rows.

A step is carried out three times over: once undisturbed on a copy, which says what follows from it; then on a
fresh copy for each number of changes after which its process dies; and at last on the table itself, where
now and then it dies too. After every death readers find the rows of before or of after, and the next writer
carries on.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

import drawstring
from drawstring.base.clock import SteppingClock
from drawstring.base.errors import ConflictError, DrawstringError
from drawstring.engine.local import LocalEngine
from drawstring.model.instant import Action
from drawstring.storage import open_storage
from drawstring.storage.faults import FaultyStorage
from drawstring.storage.protocol import Storage
from drawstring.table import Table
from drawstring.txn.state import TableState

Rows = dict[tuple[str, str], int]

SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("city", pa.string(), nullable=False),
        pa.field("ts", pa.int64(), nullable=False),
        pa.field("value", pa.int64()),
    ]
)
CITIES = ("lima", "oslo", "rome")
HOUR_MS = 3_600_000
CHANGES_MAX = 400

_numbers = itertools.count()


@dataclass(frozen=True)
class Kind:
    """A kind of table, and how its writes look after it."""

    version: int
    table_type: str
    index: str
    options: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        short = "cow" if self.table_type == "COPY_ON_WRITE" else "mor"
        return f"v{self.version}-{short}-{self.index.lower()}"

    @property
    def is_mor(self) -> bool:
        return self.table_type == "MERGE_ON_READ"


@dataclass(frozen=True)
class Step:
    """What is done to the table: a write of some keys, or a service."""

    name: str
    keys: tuple[int, ...] = ()
    city: str = CITIES[0]

    def __str__(self) -> str:
        return f"{self.name}{list(self.keys) or ''}"


@dataclass(frozen=True)
class Moment:
    """A commit that stands, and the rows after it."""

    instant: str
    completed: str
    rows: Rows


@dataclass
class World:
    """A table and what it has to hold.

    Attributes:
        kind: of table.
        storage: where it is, in memory.
        now_ms: the clock at the start of the next step.
        rows: what the table holds, by city and key.
        moments: its commits as far as queries may still go back, oldest first.
        saved: the moment of the savepoint, if there is one.
        time: counts up; newer rows carry it.
    """

    kind: Kind
    storage: Storage
    now_ms: int = 1_900_000_000_000
    rows: Rows = field(default_factory=dict)
    moments: list[Moment] = field(default_factory=list)
    saved: Moment | None = None
    time: int = 0

    @staticmethod
    def create(kind: Kind) -> World:
        """Create an empty table of a kind."""
        uri = f"memory://sim-{next(_numbers)}"
        drawstring.create(
            uri,
            SCHEMA,
            name="sim",
            table_type=kind.table_type,
            record_key="id",
            partition_by="city",
            ordering="ts",
            version=kind.version,
            properties={"hoodie.index.type": kind.index, **BUCKETS.get(kind.index, {})},
        )
        return World(kind, open_storage(uri))

    def copy(self) -> World:
        """Return a world of its own with the same table."""
        storage = open_storage(f"memory://sim-{next(_numbers)}")
        for status in self.storage.list_tree(""):
            storage.put(status.path, self.storage.read(status.path))
        return replace(self, storage=storage, rows=dict(self.rows), moments=list(self.moments))

    def table(self, storage: Storage | None = None) -> Table:
        """Open the table, by way of another storage if one is given."""
        return Table(TableState(storage or self.storage, LocalEngine(threads=1), SteppingClock(self.now_ms)))

    def take(self, step: Step, storage: Storage | None = None) -> None:
        """Carry a step out on the table and in the model."""
        self.time += 10
        table, rows = self.table(storage), dict(self.rows)
        clustering = table.timeline.pending_of(Action.CLUSTERING, Action.REPLACE_COMMIT)
        try:
            STEPS[step.name](self, table, step)
        except ConflictError:
            # What is to be clustered takes no changes until it is.
            self.rows = rows
            if not clustering:
                raise
        finally:
            self.now_ms += HOUR_MS

    def settle(self) -> None:
        """Look at what a dead step left: the rows, and whether there is a savepoint."""
        self.rows = self.held()
        saves = [each for each in self.table().timeline.instants if each.action is Action.SAVEPOINT]
        saved = {each.requested for each in saves if each.is_completed}
        known = [moment for moment in self.moments if moment.instant in saved]
        self.saved = known[-1] if known else None

    def held(self) -> Rows:
        """Return what the table holds; a key that comes twice is an error."""
        return _by_key(self.table().scan(["id", "city", "value"]).to_arrow())

    def write(self, table: Table, verb: str, keys: tuple[int, ...]) -> None:
        """Write rows of some keys and note the commit."""
        result = getattr(table, verb)(self._batch(keys), **dict(self.kind.options))
        self.apply(keys, verb)
        self.note(result)

    def apply(self, keys: tuple[int, ...], verb: str = "upsert") -> None:
        """Do to the model what a write did."""
        for key in keys:
            at = _at(key)
            if verb == "delete":
                self.rows.pop(at, None)
            else:
                self.rows[at] = self.time * 100 + key

    def _batch(self, keys: tuple[int, ...]) -> pa.Table:
        rows = [
            {"id": _at(key)[1], "city": _at(key)[0], "ts": self.time, "value": self.time * 100 + key}
            for key in keys
        ]
        return pa.Table.from_pylist(rows, schema=SCHEMA)

    def note(self, result: Any) -> None:
        """Remember a commit."""
        if result is not None:
            self.moments.append(Moment(result.instant, result.completed or result.instant, dict(self.rows)))


BUCKETS = {"BUCKET": {"hoodie.bucket.index.num.buckets": "2"}}


def _at(key: int) -> tuple[str, str]:
    return CITIES[key % 3], f"k{key}"


def _insert(world: World, table: Table, step: Step) -> None:
    new = [key for key in step.keys if _at(key) not in world.rows]
    if new:
        world.write(table, "insert", tuple(new))


def _delete(world: World, table: Table, step: Step) -> None:
    world.write(table, "delete", step.keys)


def _upsert(world: World, table: Table, step: Step) -> None:
    world.write(table, "upsert", step.keys)


def _overwrite(world: World, table: Table, step: Step) -> None:
    cities = {CITIES[key % 3] for key in step.keys}
    for at in [at for at in world.rows if at[0] in cities]:
        del world.rows[at]
    world.write(table, "insert_overwrite", step.keys)


def _drop(world: World, table: Table, step: Step) -> None:
    if not any(at[0] == step.city for at in world.rows):
        return
    result = table.delete_partition(step.city, **dict(world.kind.options))
    for at in [at for at in world.rows if at[0] == step.city]:
        del world.rows[at]
    world.note(result)


def _update(world: World, table: Table, step: Step) -> None:
    ids = ", ".join(f"'k{key}'" for key in step.keys)
    where, change = f"id in ({ids})", {"value": "value + 1", "ts": str(world.time)}
    result = table.update(where, change, **dict(world.kind.options))
    for key in step.keys:
        at = _at(key)
        if at in world.rows:
            world.rows[at] += 1
    world.note(result)


def _service(name: str) -> Callable[[World, Table, Step], None]:
    def run(world: World, table: Table, step: Step) -> None:
        getattr(table, name)(**dict(world.kind.options))

    return run


def _savepoint(world: World, table: Table, step: Step) -> None:
    newest = table.timeline.latest_write()
    moment = world.moments[-1] if world.moments else None
    if world.saved is None and newest and moment and moment.instant == newest.requested:
        table.savepoint(**dict(world.kind.options))
        world.saved = moment


def _delete_savepoint(world: World, table: Table, step: Step) -> None:
    if world.saved is not None:
        table.delete_savepoint(world.saved.instant, **dict(world.kind.options))
        world.saved = None


def _restore(world: World, table: Table, step: Step) -> None:
    if world.saved is None:
        return
    table.restore(world.saved.instant, **dict(world.kind.options))
    world.rows = dict(world.saved.rows)
    world.moments = [each for each in world.moments if each.instant <= world.saved.instant]


def _compact(world: World, table: Table, step: Step) -> None:
    if world.kind.is_mor:
        world.note(table.compact(**dict(world.kind.options)))


def _plan_compaction(world: World, table: Table, step: Step) -> None:
    if world.kind.is_mor:
        table.schedule_compaction(**dict(world.kind.options))


def _cluster(world: World, table: Table, step: Step) -> None:
    if world.kind.index != "BUCKET":
        world.note(table.cluster(**dict(world.kind.options)))


def _plan_clustering(world: World, table: Table, step: Step) -> None:
    if world.kind.index != "BUCKET":
        table.schedule_clustering(**dict(world.kind.options))


WRITES: dict[str, Callable[[World, Table, Step], None]] = {
    "insert": _insert,
    "upsert": _upsert,
    "delete": _delete,
    "insert_overwrite": _overwrite,
    "delete_partition": _drop,
    "update": _update,
}
SERVICES: dict[str, Callable[[World, Table, Step], None]] = {
    "plan_compaction": _plan_compaction,
    "compact": _compact,
    "plan_clustering": _plan_clustering,
    "cluster": _cluster,
    "clean": _service("clean"),
    "archive": _service("archive"),
    "savepoint": _savepoint,
    "delete_savepoint": _delete_savepoint,
    "restore": _restore,
}
STEPS = WRITES | SERVICES


def _by_key(found: pa.Table) -> Rows:
    rows = found.to_pylist()
    by_key = {(row["city"], row["id"]): row["value"] for row in rows}
    assert len(by_key) == len(rows), f"a key comes twice: {rows}"
    return by_key


def random_steps(seed: int, count: int) -> list[Step]:
    """Return steps drawn by a seed; more than half of them write."""
    draw = random.Random(seed)
    names = [*STEPS, "upsert", "upsert", "upsert", "delete"]
    return [
        Step(
            draw.choice(names),
            tuple(sorted(draw.sample(range(12), draw.randint(1, 5)))),
            draw.choice(CITIES),
        )
        for _ in range(count)
    ]


def die_everywhere(
    world: World,
    step: Step,
    check: Callable[[World, World, str], None],
    numbers: Iterable[int] = range(CHANGES_MAX),
) -> None:
    """Let the process of a step die after numbers of changes, each on a copy of its own.

    Args:
        world: before the step; left as it is.
        step: what dies.
        check: told of the copy after each death, of one that lives on, and where that was.
        numbers: of changes, rising; by default every number.
    """
    before, after = dict(world.rows), world.copy()
    after.take(step)
    for changes in numbers:
        copy = world.copy()
        faulty = FaultyStorage(copy.storage, changes)
        with suppress(DrawstringError):
            copy.take(step, faulty)
        copy.now_ms, copy.time = after.now_ms, after.time
        copy.moments = list(world.moments)
        where = f"{world.kind}: {step} died after {changes} changes"
        copy.settle()
        # A restore takes one write back after the other, the newest first.
        between = [each.rows for each in world.moments] if step.name == "restore" else []
        assert copy.rows in (before, after.rows, *between), where
        check(copy, after, where)
        if faulty.changes < changes:
            return
    raise AssertionError(f"{step} still makes changes after {CHANGES_MAX}")
