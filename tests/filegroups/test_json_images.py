"""Records as JSON: what any JSON reader gets back is what was in the record."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drawstring.base.errors import UnsupportedError
from drawstring.filegroups.cdc_reader import COMPACT, SPACED, json_images, json_values
from drawstring.keygen.texts import java_text

NESTED = pa.struct([("a", pa.string()), ("b", pa.list_(pa.int64()))])
SCHEMA = pa.schema(
    [
        ("text", pa.string()),
        ("number", pa.int64()),
        ("real", pa.float64()),
        ("flag", pa.bool_()),
        ("nested", NESTED),
        ("many", pa.list_(NESTED)),
        ("pairs", pa.map_(pa.string(), pa.int32())),
    ]
)
ints = st.none() | st.integers(-(2**63), 2**63 - 1)
texts = st.none() | st.text()
nested = st.none() | st.fixed_dictionaries({"a": texts, "b": st.none() | st.lists(ints, max_size=3)})
rows = st.lists(
    st.fixed_dictionaries(
        {
            "text": texts,
            "number": ints,
            "real": st.none() | st.floats(allow_nan=False, allow_infinity=False),
            "flag": st.none() | st.booleans(),
            "nested": nested,
            "many": st.none() | st.lists(nested, max_size=3),
            "pairs": st.none() | st.dictionaries(st.text(), st.none() | st.integers(0, 9), max_size=3),
        }
    ),
    max_size=5,
)


def pruned(value: Any) -> Any:
    """Leave nulls of objects out, as the compact form does; maps and lists keep theirs."""
    if isinstance(value, dict):
        return {
            name: pruned(each) if name != "pairs" else each
            for name, each in value.items()
            if each is not None
        }
    return [pruned(each) for each in value] if isinstance(value, list) else value


@given(rows=rows, cut=st.integers(0, 2))
def test_a_record_is_what_its_json_says(rows: list[dict[str, Any]], cut: int) -> None:
    columns = {name: [row[name] for row in rows] for name in SCHEMA.names}
    columns["pairs"] = [None if each is None else list(each.items()) for each in columns["pairs"]]
    table = pa.table(columns, SCHEMA).slice(cut)
    assert [json.loads(text) for text in json_images(table, SPACED).to_pylist()] == rows[cut:]
    assert [json.loads(text) for text in json_images(table, COMPACT).to_pylist()] == pruned(rows[cut:])


def test_values_are_written_as_they_are_stored() -> None:
    table = pa.table(
        {
            "day": pa.array([dt.date(1970, 1, 3)]),
            "moment": pa.array([dt.datetime(1970, 1, 1, 0, 0, 1)], pa.timestamp("us", "UTC")),
            "price": pa.array([Decimal("12.30")], pa.decimal128(10, 2)),
            "bytes": pa.array([b"\x00\xff"]),
            "big": pa.array([1e10]),
            "none": pa.array([float("nan")]),
        }
    )
    assert json_images(table, COMPACT).to_pylist() == [
        '{"day":2,"moment":1000000,"price":12.30,"bytes":"AP8=","big":1.0E10,"none":"NaN"}'
    ]


def test_no_columns_are_an_empty_object() -> None:
    assert json_images(pa.table({"x": [1, 2]}).select([]), COMPACT).to_pylist() == ["{}", "{}"]
    assert json_images(pa.table({"x": [None, 2]}), COMPACT).to_pylist() == ["{}", '{"x":2}']


def test_a_type_without_a_text_is_named() -> None:
    table = pa.table({"x": pa.array([1], pa.duration("s"))})
    with pytest.raises(UnsupportedError, match="duration"):
        json_images(table, COMPACT)


@given(numbers=st.lists(st.none() | st.floats()), narrow=st.lists(st.none() | st.floats(width=32)))
def test_floats_have_the_texts_that_java_gives_them(
    numbers: list[float | None], narrow: list[float | None]
) -> None:
    for values in (pa.array(numbers, pa.float64()), pa.array(narrow, pa.float32())):
        texts = java_text(values, "").to_pylist()
        assert [text and text.strip('"') for text in json_values(values, COMPACT).to_pylist()] == texts
