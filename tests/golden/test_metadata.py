"""Metadata tables that real Hudi wrote: every record, and what keys and contents say of the table."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import drawstring
from drawstring.base.clock import SteppingClock
from drawstring.base.errors import CorruptTableError, InvalidError, UnsupportedError
from drawstring.metadata.reader import read_rows
from drawstring.metadata.record_tables import contents, records, summary
from drawstring.metadata.table import MetadataTable, file_hash, name_hash, open_metadata_table, partition_hash
from drawstring.query.planner import snapshot_scan
from drawstring.query.table_state import TableFacts
from tests.support.golden import WITH_METADATA, expected, unpack
from tests.support.golden_rows import in_order, rows_of

FactsOf = Callable[[str], TableFacts]
OpenMetadata = Callable[[str], MetadataTable]
Row = dict[str, Any]


@pytest.fixture
def metadata_of(facts_of: FactsOf) -> OpenMetadata:
    def opened(name: str) -> MetadataTable:
        facts = facts_of(name)
        return open_metadata_table(facts.storage, facts.config, facts.timeline, SteppingClock())

    return opened


def stored(table: MetadataTable, partition: str) -> list[Row]:
    """Return the merged records of a partition as real Hudi shows them."""
    rows = records(table, partition)
    if partition != "files":
        return rows_of(rows)
    infos: dict[str, list[Any]] = {}
    for row in rows.to_pylist():
        info = {"size": row["size_bytes"], "isDeleted": False}
        infos.setdefault(row["key"], []).append([row["name"], info])
    return [
        {"key": key, "type": 1 if key == "__all_partitions__" else 2, "filesystemMetadata": pairs}
        for key, pairs in infos.items()
    ]


def given(rows: list[Row]) -> list[Row]:
    return [{name: value for name, value in row.items() if value is not None} for row in rows]


def shown(root: Path, partition: str | None = None) -> list[Row]:
    rows: list[Row] = drawstring.open(root).inspect.metadata(partition).to_pylist()
    return rows


@pytest.mark.parametrize("name", WITH_METADATA)
def test_every_record_is_what_real_hudi_read(name: str, metadata_of: OpenMetadata) -> None:
    table = metadata_of(name)
    found = [row for partition in table.ready for row in stored(table, partition)]
    assert in_order(given(found)) == in_order(given(expected(name)["metadata_table"]))


@pytest.mark.parametrize("name", WITH_METADATA)
def test_files_lists_what_is_stored(name: str, facts_of: FactsOf, metadata_of: OpenMetadata) -> None:
    facts = facts_of(name)
    listed = {
        (row["partition"], row["file"], row["size_bytes"])
        for row in contents(metadata_of(name), "files", "UTC").to_pylist()
    }
    stored = {
        (partition, status.name, status.size_bytes)
        for partition in facts.view.partitions()
        for status in facts.storage.list_files(partition)
        if "partition_metadata" not in status.name
    }
    assert listed == stored


@pytest.mark.parametrize("name", WITH_METADATA)
def test_the_keys_of_statistics_and_filters_are_hashes_of_what_they_describe(
    name: str, metadata_of: OpenMetadata
) -> None:
    table = metadata_of(name)
    for partition in table.ready:
        if partition.startswith(("column_stats", "partition_stats", "bloom_filters", "expr_index")):
            keys = sorted(records(table, partition).column("key").to_pylist())
            rows = contents(table, partition, "UTC").to_pylist()
            assert keys == sorted(key_of(row, partition) for row in rows)


def key_of(row: Row, partition: str) -> str:
    hashed = partition_hash(row["partition"])
    if "column" not in row:
        return hashed + file_hash(row["file"])
    if row["file"] is not None:
        return name_hash(row["column"]) + hashed + file_hash(row["file"])
    is_expression = partition.startswith("expr_index")
    return name_hash(row["column"]) + (name_hash("__partition_stat__") if is_expression else "") + hashed


@pytest.mark.parametrize(
    "name", [name for name in WITH_METADATA if "record_level" in name or "second" in name]
)
def test_the_record_index_knows_where_every_row_is(
    name: str, facts_of: FactsOf, metadata_of: OpenMetadata
) -> None:
    rows = snapshot_scan(facts_of(name)).to_arrow().to_pylist()
    places = {
        row["_hoodie_record_key"]: (row["_hoodie_partition_path"], row["_hoodie_file_name"].partition("_")[0])
        for row in rows
    }
    indexed = contents(metadata_of(name), "record_index", "UTC").to_pylist()
    assert {row["key"] for row in indexed} == places.keys()
    for row in indexed:
        assert row["partition"] == places[row["key"]][0]
        assert row["file_id"] == places[row["key"]][1] or places[row["key"]][1].startswith(row["file_id"])
    first = {row["instant"] for row in indexed}
    assert first <= {each["requested"] for each in expected(name)["instants"]}


@pytest.mark.parametrize("name", [name for name in WITH_METADATA if "second" in name])
def test_the_secondary_index_has_the_keys_of_every_value(
    name: str, facts_of: FactsOf, metadata_of: OpenMetadata
) -> None:
    rows = snapshot_scan(facts_of(name)).to_arrow().to_pylist()
    indexed = contents(metadata_of(name), "secondary_index_idx_sec", "UTC").to_pylist()
    assert {(row["value"], row["key"]) for row in indexed} == {
        (row["name"], row["_hoodie_record_key"]) for row in rows
    }


@pytest.mark.parametrize("name", WITH_METADATA)
def test_a_lookup_finds_what_a_scan_finds(name: str, metadata_of: OpenMetadata) -> None:
    table = metadata_of(name)
    for partition in table.ready:
        rows = contents(table, partition, "UTC").to_pylist()
        by = looked_up_by(partition, rows)
        names = list(dict.fromkeys(row[by] for row in rows))
        assert contents(table, partition, "UTC", names).to_pylist() == rows
        some = names[::3]
        found = contents(table, partition, "UTC", [*some, "none of them"]).to_pylist()
        assert found == [row for row in rows if row[by] in some]


def looked_up_by(partition: str, rows: list[Row]) -> str:
    columns = {"record_index": "key", "files": "partition", "bloom_filters": "partition"}
    is_filter = partition.startswith("expr_index") and "column" not in rows[0]
    default = "partition" if is_filter else "column"
    return columns.get(partition, "value" if partition.startswith("secondary") else default)


def test_a_lookup_in_the_record_index_reads_one_file_group(
    metadata_of: OpenMetadata, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = metadata_of("v9_idx_record_level")
    read: list[str] = []
    monkeypatch.setattr(
        "drawstring.metadata.record_tables.read_rows",
        lambda table, each, *others: read.append(each.file_id) or read_rows(table, each, *others),
    )
    assert contents(table, "record_index", "UTC", ["10"]).num_rows == 1
    assert len(read) == 1


def test_all_partitions_of_the_metadata_table_are_listed(metadata_of: OpenMetadata) -> None:
    rows = {row["partition"]: row for row in summary(metadata_of("v9_idx_secondary")).to_pylist()}
    assert [*rows] == ["column_stats", "files", "partition_stats", "record_index", "secondary_index_idx_sec"]
    assert rows["record_index"]["file_groups"] == 10
    assert rows["files"] == {
        "partition": "files",
        "file_groups": 1,
        "base_files": 1,
        "log_files": 4,
        "size_bytes": 53553,
    }


def test_statistics_show_bounds_as_text(metadata_of: OpenMetadata) -> None:
    rows = contents(metadata_of("v9_mdt_cow"), "partition_stats", "UTC").to_pylist()
    by_column = {row["column"]: row for row in rows if row["partition"] == "p0"}
    assert by_column["price"]["type"] == "DOUBLE"
    prices = [row["price"] for row in expected("v9_mdt_cow")["snapshot"] if row["part"] == "p0"]
    assert float(by_column["price"]["min"]) <= min(prices) <= max(prices) <= float(by_column["price"]["max"])
    assert by_column["part"]["min"] == by_column["part"]["max"] == "p0"


@pytest.fixture
def table_root(tmp_path: Path) -> Path:
    return unpack("v9_mdt_cow", tmp_path)


def last_write(root: Path) -> tuple[Path, str]:
    completed = max(root.glob(".hoodie/timeline/*_*.commit"))
    return completed, completed.name.partition("_")[0]


def test_what_a_write_added_before_it_died_does_not_count(table_root: Path) -> None:
    """The writer died after the delta commit in the metadata table, before its own completed file."""
    completed, instant = last_write(table_root)
    before = shown(table_root, "files")
    completed.unlink()

    after = shown(table_root, "files")
    assert [row for row in before if instant not in row["file"]] == after != before


def test_a_table_without_a_metadata_table_says_so(tmp_path: Path) -> None:
    with pytest.raises(InvalidError, match="has no metadata table"):
        shown(unpack("v9_cow_ops", tmp_path))


def test_an_unknown_partition_names_those_there_are(table_root: Path) -> None:
    with pytest.raises(InvalidError, match=r"no partition 'file'\. Use one of bloom_filters, column_stats"):
        shown(table_root, "file")
    with pytest.raises(InvalidError, match="Keys are looked up in one partition"):
        drawstring.open(table_root).inspect.metadata(keys="p0")


def test_a_partition_that_is_being_built_is_refused(table_root: Path) -> None:
    properties = table_root / ".hoodie/hoodie.properties"
    text = properties.read_text().replace("partitions.inflight=", "partitions.inflight=record_index")
    kept = [line for line in text.splitlines(keepends=True) if "checksum" not in line]
    properties.write_text("".join(kept))
    with pytest.raises(InvalidError, match="'record_index' of the metadata table is still being built"):
        shown(table_root, "record_index")
    assert "record_index" not in {row["partition"] for row in shown(table_root)}


def test_a_write_of_drawstring_keeps_what_the_metadata_table_has(table_root: Path) -> None:
    table = drawstring.open(table_root)
    table.delete(where="id = 1")
    assert {"bloom_filters", "column_stats", "files"} <= {row["partition"] for row in shown(table_root)}
    with pytest.raises(InvalidError, match="has no partition 'record_index'"):
        table.inspect.metadata("record_index")


def newest_file(root: Path, pattern: str) -> Path:
    return max(path for path in root.glob(f".hoodie/metadata/{pattern}") if path.suffix != ".crc")


@pytest.mark.parametrize("pattern", ["files/.files-*.log.1_[1-9]*", "files/*.hfile"])
def test_a_missing_file_is_named(table_root: Path, pattern: str) -> None:
    gone = newest_file(table_root, pattern)
    gone.unlink()
    with pytest.raises(CorruptTableError, match="metadata table is damaged") as caught:
        shown(table_root, "files")
    assert gone.name in str(caught.value)
    assert "Run `drawstring services repair`" in str(caught.value)


@pytest.mark.parametrize("kept", [0, 100, -50])
@pytest.mark.parametrize("pattern", ["files/.files-*.log.1_[1-9]*", "files/*.hfile"])
def test_a_torn_file_is_named(table_root: Path, pattern: str, kept: int) -> None:
    torn = newest_file(table_root, pattern)
    torn.write_bytes(torn.read_bytes()[:kept])
    with pytest.raises(CorruptTableError, match="metadata table is damaged") as caught:
        shown(table_root, "files")
    assert torn.name in str(caught.value)


def test_lost_properties_or_timeline_are_damage(table_root: Path) -> None:
    timeline = table_root / ".hoodie/metadata/.hoodie/timeline"
    shutil.rmtree(timeline)
    with pytest.raises(CorruptTableError):
        shown(table_root, "files")
    shutil.rmtree(table_root / ".hoodie/metadata")
    with pytest.raises(CorruptTableError, match="metadata table is damaged"):
        shown(table_root)


def test_a_changed_byte_of_a_block_is_refused_or_read(table_root: Path) -> None:
    path = newest_file(table_root, "files/*.hfile")
    whole = path.read_bytes()
    refused = 0
    for place in range(0, len(whole), 97):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        try:
            json.dumps(shown(table_root, "files"))
        except CorruptTableError:
            refused += 1
    assert refused


def test_a_partition_without_file_groups_is_empty(metadata_of: OpenMetadata) -> None:
    names = ("secondary_index_none", "expr_index_none", "record_index_none")
    table = replace(metadata_of("v9_idx_record_level"), ready=("files", *names))
    assert contents(table, "secondary_index_none", "UTC").to_pydict() == {"value": [], "key": []}
    assert contents(table, "expr_index_none", "UTC").num_rows == 0
    with pytest.raises(UnsupportedError, match="'record_index_none' of the metadata table is of a kind"):
        contents(table, "record_index_none", "UTC")
