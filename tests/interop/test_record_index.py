"""drawstring and real Hudi write one table in turns by its record index, which both keep."""

from __future__ import annotations

from pathlib import Path

import pytest

import drawstring
from tests.support.index_reference import InMemory, Kind, Row, content, rows_of, table_of
from tests.support.record_indexes import indexed_places, places
from tests.support.referee import Referee
from tests.support.tables import COW, MOR

METADATA = {"hoodie.metadata.enable": "true"}
KINDS = [
    Kind("GLOBAL_RECORD_LEVEL_INDEX", COW),
    Kind("RECORD_LEVEL_INDEX", MOR),
    pytest.param(Kind("GLOBAL_RECORD_LEVEL_INDEX", MOR, moves=False), marks=pytest.mark.long),
    pytest.param(Kind("RECORD_INDEX", COW, version=8), marks=pytest.mark.long),
    pytest.param(Kind("GLOBAL_RECORD_LEVEL_INDEX", MOR, version=8), marks=pytest.mark.long),
]
COMPACTING = [
    Kind("GLOBAL_RECORD_LEVEL_INDEX", MOR),
    pytest.param(Kind("RECORD_LEVEL_INDEX", COW), marks=pytest.mark.long),
    pytest.param(Kind("RECORD_INDEX", COW, version=8), marks=pytest.mark.long),
    pytest.param(Kind("RECORD_INDEX", COW, version=6), marks=pytest.mark.long),
]
THRESHOLD = "hoodie.metadata.log.compaction.blocks.threshold"
OFTEN = {
    "hoodie.metadata.log.compaction.enable": "true",
    "hoodie.metadata.compact.max.delta.commits": "14",
}


def hudi_options(kind: Kind, operation: str) -> dict[str, str]:
    enabled = "global.record.level" if kind.is_global else "record.level"
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
        f"hoodie.metadata.{enabled}.index.enable": "true",
        "hoodie.metadata.index.column.stats.enable": "false",
        **METADATA,
        **kind.options,
    }


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_both_keep_one_record_index(referee: Referee, tmp_path: Path, kind: Kind) -> None:
    take_turns(referee, str(tmp_path / "rides"), kind, {})


@pytest.mark.parametrize("kind", COMPACTING, ids=str)
def test_both_compact_its_log_files(referee: Referee, tmp_path: Path, kind: Kind) -> None:
    by_us, by_hudi = take_turns(referee, str(tmp_path / "rides"), kind, OFTEN)
    assert (by_us > 0, by_hudi > 0) == (True, True)


def log_compactions(path: str) -> int:
    """Return how many log compactions are on the timeline of the metadata table."""
    timeline = Path(path) / ".hoodie/metadata/.hoodie"
    return sum(1 for _ in timeline.rglob("*.logcompaction.requested"))


def take_turns(referee: Referee, path: str, kind: Kind, more: dict[str, str]) -> tuple[int, int]:
    """Write to a new table in turns, with further options, and compare it with a dictionary.

    Returns the number of log compactions of the metadata table that drawstring made, and that Hudi made.
    """
    kind.create(path)
    memory = InMemory(kind)
    made = {"ours": 0, "theirs": 0}

    def ours(operation: str, rows: list[Row]) -> None:
        getattr(drawstring.open(path, options=METADATA), operation)(
            table_of(rows), options={**kind.options, **more, THRESHOLD: "4"}
        )
        settled("ours", operation, rows)

    def theirs(operation: str, rows: list[Row]) -> None:
        referee.write(path, table_of(rows), {**hudi_options(kind, operation), **more, THRESHOLD: "2"})
        settled("theirs", operation, rows)

    def settled(writer: str, operation: str, rows: list[Row]) -> None:
        made[writer] += log_compactions(path) - sum(made.values())
        getattr(memory, operation)(rows)
        checked()

    def checked() -> None:
        table = drawstring.open(path)
        assert content(table) == memory.content()
        assert rows_of(referee.read(path, METADATA)) == memory.content()
        assert "record_index" in table.config.metadata_partitions
        assert indexed_places(table) == places(table)
        assert len(places(table)) == len(memory.records)

    ours("upsert", rides(range(30), 100, "rome"))
    ours("upsert", [*rides(range(10), 200, "lima"), *rides(range(5, 8), 210, "oslo")])
    theirs("upsert", [*rides(range(5, 15), 300, "oslo"), *rides(range(20, 24), 310, "oslo")])
    theirs("delete", rides((0, 5, 12, 25), 400, "rome" if kind.is_global else "oslo"))
    ours("upsert", [*rides(range(3, 20), 500, "rome"), *rides(range(40, 44), 500, "lima")])
    theirs("upsert", rides(range(10, 50, 3), 600, "lima"))
    ours("delete", rides((13, 16, 40), 700, "lima"))
    assert drawstring.open(path).services.cluster()
    checked()
    theirs("upsert", rides(range(0, 60, 4), 800, "rome"))
    for number in range(4):
        ours("upsert", rides(range(number, 70, 5), 900 + number, "oslo"))
    theirs("upsert", rides(range(1, 80, 6), 1000, "lima"))
    return made["ours"], made["theirs"]


def rides(numbers: range | tuple[int, ...], ts: int, city: str) -> list[Row]:
    return [(f"k{number:03}", city, ts, number * 1000 + ts) for number in numbers]
