"""Record indexes that real Hudi wrote: look-ups of keys, and writes that find records by them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import drawstring
from drawstring.base.clock import SteppingClock
from drawstring.base.errors import InvalidError
from drawstring.filegroups.file_slice_reader import ReadKeys
from drawstring.index import tag_context
from drawstring.metadata.record_index_lookup import (
    RecordIndex,
    candidate_groups,
    group_id,
    open_record_index,
    partition_of_group,
)
from drawstring.model.files import FileSlice
from drawstring.query.planner import snapshot_scan
from drawstring.query.table_state import TableFacts
from tests.support.golden import unpack

GLOBAL = ("v6_idx_record_level", "v8_idx_record_level", "v9_idx_record_level", "v9_idx_secondary")
PARTITIONED = "v9_idx_record_level_partitioned"
FactsOf = Callable[[str], TableFacts]
Places = dict[str, tuple[str, str]]


def index_of(facts: TableFacts) -> RecordIndex:
    index = open_record_index(facts.storage, facts.config, facts.timeline, SteppingClock())
    assert index is not None
    return index


def places_of(facts: TableFacts) -> Places:
    """Return partition and file group of each key, as the rows of the table say."""
    rows = snapshot_scan(facts).to_arrow().to_pylist()
    return {
        row["_hoodie_record_key"]: (row["_hoodie_partition_path"], row["_hoodie_file_name"].partition("_")[0])
        for row in rows
    }


def found(index: RecordIndex, keys: list[str], partitions: list[str]) -> Places:
    rows = index.locations(pa.array(keys, pa.string()), partitions).to_pylist()
    assert len(rows) == len({row["key"] for row in rows})
    return {row["key"]: (row["partition"], row["file_id"]) for row in rows}


@pytest.mark.parametrize("name", [*GLOBAL, PARTITIONED])
def test_keys_are_found_where_the_rows_are(name: str, facts_of: FactsOf) -> None:
    facts = facts_of(name)
    index, places = index_of(facts), places_of(facts)
    assert index.is_partitioned == (name == PARTITIONED)
    partitions = facts.view.partitions()
    assert found(index, [*places, "nobody", *places], partitions) == places
    key = min(places)
    assert found(index, [key], partitions) == {key: places[key]}
    assert found(index, ["nobody", ""], partitions) == {}
    assert found(index, [], partitions) == {}
    whole = [
        row
        for path in partitions[: 3 if index.is_partitioned else 1]
        for shard in index.shards(None, path)
        for batch in index.read(shard)
        for row in batch.to_pylist()
    ]
    assert {row["key"]: (row["partition"], row["file_id"]) for row in whole} == places
    assert candidate_groups(index, [key, "nobody"], partitions) == {places[key]}


def test_a_partition_of_its_own_has_its_own_keys(facts_of: FactsOf) -> None:
    facts = facts_of(PARTITIONED)
    index, places = index_of(facts), places_of(facts)
    assert found(index, list(places), ["p1"]) == {key: at for key, at in places.items() if at[0] == "p1"}
    assert found(index, list(places), ["p9"]) == {}


@pytest.mark.parametrize(
    ("partition", "file_id"),
    [
        (None, "record-index-0003-0"),
        ("p0", "record-index-p0-0003-0"),
        ("", "record-index--0003-0"),
        ("dt=2024-01-02/city=a_b c", "record-index-dt%3D2024%2D01%2D02%2Fcity%3Da%5Fb c-0003-0"),
    ],
)
def test_the_id_of_a_file_group_tells_its_partition(partition: str | None, file_id: str) -> None:
    assert group_id(3, partition) == file_id
    assert partition_of_group(file_id) == partition


@pytest.fixture
def files_read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The slices whose keys a write reads to find records."""
    read: list[str] = []

    class Noted(ReadKeys):
        def __call__(self, file_slice: FileSlice) -> Iterator[pa.RecordBatch]:
            read.append(file_slice.file_id)
            return ReadKeys.__call__(self, file_slice)

    monkeypatch.setattr(tag_context, "ReadKeys", Noted)
    return read


def rows_of(table: drawstring.Table) -> pa.Table:
    return table.scan().to_arrow().select(["id", "name", "part", "price", "ts"])


def changed(rows: pa.Table, parts: dict[str, str] | None = None) -> pa.Table:
    """Return some rows with a later time, moved to other partitions, and one new row."""
    picked = rows.slice(0, 5).to_pylist()
    for row in picked:
        row["ts"] += 100
        row["part"] = (parts or {}).get(row["part"], row["part"])
    return pa.Table.from_pylist([*picked, {**picked[0], "id": 999}], rows.schema)


def content(table: drawstring.Table) -> list[tuple[Any, ...]]:
    names = ["_hoodie_record_key", "_hoodie_partition_path", "ts"]
    return sorted(tuple(row.values()) for row in table.scan().to_arrow().select(names).to_pylist())


@pytest.mark.parametrize("name", ["v8_idx_record_level", "v9_idx_record_level", PARTITIONED])
def test_an_upsert_by_the_record_index_reads_no_keys_of_the_table(
    name: str, tmp_path: Path, files_read: list[str]
) -> None:
    kind, simple = (
        ("RECORD_LEVEL_INDEX", "SIMPLE") if name == PARTITIONED else ("RECORD_INDEX", "GLOBAL_SIMPLE")
    )
    (tmp_path / "other").mkdir()
    by_index, by_files = (drawstring.open(unpack(name, path)) for path in (tmp_path, tmp_path / "other"))
    rows = changed(rows_of(by_index))
    by_files.upsert(rows, options={"hoodie.index.type": simple})
    assert files_read
    files_read.clear()
    by_index.upsert(rows, options={"hoodie.index.type": kind})
    assert not files_read
    assert content(by_index) == content(by_files)
    assert len(content(by_index)) == rows_of(drawstring.open(unpack(name, tmp_path / "other2"))).num_rows + 1


@pytest.mark.parametrize("moves", ["true", "false"])
def test_records_that_move_are_read_and_no_others(tmp_path: Path, moves: str, files_read: list[str]) -> None:
    (tmp_path / "other").mkdir()
    by_index, by_files = (
        drawstring.open(unpack("v9_idx_record_level", path)) for path in (tmp_path, tmp_path / "other")
    )
    rows = changed(rows_of(by_index), {"p0": "p1"})
    by_files.upsert(
        rows,
        options={"hoodie.index.type": "GLOBAL_SIMPLE", "hoodie.simple.index.update.partition.path": moves},
    )
    files_read.clear()
    by_index.upsert(
        rows,
        options={"hoodie.index.type": "RECORD_INDEX", "hoodie.record.index.update.partition.path": moves},
    )
    assert len(files_read) == (1 if moves == "true" else 0)
    assert content(by_index) == content(by_files)


def test_a_table_without_the_index_is_looked_through(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = drawstring.open(unpack("v9_cow_ops", tmp_path))
    before = content(table)
    rows = table.scan().to_arrow()
    rows = rows.select([name for name in rows.schema.names if not name.startswith("_hoodie")])
    table.upsert(rows, options={"hoodie.index.type": "RECORD_INDEX"})
    assert content(table) == before
    assert "has no record index yet" in caplog.text


def test_the_other_kind_of_record_index_is_refused(tmp_path: Path) -> None:
    table = drawstring.open(unpack("v9_idx_record_level", tmp_path))
    with pytest.raises(InvalidError, match="The record index of the table is global"):
        table.upsert(changed(rows_of(table)), options={"hoodie.index.type": "RECORD_LEVEL_INDEX"})
