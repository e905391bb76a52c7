"""drawstring and real Hudi write one table in turns, whose indexes for queries both keep and use."""

from __future__ import annotations

from pathlib import Path

import pytest

import drawstring
from tests.support.bloom_filters import indexed_filters, stored_filters
from tests.support.index_reference import InMemory, Kind, Row, content, rows_of, table_of
from tests.support.record_indexes import indexed_places, places
from tests.support.referee import Referee
from tests.support.secondary_indexes import indexed_values, misplaced, stored_values
from tests.support.tables import COW, MOR

METADATA = {"hoodie.metadata.enable": "true"}
SKIPPING = {**METADATA, "hoodie.enable.data.skipping": "true"}
BY_FARE = "secondary_index_by_fare"


def hudi_options(kind: Kind, operation: str) -> dict[str, str]:
    return {
        "hoodie.table.name": "rides",
        "hoodie.datasource.write.table.type": kind.table_type,
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "city",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.operation": operation,
        "hoodie.write.table.version": str(kind.version),
        "hoodie.write.auto.upgrade": "false",
        "hoodie.index.type": kind.index,
        "hoodie.metadata.global.record.level.index.enable": "true",
        "hoodie.metadata.index.secondary.enable": "true",
        "hoodie.metadata.index.bloom.filter.enable": "true",
        "hoodie.metadata.index.column.stats.enable": "false",
        **METADATA,
        **kind.options,
    }


@pytest.mark.parametrize(
    "kind",
    [
        Kind("GLOBAL_RECORD_LEVEL_INDEX", MOR),
        pytest.param(Kind("GLOBAL_RECORD_LEVEL_INDEX", COW), marks=pytest.mark.long),
    ],
    ids=str,
)
def test_both_keep_and_use_one_secondary_index(referee: Referee, tmp_path: Path, kind: Kind) -> None:
    path = str(tmp_path / "rides")
    kind.create(path)
    memory, is_indexed = InMemory(kind), False

    def ours(operation: str, rows: list[Row]) -> None:
        getattr(drawstring.open(path, options=METADATA), operation)(table_of(rows), options=kind.options)
        settled(operation, rows)

    def theirs(operation: str, rows: list[Row]) -> None:
        referee.write(path, table_of(rows), hudi_options(kind, operation))
        settled(operation, rows)

    def settled(operation: str, rows: list[Row]) -> None:
        getattr(memory, operation)(rows)
        checked()

    def checked() -> None:
        table = drawstring.open(path, options=METADATA)
        assert content(table) == memory.content()
        if not is_indexed:
            return
        assert [each.name for each in table.indexes()] == ["bloom_filters", "record_index", BY_FARE]
        assert indexed_places(table) == places(table)
        assert indexed_values(table, BY_FARE) == stored_values(table, "fare")
        assert indexed_filters(table) == stored_filters(table)
        assert not misplaced(table, BY_FARE, hashes_value=True)
        for fare in (sorted(row[3] for row in memory.content())[3], 100, 12_345):
            where = f"fare = {fare}"
            found = rows_of(referee.read(path, SKIPPING, where=where))
            assert found == [row for row in memory.content() if row[3] == fare]
            assert found == rows_of(table.scan(where=where).to_arrow())

    ours("upsert", rides(range(30), 100, "rome"))
    ours("upsert", [*rides(range(10), 200, "lima"), *rides(range(5, 8), 210, "oslo")])
    table = drawstring.open(path)
    table.create_index("by_fare", "fare")
    table.create_index("bloom_filters")
    is_indexed = True
    checked()
    theirs("upsert", [*rides(range(5, 15), 300, "oslo"), *rides(range(20, 24), 310, "oslo")])
    ours("upsert", [*rides(range(3, 20), 500, "rome"), *rides(range(40, 44), 500, "lima")])
    theirs("delete", rides((0, 5, 12, 25), 600, "rome"))
    ours("delete", rides((13, 16, 40), 700, "lima"))
    assert drawstring.open(path).cluster()
    checked()
    theirs("upsert", rides(range(0, 60, 4), 800, "rome"))
    for number in range(3):
        ours("upsert", rides(range(number, 70, 5), 900 + number, "oslo"))
    theirs("upsert", rides(range(1, 80, 6), 1000, "lima"))


def rides(numbers: range | tuple[int, ...], ts: int, city: str) -> list[Row]:
    return [(f"k{number:03}", city, ts, number * 1000 + ts) for number in numbers]
