"""drawstring and real Apache Hudi upsert one table in turns with the same index; no key comes twice."""

from __future__ import annotations

from pathlib import Path

import pytest

import drawstring
from tests.support.index_reference import InMemory, Kind, Row, content, rows_of, table_of
from tests.support.referee import Referee
from tests.support.tables import COW, MOR

KINDS = [
    Kind("GLOBAL_SIMPLE", MOR),
    pytest.param(Kind("BLOOM", MOR, version=6), marks=pytest.mark.long),
    pytest.param(Kind("BLOOM", COW), marks=pytest.mark.long),
    pytest.param(Kind("GLOBAL_BLOOM", COW), marks=pytest.mark.long),
    pytest.param(Kind("GLOBAL_BLOOM", MOR, ordering=(), version=8), marks=pytest.mark.long),
    pytest.param(Kind("GLOBAL_SIMPLE", COW, moves=False), marks=pytest.mark.long),
]


def hudi_options(kind: Kind, operation: str) -> dict[str, str]:
    ordering = {"hoodie.datasource.write.precombine.field": "ts"} if kind.ordering else {}
    return {
        "hoodie.table.name": "rides",
        "hoodie.datasource.write.table.type": kind.table_type,
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "city",
        "hoodie.datasource.write.operation": operation,
        "hoodie.write.table.version": str(kind.version),
        "hoodie.write.auto.upgrade": "false",
        "hoodie.index.type": kind.index,
        **dict(kind.more),
        **kind.options,
        **ordering,
    }


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_both_find_each_others_records(referee: Referee, tmp_path: Path, kind: Kind) -> None:
    path = str(tmp_path / "rides")
    table, memory = kind.create(path), InMemory(kind)

    def ours(operation: str, rows: list[Row]) -> None:
        getattr(drawstring.open(path), operation)(table_of(rows), options=kind.options)
        settled(operation, rows)

    def theirs(operation: str, rows: list[Row]) -> None:
        referee.write(path, table_of(rows), hudi_options(kind, operation))
        settled(operation, rows)

    def settled(operation: str, rows: list[Row]) -> None:
        getattr(memory, operation)(rows)
        assert content(drawstring.open(path)) == memory.content()
        assert rows_of(referee.read(path)) == memory.content()

    assert table.config.index_type == kind.index
    ours("upsert", rides(range(30), 100, "rome"))
    ours("upsert", [*rides(range(10), 200, "lima"), *rides(range(5, 8), 210, "oslo")])
    theirs("upsert", [*rides(range(5, 15), 300, "oslo"), *rides(range(20, 24), 50, "oslo")])
    theirs("delete", rides((0, 5, 12, 25), 400, "rome" if kind.is_global else "oslo"))
    ours("upsert", [*rides(range(3, 20), 500, "rome"), *rides(range(40, 44), 500, "lima")])
    theirs("upsert", rides(range(10, 50, 3), 600, "lima"))
    ours("delete", rides((13, 16, 40), 700, "lima"))


def test_a_bloom_index_of_hudi_finds_all_keys_by_filters_for_few_questions(
    referee: Referee, tmp_path: Path
) -> None:
    path, kind = str(tmp_path / "rides"), Kind("SIMPLE", COW)
    table, memory = kind.create(path), InMemory(kind)
    table.bulk_insert(table_of(rides(range(500), 100, "rome")))
    memory.upsert(rides(range(500), 100, "rome"))
    properties = tmp_path / "rides/.hoodie/hoodie.properties"
    stored = properties.read_text()
    assert "hoodie.index.type=SIMPLE\n" in stored
    # Hudi refuses another index than the one that the table names.
    properties.write_text(stored.replace("hoodie.index.type=SIMPLE\n", ""))
    rows = rides(range(0, 700, 3), 200, "rome")
    bloom = hudi_options(kind, "upsert") | {"hoodie.index.type": "BLOOM"}
    referee.write(path, table_of(rows), bloom)
    memory.upsert(rows)
    assert content(drawstring.open(path)) == memory.content()
    assert rows_of(referee.read(path)) == memory.content()


def rides(numbers: range | tuple[int, ...], ts: int, city: str) -> list[Row]:
    return [(f"k{number:03}", city, ts, number * 1000 + ts) for number in numbers]
