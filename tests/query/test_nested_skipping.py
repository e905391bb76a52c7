"""Skipping by statistics of fields of structs: fewer files, the same rows."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pyarrow as pa
import pytest

from drawstring.table import Table
from drawstring.testing import context_of
from tests.support.seeds import scaled_steps
from tests.support.tables import COW, MOR, WITHOUT_SERVICES, create

PLACE = pa.struct([("name", pa.string()), ("since", pa.date32())])
BARE = pa.schema([pa.field("id", pa.string(), nullable=False), ("city", pa.string()), ("ts", pa.int64())])
SCHEMA = BARE.append(pa.field("stop", pa.struct([("number", pa.int32()), ("place", PLACE)])))
OPTIONS = {
    **WITHOUT_SERVICES,
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.column.stats.column.list": "id,ts,stop.number,stop.place.name,stop.place.since",
}


def stop(chance: random.Random, near: int) -> dict[str, Any] | None:
    """Return a struct in which anything may be null."""
    if chance.random() < 0.1:
        return None
    place = {"name": f"p{near + chance.randrange(9):03}", "since": date(2024, 1, 1) + timedelta(days=near)}
    return {
        "number": chance.choice([None, near, near + 5, near + 9]),
        "place": chance.choice([None, place, place, place, {**place, "name": None}]),
    }


def rows(chance: random.Random, first: int, near: int) -> pa.Table:
    """Return rows whose stops lie near each other."""
    return pa.Table.from_pylist(
        [
            {"id": f"k{number:03}", "city": f"c{number % 2}", "ts": near, "stop": stop(chance, near)}
            for number in range(first, first + 8)
        ],
        SCHEMA,
    )


@pytest.fixture(params=[COW, MOR])
def table(request: pytest.FixtureRequest) -> Table:
    """A table with files that are older than the struct, and in MERGE_ON_READ tables with log files."""
    chance = random.Random(request.param)
    made = create(BARE, table_type=request.param)
    made.insert(rows(chance, 900, 0).drop_columns(["stop"]), options=OPTIONS)
    for number in range(5):
        made.insert(rows(chance, 10 * number, 100 * number), options=OPTIONS)
    made.upsert(rows(chance, 14, 777), options=OPTIONS)
    return made


def slices_read(table: Table, where: str) -> int:
    return len(table.scan(where=where).tasks())


def found(table: Table, where: str) -> list[str]:
    return sorted(map(str, table.scan(where=where).to_arrow().to_pylist()))


@pytest.mark.scaled
def test_conditions_on_fields_of_structs_change_no_rows(table: Table) -> None:
    chance, count = random.Random(5), scaled_steps(20)
    whole, skipped = Table(replace(context_of(table), skips_data=False)), 0
    for _ in range(count):
        compare, number = chance.choice(["=", "<", "<=", ">", "<>"]), chance.choice([0, 104, 205, 400, 780])
        terms = [
            f"stop.number {compare} {number}",
            f"stop.place.name {compare} 'p{number:03}'",
            f"stop.place.since {compare} date '{date(2024, 1, 1) + timedelta(days=number)}'",
            f"stop.number IS {chance.choice(['', 'NOT '])}NULL",
            f"id = 'k{number // 10:03}'",
        ]
        where = f" {chance.choice(['AND', 'OR'])} ".join(chance.sample(terms, 2))
        assert found(table, where) == found(whole, where), where
        skipped += slices_read(whole, where) - slices_read(table, where)
    assert skipped > 2.5 * count


def test_files_are_read_whose_fields_may_match(table: Table) -> None:
    everything = len(table.scan().tasks())
    assert everything == 14
    assert slices_read(table, "stop.number > 1000") == 0
    assert 0 < slices_read(table, "stop.place.name = 'p205'") <= 4
    assert slices_read(table, "stop.place.since BETWEEN date '2024-01-01' AND date '2024-01-02'") == 2
