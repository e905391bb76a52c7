"""Small tables with a history, and the rows that any reader must find in them.

The expected rows come from a plain model of the two merge modes over Python dictionaries.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pyarrow as pa

import drawstring
from tests.support.tables import WITHOUT_COMPACTION

Row = dict[str, Any]

SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("city", pa.string(), nullable=False),
        pa.field("ts", pa.int64(), nullable=False),
        pa.field("fare", pa.float64()),
        pa.field("tip", pa.decimal128(10, 2)),
        pa.field("day", pa.date32()),
        pa.field("seen", pa.timestamp("us", tz="UTC")),
        pa.field("stops", pa.list_(pa.string())),
        pa.field("driver", pa.struct([("name", pa.string()), ("age", pa.int32())])),
    ]
)

CITIES = ("berlin", "lima", "new york")
META = tuple(
    f"_hoodie_{name}" for name in ("commit_time", "commit_seqno", "record_key", "partition_path", "file_name")
)


@dataclass(frozen=True)
class Case:
    """A kind of table."""

    version: int
    table_type: str
    log_format: str = "parquet"
    ordering: str | None = "ts"

    def __str__(self) -> str:
        kind = "cow" if self.table_type == "COPY_ON_WRITE" else f"mor-{self.log_format}"
        return f"v{self.version}-{kind}-{'event' if self.ordering else 'commit'}-time"

    @property
    def is_mor(self) -> bool:
        return self.table_type == "MERGE_ON_READ"

    @property
    def write_options(self) -> dict[str, str]:
        return {"hoodie.logfile.data.block.format": self.log_format} if self.is_mor else {}


CASES = [
    Case(version, *kind)
    for version in (6, 8, 9)
    for kind in (("COPY_ON_WRITE",), ("MERGE_ON_READ", "parquet"), ("MERGE_ON_READ", "avro"))
] + [Case(9, "MERGE_ON_READ", ordering=None), Case(6, "MERGE_ON_READ", "avro", ordering=None)]


def row(number: int, ts: int, fare: float | None = None) -> Row:
    """Return a row whose values follow from its number and its time."""
    return {
        "id": f"r{number:03}",
        "city": CITIES[number % 3],
        "ts": ts,
        "fare": fare if fare is not None else number + ts / 1000,
        "tip": Decimal(number * 7 + ts).scaleb(-2),
        "day": dt.date(2024, 1, 1) + dt.timedelta(days=number),
        "seen": dt.datetime(2024, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=ts, microseconds=number),
        "stops": [f"s{at}" for at in range(number % 4)] if number % 5 else None,
        "driver": {"name": f"d{number % 7}", "age": 20 + number} if number % 6 else None,
    }


def table_of(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=SCHEMA)


@dataclass
class Model:
    """What a table must hold: rows by key, merged by event time or by commit time."""

    ordering: str | None
    rows: dict[str, Row] = field(default_factory=dict)

    def upsert(self, rows: list[Row]) -> None:
        for incoming in rows:
            if self._wins(incoming):
                self.rows[incoming["id"]] = incoming

    def delete(self, rows: list[Row]) -> None:
        for gone in rows:
            if self._wins(gone):
                self.rows.pop(gone["id"], None)

    def sorted(self) -> list[Row]:
        return [self.rows[key] for key in sorted(self.rows)]

    def _wins(self, incoming: Row) -> bool:
        stored = self.rows.get(incoming["id"])
        return stored is None or self.ordering is None or incoming[self.ordering] >= stored[self.ordering]


@dataclass
class History:
    """A table that was written, its model, and the model's rows after each commit; log files stay."""

    table: drawstring.Table
    path: str
    case: Case
    model: Model
    after: list[list[Row]] = field(default_factory=list)

    def upsert(self, rows: list[Row]) -> None:
        self.table.upsert(table_of(rows), options={**self.case.write_options, **WITHOUT_COMPACTION})
        self.model.upsert(rows)
        self.after.append(self.model.sorted())

    def delete(self, rows: list[Row]) -> None:
        self.table.delete(table_of(rows), options={**self.case.write_options, **WITHOUT_COMPACTION})
        self.model.delete(rows)
        self.after.append(self.model.sorted())


def create(path: str, case: Case, **changes: Any) -> History:
    """Create an empty table of a kind; `changes` are other arguments of `drawstring.create`."""
    arguments = {
        "name": "rides",
        "table_type": case.table_type,
        "record_key": "id",
        "partition_by": "city",
        "ordering": case.ordering or (),
        "version": case.version,
    }
    table = drawstring.create(path, SCHEMA, **{**arguments, **changes})
    return History(table, path, case, Model(case.ordering))


def write(path: str, case: Case, **changes: Any) -> History:
    """Write a table in five commits: inserts, updates (some late), deletes, updates and inserts twice."""
    history = create(path, case, **changes)
    history.upsert([row(number, 100) for number in range(40)])
    history.upsert([row(number, 200) for number in range(10)] + [row(number, 50) for number in range(10, 14)])
    history.delete([row(number, 300) for number in (1, 2, 20, 21)])
    history.upsert(
        [row(number, 400) for number in range(8, 16)] + [row(number, 400) for number in range(40, 46)]
    )
    history.upsert([row(number, 500, fare=-1.0) for number in (3, 5, 41)] + [row(50, 500)])
    return history


def plain(table: pa.Table) -> list[Row]:
    """Return rows without meta columns, sorted by key, in the schema's order of columns."""
    names = [field.name for field in SCHEMA]
    return sorted(table.select(names).cast(SCHEMA).to_pylist(), key=lambda found: str(found["id"]))
