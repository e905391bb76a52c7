"""Versions of metadata records become one, as Apache Hudi's payload merges them one by one."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drawstring.metadata.column_stats_record import combined
from drawstring.metadata.merging import listed_after, listed_files, newest
from drawstring.metadata.table import IS_REMOVED, Kind, record_schema

Row = dict[str, Any]
NOTHING: dict[str, None] = {}


def table(kind: Kind, rows: list[Row]) -> pa.Table:
    schema = record_schema(kind).append(pa.field(IS_REMOVED, pa.bool_()))
    return pa.Table.from_pylist([{IS_REMOVED: False, **row} for row in rows], schema)


infos = st.dictionaries(st.sampled_from("abc"), st.tuples(st.integers(1, 9), st.booleans()), max_size=3)
versions = st.lists(st.tuples(st.sampled_from("pqr"), st.none() | infos), max_size=12)


@given(versions, st.integers(0, 12))
def test_files_are_those_that_remain_after_all_versions(history: list[tuple[str, Any]], first: int) -> None:
    live: dict[tuple[str, str], int] = {}
    rows: list[Row] = []
    for key, changes in history:
        rows.append({"key": key, "type": 2, "filesystemMetadata": None, IS_REMOVED: changes is None})
        if changes is None:
            live = {place: size for place, size in live.items() if place[0] != key}
            continue
        rows[-1]["filesystemMetadata"] = [
            (name, {"size": 0 if gone else size, "isDeleted": gone}) for name, (size, gone) in changes.items()
        ]
        for name, (size, gone) in changes.items():
            before = live.pop((key, name), 0)
            if not gone:
                live[key, name] = max(before, size)

    found = listed_files(table(Kind.FILES, rows))
    assert [((row["key"], row["name"]), row["size_bytes"]) for row in found.to_pylist()] == sorted(
        live.items()
    )
    before = listed_files(table(Kind.FILES, rows[:first]))
    for few in (0, 10):
        assert listed_after(before, table(Kind.FILES, rows[first:]), few).equals(found)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=9))
def test_the_newest_version_of_a_key_wins(history: list[tuple[str, bool]]) -> None:
    rows = [{"key": key, "type": at, IS_REMOVED: gone} for at, (key, gone) in enumerate(history)]
    last = {row["key"]: row for row in rows}

    found = newest(table(Kind.RECORD_INDEX, rows)).to_pylist()
    assert [(row["key"], row["type"]) for row in found] == sorted(
        (key, row["type"]) for key, row in last.items() if not row[IS_REMOVED]
    )


def statistics(low: Row | None, high: Row | None, count: int, **others: Any) -> Row:
    content = {
        "fileName": "f",
        "columnName": "c",
        "minValue": low,
        "maxValue": high,
        "valueCount": count,
        "nullCount": 1,
        "totalSize": 10,
        "totalUncompressedSize": None,
        "isDeleted": False,
        "isTightBound": False,
        **others,
    }
    return {"key": "k", "type": 3, "ColumnStatsMetadata": content}


def merged(*rows: Row) -> Row | None:
    found = combined(table(Kind.STATISTICS, [{"key": "a", "type": 3}, *rows])).to_pylist()
    assert found[0]["key"] == "a"
    return found[1]["ColumnStatsMetadata"] if len(found) > 1 else None


def bounds(found: Row | None) -> tuple[Any, Any]:
    assert found is not None
    return tuple(
        next((each for each in (found[name] or NOTHING).values() if each is not None), NOTHING).get("value")
        for name in ("minValue", "maxValue")
    )


def integer(value: int) -> Row:
    return {"member1": {"value": value}}


def test_statistics_of_further_rows_of_a_file_are_combined() -> None:
    found = merged(
        statistics(integer(5), integer(7), 2),
        statistics(integer(3), integer(6), 4),
        statistics(None, None, 1),
    )
    assert bounds(found) == (3, 7)
    assert found is not None
    assert (found["valueCount"], found["nullCount"], found["totalSize"]) == (7, 3, 30)


@pytest.mark.parametrize("is_first_deleted", [True, False])
def test_a_deletion_is_not_combined(is_first_deleted: bool) -> None:
    gone = statistics(None, None, -1, isDeleted=True)
    live = statistics(integer(3), integer(6), 4)
    found = merged(gone, live) if is_first_deleted else merged(live, gone)
    assert found is not None
    assert found["valueCount"] == (4 if is_first_deleted else -1)


def test_what_a_delete_block_removed_is_not_combined() -> None:
    removed = {"key": "k", "type": 3, IS_REMOVED: True}
    one, two = statistics(integer(1), integer(1), 1), statistics(integer(2), integer(2), 1)
    assert bounds(merged(one, two, removed, two)) == (2, 2)
    assert merged(one, two, removed) is None


def test_tight_bounds_of_a_partition_replace_others() -> None:
    wide = statistics(integer(1), integer(9), 9) | {"type": 6}
    tight = statistics(integer(4), integer(5), 2, isTightBound=True) | {"type": 6}
    assert bounds(merged(wide, tight)) == (4, 5)
    assert bounds(merged(tight, wide)) == (1, 9)


def test_decimals_are_compared_as_numbers_and_texts_by_their_bytes() -> None:
    kind = {"typeOrdinal": 10, "additionalInfo": "10,2"}
    minus_one, two = {"member5": {"value": b"\xff"}}, {"member5": {"value": b"\x02"}}
    found = merged(
        statistics(two, two, 1, valueType=kind), statistics(minus_one, minus_one, 1, valueType=kind)
    )
    assert bounds(found) == (b"\xff", b"\x02")
    low, high = {"member6": {"value": "￿"}}, {"member6": {"value": "😀"}}
    assert bounds(merged(statistics(high, high, 1), statistics(low, low, 1))) == ("￿", "😀")


def test_arrays_are_compared_item_by_item() -> None:
    one, two = ({"member12": {"wrappedValues": [integer(1), integer(at)]}} for at in (5, 2))
    found = merged(statistics(one, one, 1), statistics(two, two, 1))
    assert found is not None
    assert found["minValue"]["member12"]["wrappedValues"][1]["member1"]["value"] == 2
