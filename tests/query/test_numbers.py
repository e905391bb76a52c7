"""Numbers in SQL are compared and computed exactly, whatever their types."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal as D
from fractions import Fraction
from operator import add, eq, ge, gt, le, lt, mul, ne, sub
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import drawstring
from drawstring.base.errors import InvalidError
from drawstring.expressions.evaluation import evaluated
from drawstring.expressions.predicate import parse_value, parse_where
from tests.support.number_cases import SCHEMA, rows

EDGES = (0, 1, 4, 9999999, 2**24, 2**24 + 1, 2**31 - 1, 2**31, 2**53, 2**53 + 1, 2**63 - 1)
LONGS = st.sampled_from([sign * edge for edge in EDGES for sign in (1, -1)]) | st.integers(
    -(2**63), 2**63 - 1
)
CENTS = st.sampled_from([0, 1, 110, 10**10 - 1, 1 - 10**10]) | st.integers(1 - 10**10, 10**10 - 1)
DOUBLES = st.floats(allow_nan=False, allow_infinity=False) | LONGS.map(float)
FRACTIONS = (
    "0.25",
    "-0.5",
    "1.5",
    "4.5",
    "0.1",
    "9999998.5",
    "16777216.75",
    "9007199254740992.5",
    "7",
    "-3",
    "1e3",
)
LITERALS = st.sampled_from(FRACTIONS) | LONGS.map(str)
COMPARE: dict[str, Callable[[Any, Any], bool]] = {"=": eq, "<>": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
COMPUTE: dict[str, Callable[[Any, Any], Any]] = {"+": add, "-": sub, "*": mul}
Row = dict[str, Any]


@st.composite
def one_row(draw: st.DrawFn) -> Row:
    cents, double = draw(CENTS), draw(DOUBLES)
    row = {"n": draw(LONGS), "d": D(cents).scaleb(-2), "x": double}
    return {name: None if draw(st.integers(0, 9)) == 0 else value for name, value in row.items()}


def table_of(row: Row) -> pa.Table:
    schema = pa.schema([SCHEMA.field(name) for name in row])
    return pa.Table.from_pylist([row], schema)


def exact(name: str, row: Row) -> Fraction | float | None:
    """Return the value of a column or a literal: a float, or an exact number."""
    value = row[name] if name in row else float(name) if "e" in name else D(name)
    return value if value is None or isinstance(value, float) else Fraction(value)


def both(left: Any, right: Any, function: Callable[[Any, Any], Any]) -> Any:
    """Apply a function to numbers as floats if one of them is a float."""
    if left is None or right is None:
        return None
    if isinstance(left, float) or isinstance(right, float):
        left, right = float(left), float(right)
    return function(left, right)


OPERANDS = st.sampled_from(["n", "d", "x"]) | LITERALS
COLUMNS = st.sampled_from(["n", "d", "x"])


@given(one_row(), COLUMNS, st.sampled_from(sorted(COMPARE)), OPERANDS)
def test_a_comparison_is_that_of_the_exact_values(row: Row, left: str, operator: str, right: str) -> None:
    rows = table_of(row)
    expected = both(exact(left, row), exact(right, row), COMPARE[operator])
    for text in (f"{left} {operator} {right}", f"({left}) {operator} ({right})"):
        assert rows.filter(parse_where(text, rows.schema)).num_rows == (expected is True), text
    if expected is not None:
        assert rows.filter(parse_where(f"not ({text})", rows.schema)).num_rows == (not expected)


def is_overflow(value: Any, names: list[str]) -> bool:
    """Return whether integers give a result of more than 64 bits, which fails."""
    is_whole = all(name == "n" or name.lstrip("-").isdigit() for name in names)
    return is_whole and value is not None and not -(2**63) <= value < 2**63


@given(
    one_row(), COLUMNS, st.sampled_from(sorted(COMPUTE)), OPERANDS, st.sampled_from(sorted(COMPARE)), OPERANDS
)
def test_a_computed_number_is_exact(
    row: Row, left: str, sign: str, right: str, operator: str, limit: str
) -> None:
    rows = table_of(row)
    value = both(exact(left, row), exact(right, row), COMPUTE[sign])
    assume(not is_overflow(value, [left, right]))
    expected = both(value, exact(limit, row), COMPARE[operator])
    text = f"{left} {sign} {right} {operator} {limit}"
    assert rows.filter(parse_where(text, rows.schema)).num_rows == (expected is True), text
    stored = parse_value(f"{left} {sign} {right}", rows.schema, pa.field("x", pa.float64()))
    result = evaluated(rows, [stored], ["x"]).column("x").cast(pa.float64(), safe=False)[0].as_py()
    assert result == (None if value is None else float(value))


@given(one_row(), st.lists(LITERALS, min_size=1, max_size=4), st.booleans())
def test_a_list_holds_the_exact_values(row: Row, listed: list[str], is_long: bool) -> None:
    rows = table_of(row)
    texts = listed * (20 if is_long else 1) + ["0.33"] * (is_long * 50)
    for name in ("n", "d", "x"):
        same = [both(exact(name, row), exact(text, row), eq) for text in texts]
        found = rows.filter(parse_where(f"{name} in ({', '.join(texts)})", rows.schema)).num_rows
        assert found == any(same)


def test_a_condition_that_fails_on_a_key_is_evaluated_on_the_rows(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("x", pa.float64())])
    table = drawstring.create(tmp_path, schema, record_key="id")
    table.upsert(pa.table([[5], [1.0]], schema=schema))
    where = "id = 9223372036854775807 and id * 2 > 9"
    assert table.scan(["x"], where=where).to_arrow().num_rows == 0
    table.upsert(pa.table([[2**63 - 1], [1.0]], schema=schema))
    with pytest.raises(InvalidError, match="fails on a row"):
        table.scan(where=where).to_arrow()


def test_a_long_list_with_zero_holds_both_zeros() -> None:
    rows = pa.table({"x": [-0.0, 0.0, 0.5]})
    for first in ("0", "-0.0e0"):
        listed = ", ".join([first, *(str(number) for number in range(1, 200))])
        assert rows.filter(parse_where(f"x in ({listed})", rows.schema)).num_rows == 2


@pytest.mark.parametrize(
    ("expression", "values"),
    [
        ("n + 0.25", ["9999999.25", "16777217.25", "9007199254740993.25", "9223372036854775807.25"]),
        ("n * 1.5", ["14999998.5", "25165825.5", "13510798882111489.5", "13835058055282163710.5"]),
        ("if(n > 1, 0.1, 2)", ["0.1"] * 4),
        ("case when n > 16777217 then n else 0.5 end", ["0.5", "0.5", "9007199254740993", str(2**63 - 1)]),
        ("coalesce(n, 0.5)", ["9999999", "16777217", "9007199254740993", str(2**63 - 1)]),
        ("d * 1.05", ["1.155", "-104999999.9895", "0.0105", "104999999.9895"]),
        ("n / 0.3", ["33333330", "55924056.666667", "30023997515803310", "30744573456182586023.333333"]),
        ("w * w / 1", None),
    ],
)
def test_fractions_and_decimals_are_exact(expression: str, values: list[str] | None) -> None:
    column = pa.field("v", pa.decimal128(38, 10))
    if values is None:
        with pytest.raises(InvalidError, match="77 digits, more than 76"):
            parse_value(expression, SCHEMA, column)
        return
    value = parse_value(expression, SCHEMA, column)
    found = evaluated(rows().slice(0, 4), [value], ["v"]).column("v").to_pylist()
    assert found == [D(text) for text in values]


@pytest.mark.parametrize(
    ("expression", "kind", "value"),
    [
        ("0.125", pa.decimal128(10, 2), D("0.13")),
        ("cast(0 as decimal(10,2))", pa.decimal128(10, 2), D("0.00")),
        ("d * 1.005", pa.decimal128(10, 2), D("1.11")),
        ("-0.005", pa.decimal128(10, 2), D("-0.01")),
        ("w", pa.float64(), 12345678901234567890.0123456789),
        ("9007199254740993.0", pa.int64(), 2**53 + 1),
        ("n", pa.decimal128(38, 2), D("9999999.00")),
    ],
)
def test_a_stored_decimal_is_rounded_half_up(expression: str, kind: pa.DataType, value: Any) -> None:
    stored = parse_value(expression, SCHEMA, pa.field("v", kind))
    assert evaluated(rows().slice(0, 1), [stored], ["v"]).column("v").cast(kind)[0].as_py() == value


def test_an_arrow_expression_is_left_as_it_is() -> None:
    given = pc.field("n") + 0.25
    assert parse_value(given, SCHEMA, pa.field("v", pa.decimal128(10, 2))) is given


def test_a_table_is_changed_by_exact_numbers(tmp_path: Path) -> None:
    kinds = {"id": pa.int64(), "n": pa.int64(), "x": pa.float64(), "amt": pa.decimal128(10, 2)}
    schema = pa.schema(list(kinds.items()))
    table = drawstring.create(tmp_path, schema, record_key="id")
    table.upsert(pa.table([[1, 2], [9999999, 20000001], [0.0, 0.0], [D("1.10"), None]], schema=schema))
    table.update("n > 4.5 and amt + 1 > 2", {"x": "n + 0.25", "amt": "amt * 1.05"})
    table.update("coalesce(amt, 0) = 0", {"x": "n * 1.5", "amt": "cast(0 as decimal(10,2))"})
    assert table.delete(where="n - 0.5 <= 9999998").deletes == 0
    rows = table.scan(schema.names, where="n + 0.25 > 9999999").to_arrow().sort_by("id").to_pylist()
    assert [tuple(row.values()) for row in rows] == [
        (1, 9999999, 9999999.25, D("1.16")),
        (2, 20000001, 30000001.5, D("0.00")),
    ]


@pytest.mark.parametrize(
    ("where", "groups"),
    [("n > 299.5", 0), ("n > 199.5", 1), ("n = 5.5", 0), ("n <> 5.5", 3), ("d < 10.005", 1), ("d > 1e9", 3)],
)
def test_a_fraction_still_rules_out_row_groups(tmp_path: Path, where: str, groups: int) -> None:
    numbers = pa.array(range(300))
    table = pa.table({"n": numbers, "d": numbers.cast(pa.decimal128(21, 2)).cast(pa.decimal128(10, 2))})
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=100)
    [fragment] = ds.dataset(tmp_path / "rows.parquet").get_fragments()
    assert len(fragment.split_by_row_group(parse_where(where, table.schema))) == groups
