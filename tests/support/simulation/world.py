"""A table that lives through writes, services, other writers and crashes, beside a dictionary of its rows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

import drawstring
from drawstring.base.clock import Clock, SteppingClock
from drawstring.engine.local import LocalEngine
from drawstring.model.instant import Action
from drawstring.storage import open_storage
from drawstring.storage.protocol import Storage
from drawstring.table import Table
from drawstring.txn.table_context import TableContext
from tests.support.simulation.stores import new_place, new_storage
from tests.support.storages import LongAgo

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
KEPT = 3
"""Commits that queries may go back by; what is older a clean may have taken."""


@dataclass(frozen=True)
class Kind:
    """A kind of table, and how its writes look after it."""

    version: int
    table_type: str
    index: str
    options: tuple[tuple[str, str], ...] = ()
    uses_metadata: bool = True

    def __str__(self) -> str:
        short = "cow" if self.table_type == "COPY_ON_WRITE" else "mor"
        return f"v{self.version}-{short}-{self.index.lower()}"

    @property
    def is_hashed(self) -> bool:
        """Whether keys say which file group they are in."""
        return self.index == "BUCKET"

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
        cleaned_before: an instant; cleans may have deleted files of older moments before the last restore.
        time: counts up; newer rows carry it.
        clock: that processes share which are at work at the same time; None for one of each its own.
    """

    kind: Kind
    storage: Storage
    now_ms: int = 1_900_000_000_000
    rows: Rows = field(default_factory=dict)
    moments: list[Moment] = field(default_factory=list)
    saved: Moment | None = None
    cleaned_before: str = ""
    time: int = 0
    clock: Clock | None = None

    @staticmethod
    def create(kind: Kind, uri: str = "") -> World:
        """Create an empty table of a kind, where the tables of the simulation lie unless it is said where."""
        place, options = new_place()
        drawstring.create(
            uri or place,
            SCHEMA,
            name="sim",
            table_type=kind.table_type,
            record_key="id",
            partition_by="city",
            ordering="ts",
            version=kind.version,
            properties={"hoodie.index.type": kind.index, **BUCKETS.get(kind.index, {})},
            storage_options={} if uri else options,
        )
        return World(kind, open_storage(uri) if uri else open_storage(place, options))

    def copy(self) -> World:
        """Return a world of its own with the same table."""
        storage = new_storage()
        for status in self.storage.list_tree(""):
            storage.put(status.path, self.storage.read(status.path))
        return replace(self, storage=storage, rows=dict(self.rows), moments=list(self.moments))

    def table(self, storage: Storage | None = None) -> Table:
        """Open the table, by way of another storage if one is given."""
        clock = self.clock or SteppingClock(self.now_ms)
        uses_metadata = self.kind.uses_metadata
        own = LongAgo(storage or self.storage)
        return Table(TableContext(own, LocalEngine(threads=1), clock, uses_metadata=uses_metadata))

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

    def write(self, table: Table, verb: str, keys: tuple[int, ...], **options: str) -> None:
        """Write rows of some keys and note the commit."""
        result = getattr(table, verb)(self._batch(keys), options={**dict(self.kind.options), **options})
        self.apply(keys, verb)
        self.note(result)

    def apply(self, keys: tuple[int, ...], verb: str = "upsert") -> None:
        """Do to the model what a write did."""
        for key in keys:
            at = place(key)
            if verb == "delete":
                self.rows.pop(at, None)
            else:
                self.rows[at] = self.time * 100 + key

    def _batch(self, keys: tuple[int, ...]) -> pa.Table:
        rows = [
            {"id": place(key)[1], "city": place(key)[0], "ts": self.time, "value": self.time * 100 + key}
            for key in keys
        ]
        return pa.Table.from_pylist(rows, schema=SCHEMA)

    def note(self, result: Any) -> None:
        """Remember a commit."""
        if result:
            self.moments.append(Moment(result.instant, result.completed or result.instant, dict(self.rows)))


BUCKETS = {"BUCKET": {"hoodie.bucket.index.num.buckets": "2"}}


def place(key: int) -> tuple[str, str]:
    """Return the city and the id of a key."""
    return CITIES[key % 3], f"k{key}"


def _by_key(found: pa.Table) -> Rows:
    rows = found.to_pylist()
    by_key = {(row["city"], row["id"]): row["value"] for row in rows}
    assert len(by_key) == len(rows), f"a key comes twice: {rows}"
    return by_key
