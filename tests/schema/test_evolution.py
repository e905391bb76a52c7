"""What a write may change about a table's columns, and how rows are fitted to them."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal

import pyarrow as pa
import pytest

from drawstring.base.errors import InvalidError
from drawstring.schema.evolution import conform, evolve


def schema(**columns: pa.DataType) -> pa.Schema:
    return pa.schema(list(columns.items()))


def test_a_new_column_is_added_at_the_end_and_is_nullable() -> None:
    incoming = pa.schema([pa.field("extra", pa.int32(), nullable=False), ("id", pa.int32())])

    after = evolve(schema(id=pa.int32(), name=pa.string()), incoming)

    assert after == schema(id=pa.int32(), name=pa.string(), extra=pa.int32())


def test_a_new_column_may_be_deep_inside() -> None:
    table = schema(s=pa.struct([("a", pa.int32())]), l=pa.list_(pa.struct([("a", pa.int32())])))
    incoming = schema(
        s=pa.struct([("b", pa.string()), ("a", pa.int64())]),
        l=pa.list_(pa.struct([("a", pa.int32()), ("c", pa.date32())])),
    )

    after = evolve(table, incoming)

    assert after.field("s").type == pa.struct([("a", pa.int64()), ("b", pa.string())])
    assert after.field("l").type == pa.list_(pa.struct([("a", pa.int32()), ("c", pa.date32())]))


@pytest.mark.parametrize("kind", [pa.int32(), pa.float64(), pa.date32()])
def test_text_does_not_turn_a_column_of_numbers_or_dates_into_text(kind: pa.DataType) -> None:
    with pytest.raises(InvalidError, match=f"'c' is {re.escape(str(kind))} in the table and string"):
        evolve(pa.schema([("c", kind)]), pa.schema([("c", pa.string())]))


@pytest.mark.parametrize(
    ("table", "incoming", "after"),
    [
        (pa.int32(), pa.int64(), pa.int64()),
        (pa.int64(), pa.int32(), pa.int64()),
        (pa.int64(), pa.float64(), pa.int64()),
        (pa.int32(), pa.float32(), pa.int32()),
        (pa.float32(), pa.int64(), pa.float32()),
        (pa.float32(), pa.float64(), pa.float64()),
        (pa.string(), pa.float64(), pa.string()),
        (pa.string(), pa.binary(), pa.string()),
        (pa.binary(), pa.string(), pa.binary()),
        (pa.decimal128(5, 2), pa.decimal128(9, 2), pa.decimal128(9, 2)),
        (pa.decimal128(9, 2), pa.decimal128(5, 2), pa.decimal128(9, 2)),
        (pa.timestamp("us", "UTC"), pa.timestamp("ns", "Asia/Tokyo"), pa.timestamp("us", "UTC")),
        (pa.timestamp("us"), pa.timestamp("ms"), pa.timestamp("us")),
        (pa.int32(), pa.null(), pa.int32()),
        (pa.int32(), pa.int8(), pa.int32()),
        (
            pa.map_(pa.string(), pa.int32()),
            pa.map_(pa.string(), pa.int64()),
            pa.map_(pa.string(), pa.int64()),
        ),
    ],
)
def test_types_widen_and_never_narrow(table: pa.DataType, incoming: pa.DataType, after: pa.DataType) -> None:
    assert evolve(schema(c=table), schema(c=incoming)) == schema(c=after)


@pytest.mark.parametrize(
    ("table", "incoming"),
    [
        (pa.int32(), pa.bool_()),
        (pa.bool_(), pa.string()),
        (pa.date32(), pa.int32()),
        (pa.timestamp("us"), pa.timestamp("us", "UTC")),
        (pa.decimal128(5, 2), pa.decimal128(5, 3)),
        (pa.list_(pa.int32()), pa.int32()),
        (pa.struct([("a", pa.int32())]), pa.string()),
        (pa.list_(pa.int32()), pa.list_(pa.bool_())),
    ],
)
def test_types_that_do_not_meet_are_refused_with_both(table: pa.DataType, incoming: pa.DataType) -> None:
    with pytest.raises(InvalidError, match="'c"):
        evolve(schema(c=table), schema(c=incoming))


def test_a_missing_column_is_fine_only_when_nullable() -> None:
    table = pa.schema([("id", pa.int32()), pa.field("must", pa.int32(), nullable=False), ("may", pa.int32())])

    assert evolve(table, schema(id=pa.int32(), must=pa.int32())) == table
    with pytest.raises(InvalidError, match="'must'"):
        evolve(table, schema(id=pa.int32()))


def test_a_new_column_without_type_is_refused() -> None:
    with pytest.raises(InvalidError, match="no type"):
        evolve(schema(id=pa.int32()), schema(id=pa.int32(), n=pa.null()))


def test_rows_get_the_order_the_nulls_and_the_types_of_the_schema() -> None:
    batch = pa.record_batch({"b": pa.array([1, 2], pa.int8()), "a": ["x", None], "gone": [1, 2]})

    fitted = conform(batch, schema(a=pa.string(), new=pa.float64(), b=pa.int64()))

    assert fitted.schema == schema(a=pa.string(), new=pa.float64(), b=pa.int64())
    assert fitted.to_pylist() == [{"a": "x", "new": None, "b": 1}, {"a": None, "new": None, "b": 2}]


def test_nested_rows_are_fitted_at_every_depth_also_in_a_slice() -> None:
    rows = [
        {"s": {"a": 1, "l": [{"k": 1}, None]}, "m": {"x": 1}},
        {"s": None, "m": None},
        {"s": {"a": None, "l": []}, "m": {"y": None, "z": 3}},
        {"s": {"a": 4, "l": None}, "m": {}},
    ]
    narrow = schema(
        s=pa.struct([("a", pa.int32()), ("l", pa.list_(pa.struct([("k", pa.int32())])))]),
        m=pa.map_(pa.string(), pa.int32()),
    )
    wide = schema(
        m=pa.map_(pa.string(), pa.int64()),
        s=pa.struct(
            [("l", pa.list_(pa.struct([("n", pa.string()), ("k", pa.int64())]))), ("a", pa.float64())]
        ),
    )
    batch = pa.RecordBatch.from_pylist(
        [{"s": r["s"], "m": None if r["m"] is None else list(r["m"].items())} for r in rows], schema=narrow
    )

    fitted = conform(batch.slice(1), wide)

    fitted.validate(full=True)
    assert fitted.schema == wide
    assert fitted.to_pylist() == [
        {"m": None, "s": None},
        {"m": [("y", None), ("z", 3)], "s": {"l": [], "a": None}},
        {"m": [], "s": {"l": None, "a": 4.0}},
    ]
    first = conform(batch, wide).to_pylist()[0]
    assert first == {"m": [("x", 1)], "s": {"l": [{"n": None, "k": 1}, None], "a": 1.0}}


def test_promotions_keep_the_values() -> None:
    batch = pa.record_batch(
        {
            "i": pa.array([7, None], pa.int32()),
            "d": pa.array([dt.date(2024, 1, 15), None]),
            "s": ["text", None],
            "x": pa.array([Decimal("1.50"), None], pa.decimal128(5, 2)),
            "t": pa.array([1_700_000_000_123_456_000, None], pa.timestamp("ns", "UTC")),
            "k": pa.array(["a", None]).dictionary_encode(),
        }
    )
    target = schema(
        i=pa.string(),
        d=pa.string(),
        s=pa.binary(),
        x=pa.decimal128(9, 2),
        t=pa.timestamp("us", "UTC"),
        k=pa.string(),
    )

    fitted = conform(batch, target)

    first = fitted.to_pylist()[0]
    assert (first["i"], first["d"], first["s"], first["x"], first["k"]) == (
        "7",
        "2024-01-15",
        b"text",
        Decimal("1.50"),
        "a",
    )
    assert fitted.column("t").cast(pa.int64())[0].as_py() == 1_700_000_000_123_456
    assert all(value is None for value in fitted.to_pylist()[1].values())


def test_a_null_in_a_column_that_must_not_be_null_is_refused() -> None:
    must = pa.schema([pa.field("must", pa.int32(), nullable=False)])

    with pytest.raises(InvalidError, match=r"'must'.* 1 of 2"):
        conform(pa.record_batch({"must": pa.array([1, None], pa.int32())}), must)
    with pytest.raises(InvalidError, match="'must'"):
        conform(pa.record_batch({"other": [1, 2]}), must)


def test_a_nested_null_counts_only_below_a_value() -> None:
    inner = pa.field("s", pa.struct([pa.field("a", pa.int64(), nullable=False)]))
    given = pa.array([{"a": 1}, None], pa.struct([("a", pa.int32())]))

    fitted = conform(pa.RecordBatch.from_arrays([given], names=["s"]), pa.schema([inner]))

    assert fitted.to_pylist() == [{"s": {"a": 1}}, {"s": None}]
    bad = pa.array([{"a": None}], pa.struct([("a", pa.int32())]))
    with pytest.raises(InvalidError, match=r"'s\.a'"):
        conform(pa.RecordBatch.from_arrays([bad], names=["s"]), pa.schema([inner]))


@pytest.mark.parametrize(
    ("kind", "unit"), [(pa.timestamp("us"), pa.timestamp("ns")), (pa.time64("us"), pa.time64("ns"))]
)
def test_times_finer_than_the_column_are_refused_and_not_cut(kind: pa.DataType, unit: pa.DataType) -> None:
    fine, whole = (pa.record_batch({"t": pa.array([value], unit)}) for value in (1_500, 2_000))
    assert conform(whole, schema(t=kind)).column("t").cast(pa.int64()).to_pylist() == [2]
    with pytest.raises(InvalidError, match=r"'t' .*would lose data: 1500"):
        conform(fine, schema(t=kind))


@pytest.mark.parametrize(
    ("table", "incoming"),
    [
        (pa.int64(), pa.string()),
        (pa.float32(), pa.float64()),
        (pa.timestamp("ms"), pa.timestamp("us")),
        (pa.string(), pa.float64()),
        (pa.date32(), pa.string()),
    ],
)
def test_columns_of_keys_do_not_widen(table: pa.DataType, incoming: pa.DataType) -> None:
    with pytest.raises(InvalidError, match=r"'c' is .* in the table and .* in the records"):
        evolve(schema(c=table), schema(c=incoming), fixed=["c"])
    inside = schema(s=pa.struct([("c", table)])), schema(s=pa.struct([("c", incoming)]))
    with pytest.raises(InvalidError, match=r"'s\.c' is"):
        evolve(*inside, fixed=["s.c"])


@pytest.mark.parametrize(
    ("table", "incoming"),
    [
        (pa.int32(), pa.int64()),
        (pa.int64(), pa.float64()),
        (pa.int64(), pa.int32()),
        (pa.string(), pa.int64()),
        (pa.decimal128(5, 2), pa.decimal128(9, 2)),
    ],
)
def test_columns_of_keys_take_what_can_be_cast_to_their_type(
    table: pa.DataType, incoming: pa.DataType
) -> None:
    assert evolve(schema(c=table), schema(c=incoming), fixed=["c"]) == schema(c=table)


def test_whole_floats_go_back_to_integers_and_others_are_refused() -> None:
    fitted = conform(pa.record_batch({"n": [1.0, None, -3.0]}), schema(n=pa.int64()))
    assert fitted.column("n").to_pylist() == [1, None, -3]
    for value in (1.5, float("nan"), 2.0**63):
        with pytest.raises(InvalidError, match=r"'n' does not fit its type int64.*column of type double"):
            conform(pa.record_batch({"n": [value]}), schema(n=pa.int64()))


def test_a_column_that_differs_by_case_only_is_refused() -> None:
    with pytest.raises(InvalidError, match="'Fare' differs from column 'fare' only by case"):
        evolve(schema(fare=pa.int32()), schema(fare=pa.int32(), Fare=pa.int32()))
    with pytest.raises(InvalidError, match=r"'s\.A' differs from column 's\.a'"):
        evolve(schema(s=pa.struct([("a", pa.int32())])), schema(s=pa.struct([("A", pa.int32())])))
    with pytest.raises(InvalidError, match="'NEW' differs from column 'new'"):
        evolve(schema(fare=pa.int32()), schema(new=pa.int32(), NEW=pa.int32()))
    table = schema(a=pa.int32(), A=pa.int32())
    assert evolve(table, table) == table


def test_dictionaries_of_views_are_decoded_at_every_depth() -> None:
    codes = pa.DictionaryArray.from_arrays(
        pa.array([0, None, 1], pa.uint32()), pa.array(["x", "y"]).cast(pa.string_view())
    )
    batch = pa.record_batch(
        {
            "c": codes,
            "l": pa.ListArray.from_arrays([0, 2, 3, 3], codes).cast(pa.large_list(codes.type)),
            "s": pa.StructArray.from_arrays([codes], ["c"]),
        }
    )
    fitted = conform(
        batch.slice(1),
        schema(c=pa.string(), l=pa.list_(pa.string()), s=pa.struct([("c", pa.string())])),
    )
    assert fitted.to_pydict() == {"c": [None, "y"], "l": [["y"], []], "s": [{"c": None}, {"c": "y"}]}


def test_values_that_do_not_fit_the_type_are_refused_with_the_column() -> None:
    with pytest.raises(InvalidError, match="'n'"):
        conform(pa.record_batch({"n": pa.array([2**40], pa.int64())}), schema(n=pa.int32()))
    with pytest.raises(InvalidError, match="'n'"):
        conform(pa.record_batch({"n": ["word"]}), schema(n=pa.int32()))
