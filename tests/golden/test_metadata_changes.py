"""Changes of a metadata table that the golden ones do not have: deletions, tombstones, further statistics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import drawstring
from drawstring.metadata.table import file_hash, name_hash, partition_hash
from tests.support.golden import unpack
from tests.support.hfiles import reader
from tests.support.metadata_writes import Addition, add_delta_commit, wrapped

LATER = "20991231000000000"
LAST = "20991231000001000"
LOG = ".part.log.1_0-0-0"
Row = dict[str, Any]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return unpack("v9_idx_secondary", tmp_path)


def shown(root: Path, partition: str, keys: list[str] | None = None) -> list[Row]:
    rows: list[Row] = drawstring.open(root).inspect.metadata(partition, keys=keys).to_pylist()
    return rows


def infos(**sizes: int | None) -> Row:
    return {
        "type": 2,
        "filesystemMetadata": {
            name: {"size": size or 0, "isDeleted": size is None} for name, size in sizes.items()
        },
    }


def test_a_clean_removes_names_and_a_partition(root: Path) -> None:
    before = shown(root, "files")
    gone = next(row["file"] for row in before if row["partition"] == "part=p0")
    changes = {"part=p0": infos(**{gone: None, "new.parquet": 7})}
    add_delta_commit(root, LATER, [Addition("files", "files-0000-0", changes, deletes=["part=p1"])])

    after = shown(root, "files")
    assert {row["partition"] for row in after} == {"part=p0", "part=p2"}
    assert gone not in {row["file"] for row in after}
    assert {"partition": "part=p0", "file": "new.parquet", "size_bytes": 7} in after
    assert len(after) == len([row for row in before if row["partition"] != "part=p1"])
    add_delta_commit(root, LAST, [Addition("files", "files-0000-0", {"part=p1": infos(again=5)})])
    assert {"partition": "part=p1", "file": "again", "size_bytes": 5} in shown(root, "files")
    assert len(shown(root, "files", ["part=p1"])) == 1


def test_a_deleted_key_leaves_the_record_index_until_it_is_written_again(root: Path) -> None:
    (row,) = shown(root, "record_index", ["12"])
    every = [f"record-index-{number:04}-0" for number in range(10)]
    add_delta_commit(root, LATER, [Addition("record_index", each, {}, deletes=["12"]) for each in every])
    assert shown(root, "record_index", ["12", "11"]) == shown(root, "record_index", ["11"])
    assert "12" not in {each["key"] for each in shown(root, "record_index")}
    raw = {
        "type": 5,
        "recordIndexMetadata": {
            "partitionName": "part=p2",
            "fileIdHighBits": -1,
            "fileIdLowBits": -1,
            "fileIndex": -1,
            "fileId": "plain-id",
            "instantTime": 0,
            "fileIdEncoding": 1,
            "position": 3,
        },
    }
    add_delta_commit(root, LAST, [Addition("record_index", each, {"12": raw}) for each in every])
    (after,) = shown(root, "record_index", ["12"])
    assert after == {
        "key": "12",
        "partition": "part=p2",
        "file_id": "plain-id",
        "instant": "19700101000000000",
        "position": 3,
    }
    assert after != row


def test_a_changed_value_has_a_tombstone_in_the_secondary_index(root: Path) -> None:
    partition = "secondary_index_idx_sec"
    every = [f"secondary-index-idx-sec-{number:04}-0" for number in range(10)]
    changes = {
        "name-2-v1$2": {"type": 7, "SecondaryIndexMetadata": {"isDeleted": True}},
        "a\\$b$2": {"type": 7, "SecondaryIndexMetadata": {"isDeleted": False}},
        "\0$99": {"type": 7, "SecondaryIndexMetadata": {"isDeleted": False}},
    }
    old_group = next(each for each in every if has(root, partition, each, "name-2-v1$2"))
    additions = [Addition(partition, old_group, changes)]
    add_delta_commit(root, LATER, additions)
    assert shown(root, partition, ["name-2-v1"]) == []
    assert shown(root, partition, ["a$b"]) == [{"value": "a$b", "key": "2"}]
    assert {"value": None, "key": "99"} in shown(root, partition)
    assert len(shown(root, partition)) == 14


def has(root: Path, partition: str, group: str, key: str) -> bool:
    files = (root / f".hoodie/metadata/{partition}").glob(f"*{group}*.hfile")
    return any(key in keys_of(path) for path in files)


def keys_of(path: Path) -> set[str]:
    return {key for each in reader(path.read_bytes()).scan() for key in each.keys.to_pylist()}


def statistics(low: Any, high: Any, count: int, **others: Any) -> Row:
    content = {
        "fileName": LOG,
        "columnName": "price",
        "minValue": low,
        "maxValue": high,
        "valueCount": count,
        "nullCount": 0,
        "totalSize": 1,
        "totalUncompressedSize": 2,
        "isDeleted": False,
        "isTightBound": False,
        "valueType": {"typeOrdinal": 10, "additionalInfo": "9,2"},
        **others,
    }
    return {"type": 3, "ColumnStatsMetadata": content}


def test_statistics_of_a_log_file_grow_with_it_and_go_with_it(root: Path) -> None:
    key = name_hash("price") + partition_hash("part=p1") + file_hash(LOG)
    first = statistics(wrapped("Bytes", b"\x64"), wrapped("Bytes", b"\x64"), 1)
    more = statistics(wrapped("Bytes", b"\xff"), wrapped("Bytes", b"\x01\x00"), 2)
    group = "col-stats-0000-0"
    add_delta_commit(root, LATER, [Addition("column_stats", group, {key: first})])
    add_delta_commit(root, LAST, [Addition("column_stats", group, {key: more})])
    (row,) = (each for each in shown(root, "column_stats", ["price"]) if each["file"] == LOG)
    assert row == {
        "partition": "part=p1",
        "file": LOG,
        "column": "price",
        "type": "DECIMAL",
        "min": "-0.01",
        "max": "2.56",
        "values": 3,
        "nulls": 0,
        "size_bytes": 2,
        "plain_bytes": 4,
        "is_tight": False,
    }
    gone = statistics(None, None, -1, isDeleted=True)
    add_delta_commit(root, "20991231000002000", [Addition("column_stats", group, {key: gone})])
    assert LOG not in {each["file"] for each in shown(root, "column_stats")}


def test_names_that_the_list_of_files_lacks_are_null(root: Path) -> None:
    key = name_hash("price") + partition_hash("no such partition") + file_hash(LOG)
    low = wrapped("Bytes", b"\x01")
    add_delta_commit(
        root, LATER, [Addition("column_stats", "col-stats-0001-0", {key: statistics(low, low, 1)})]
    )
    (row,) = (each for each in shown(root, "column_stats") if each["file"] == LOG)
    assert row["partition"] is None
