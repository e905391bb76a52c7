"""Finding columns by id in files from before a rename or a drop."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from drawstring.base.errors import CorruptTableError
from drawstring.config.table.schema_versions import SchemaHistory
from drawstring.schema.evolution import conform
from drawstring.schema.internal_schema import (
    decode_history,
    encode_history,
    stored_columns,
    with_query_names,
)


def record(*fields: tuple[int, str, Any]) -> dict[str, Any]:
    return {
        "type": "record",
        "fields": [{"id": at, "name": name, "optional": True, "type": kind} for at, name, kind in fields],
    }


def array(at: int, element: Any) -> dict[str, Any]:
    return {"type": "array", "element_id": at, "element": element, "element_optional": True}


def mapping(at: int, value: Any) -> dict[str, Any]:
    return {"type": "map", "key_id": at, "key": "string", "value_id": at + 1, "value": value}


OLD = record(
    (0, "key", "string"),
    (1, "n", "int"),
    (2, "gone", "string"),
    (3, "st", record((4, "a", "int"), (5, "b", "int"))),
    (6, "items", array(7, record((8, "x", "int")))),
    (9, "by_name", mapping(10, record((12, "y", "int")))),
)
NEW = record(
    (1, "number", "long"),
    (13, "gone", "long"),
    (3, "place", record((5, "a", "int"), (14, "c", "string"))),
    (6, "items", array(7, record((8, "x2", "int")))),
    (9, "by_name", mapping(10, record((12, "y2", "int")))),
    (0, "key", "string"),
)
HISTORY = json.dumps({"schemas": [{"version_id": 20, **NEW}, {"version_id": 0, **OLD}]})
ROWS = pa.record_batch(
    {
        "key": pa.array(["k", "l", None]),
        "n": pa.array([1, None, 3], pa.int32()),
        "gone": pa.array(["was text", None, None]),
        "st": pa.array([{"a": 1, "b": 2}, None, {"a": None, "b": None}]),
        "items": pa.array([[{"x": 1}, None], None, []], pa.list_(pa.struct([("x", pa.int64())]))),
        "by_name": pa.array(
            [[("p", {"y": 5})], None, []], pa.map_(pa.string(), pa.struct([("y", pa.int64())]))
        ),
        "_hoodie_operation": pa.array(["I", "I", "I"]),
    }
)
ASKED = pa.schema(
    [
        ("number", pa.int64()),
        ("gone", pa.int64()),
        ("place", pa.struct([("a", pa.int32()), ("c", pa.string())])),
        ("items", pa.list_(pa.struct([("x2", pa.int64())]))),
        ("by_name", pa.map_(pa.string(), pa.struct([("y2", pa.int64())]))),
        ("key", pa.string()),
        ("_hoodie_operation", pa.string()),
    ]
)


def history(asked: int = 20) -> SchemaHistory:
    return decode_history(HISTORY).at(str(asked))


def test_renames_and_drops_are_followed_at_every_depth() -> None:
    renames = history().renames("19")
    assert renames is not None
    assert conform(with_query_names(ROWS, renames), ASKED).to_pylist() == [
        {"number": 1, "gone": None, "place": {"a": 2, "c": None}, "items": [{"x2": 1}, None],
         "by_name": [("p", {"y2": 5})], "key": "k", "_hoodie_operation": "I"},
        {"number": None, "gone": None, "place": None, "items": None, "by_name": None, "key": "l",
         "_hoodie_operation": "I"},
        {"number": 3, "gone": None, "place": {"a": None, "c": None}, "items": [], "by_name": [], "key": None,
         "_hoodie_operation": "I"},
    ]  # fmt: skip


def test_a_slice_of_rows_is_renamed_like_the_whole() -> None:
    renames = history().renames("19")
    assert renames is not None
    whole = conform(with_query_names(ROWS, renames), ASKED)
    assert (
        conform(with_query_names(ROWS.slice(1, 2), renames), ASKED).to_pylist()
        == whole.slice(1, 2).to_pylist()
    )


def test_a_struct_that_lost_all_its_fields_stays_a_struct() -> None:
    one = record((0, "st", record((1, "a", "int"))))
    other = record((0, "st", record((2, "b", "int"))))
    text = json.dumps({"schemas": [{"version_id": 2, **other}, {"version_id": 1, **one}]})
    renames = decode_history(text).renames("1")
    assert renames is not None
    rows = pa.record_batch({"st": pa.array([{"a": 1}, None])})
    asked = pa.schema([("st", pa.struct([("b", pa.int32())]))])
    assert conform(with_query_names(rows, renames), asked).to_pylist() == [
        {"st": {"b": None}},
        {"st": None},
    ]


def test_columns_are_asked_of_a_file_by_their_old_names() -> None:
    renames = history().renames("19")
    assert renames is not None
    place = pa.struct([("a", pa.int64()), ("c", pa.string())])
    asked = [
        ("number", pa.int64()),
        ("gone", pa.int64()),
        ("place", place),
        ("_hoodie_operation", pa.string()),
    ]
    stored = [("n", pa.int64()), ("st", pa.struct([("b", pa.int64())])), ("_hoodie_operation", pa.string())]
    assert stored_columns(pa.schema(asked), renames) == pa.schema(stored)


@pytest.mark.parametrize(("asked", "instant"), [(20, "20"), (20, "21"), (0, "19")])
def test_files_of_the_version_asked_for_are_read_as_they_are(asked: int, instant: str) -> None:
    assert history(asked).renames(instant) is None


def test_files_of_a_time_before_the_history_are_not_guessed_at() -> None:
    text = json.dumps({"schemas": [{"version_id": 20, **NEW}]})
    with pytest.raises(CorruptTableError, match="history begins after"):
        decode_history(text).renames("19")


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"schemas": [{}]}', '{"schemas": [{"version_id": 1}]}'])
def test_a_damaged_history_is_said(text: str) -> None:
    with pytest.raises(CorruptTableError, match="schema history cannot be read"):
        decode_history(text)


def test_a_history_is_written_as_it_was_read_and_the_newest_version_first() -> None:
    versions = json.loads(HISTORY)["schemas"]
    oldest_first = json.dumps({"schemas": versions[::-1]})
    assert json.loads(encode_history(decode_history(oldest_first))) == {"schemas": versions}
    newer = {**versions[0], "version_id": 30}
    asked = decode_history(HISTORY, json.dumps(newer))
    assert asked.requested == 30
    assert json.loads(asked.text) == newer
    assert decode_history(HISTORY).at("19").requested == 0
