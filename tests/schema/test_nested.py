"""Fields that must not be null below structs that are."""

from __future__ import annotations

import io
from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from drawstring.schema.evolution import replace_hidden_nulls

STRUCT = pa.struct(
    [
        pa.field("n", pa.int32(), nullable=False),
        pa.field("t", pa.string(), nullable=False),
        pa.field("l", pa.list_(pa.string()), nullable=False),
        pa.field("m", pa.map_(pa.string(), pa.int32()), nullable=False),
        pa.field(
            "s", pa.struct([pa.field("x", pa.bool_(), nullable=False), ("y", pa.date32())]), nullable=False
        ),
        ("u", pa.float64()),
    ]
)
VALUE = {"n": 7, "t": "t", "l": ["x", None], "m": [("k", 1)], "s": {"x": True, "y": None}, "u": None}
VALUES = [None, VALUE, None, {**VALUE, "n": 9}, None]


def by_take() -> pa.Array:
    """Return the values with nulls at every depth where the struct is null, as Arrow makes them."""
    there = pa.array([value for value in VALUES if value], STRUCT)
    return there.take(pa.array([None, 0, None, 1, None], pa.int32()))


def in_list(values: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array([0, 2, None, 5]), values, type=pa.list_(values.type))


def in_map(values: pa.Array) -> pa.Array:
    keys = pa.array(list("abcde"))
    return pa.MapArray.from_arrays([0, 2, 2, 5], keys, values, type=pa.map_(pa.string(), values.type))


def in_struct(values: pa.Array) -> pa.Array:
    return pa.StructArray.from_arrays([values], fields=[pa.field("v", values.type)])


def from_parquet(values: pa.Array) -> pa.ChunkedArray:
    kept = io.BytesIO()
    pq.write_table(pa.table([values], schema=pa.schema([("c", values.type)])), kept, store_schema=False)
    return pq.read_table(kept).column("c")


@pytest.mark.parametrize("around", [lambda values: values, in_list, in_map, in_struct])
@pytest.mark.parametrize("start", [0, 1])
def test_what_is_settled_is_the_same_and_goes_into_parquet(
    around: Callable[[pa.Array], pa.Array], start: int
) -> None:
    values = around(by_take())[start:]
    with pytest.raises(pa.ArrowInvalid, match="non-nullable"):
        from_parquet(values)
    replaced = replace_hidden_nulls(values)
    replaced.validate(full=True)
    assert replaced.to_pylist() == values.to_pylist()
    assert from_parquet(replaced).to_pylist() == values.to_pylist()


def test_null_rows_below_two_structs_are_settled() -> None:
    outer = pa.struct([pa.field("s", STRUCT, nullable=False)])
    hidden = pa.StructArray.from_arrays([by_take()], fields=outer.fields, mask=by_take().is_null())
    assert from_parquet(replace_hidden_nulls(hidden)).to_pylist() == [
        value and {"s": value} for value in VALUES
    ]


@pytest.mark.parametrize("required", [True, False])
def test_a_null_of_a_struct_that_is_there_stays_an_error(required: bool) -> None:
    inner = pa.struct([pa.field("n", pa.int32(), nullable=False)])
    values = pa.array([{"s": {"n": None}}, None], pa.struct([pa.field("s", inner, nullable=not required)]))
    with pytest.raises(pa.ArrowInvalid, match="non-nullable"):
        from_parquet(replace_hidden_nulls(values))


def test_a_struct_that_must_be_there_is_not_made_up() -> None:
    inner = pa.struct([pa.field("n", pa.int32(), nullable=False)])
    missing = pa.array([None, {"n": 1}], inner).take(pa.array([None, 1], pa.int32()))
    values = pa.StructArray.from_arrays([missing], fields=[pa.field("s", inner, nullable=False)])
    with pytest.raises(pa.ArrowInvalid, match="non-nullable"):
        from_parquet(replace_hidden_nulls(values))


def test_types_without_such_fields_are_left_alone() -> None:
    values = pa.array([None, {"a": [1]}], pa.struct([("a", pa.list_(pa.int32()))]))
    assert replace_hidden_nulls(values) is values
