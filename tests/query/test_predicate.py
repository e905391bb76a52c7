"""SQL conditions and Arrow expressions as row predicates."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
import sqlglot

from drawstring.base.errors import InvalidError
from drawstring.expressions.evaluation import evaluated
from drawstring.expressions.predicate import parse_value, parse_where

ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3, 4], pa.int32()),
        "Name": ["ann", "bob", None, "a%b"],
        "fare": [1.5, None, 3.0, -4.0],
        "day": pa.array([date(2024, 1, 1), date(2024, 2, 1), None, date(2024, 3, 1)]),
        "at": pa.array([datetime(2024, 1, 1, 10, tzinfo=UTC), None, None, None], pa.timestamp("us", "UTC")),
        "price": pa.array([Decimal("1.10"), Decimal("2.20"), None, Decimal("3.30")], pa.decimal128(10, 2)),
        "paid": [True, False, None, True],
        "who": pa.array([{"age": 1}, {"age": 2}, None, {"age": 4}], pa.struct([("age", pa.int32())])),
    }
)


def kept(where: Any) -> list[int]:
    expression = parse_where(where, ROWS.schema)
    ids: list[int] = ROWS.filter(expression).column("id").to_pylist()
    return ids


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ("id = 2", [2]),
        ("id <> 2", [1, 3, 4]),
        ("2 < id", [3, 4]),
        ("id > 2.5", [3, 4]),
        ("price / 2 > 1", [2, 4]),
        ("id = -1", []),
        ("fare >= 1.5 AND fare < 4", [1, 3]),
        ("fare > 2 OR id = 1", [1, 3]),
        ("NOT fare > 2", [1, 4]),
        ("price > 2", [2, 4]),
        ("price IN (2.2, 3)", [2]),
        ("price < 12345678901234", [1, 2, 4]),
        ("price > 2.1999", [2, 4]),
        ("name = 'ann'", [1]),
        ("`Name` != 'ann'", [2, 4]),
        ("name IN ('ann', 'bob')", [1, 2]),
        ("name NOT IN ('ann', 'bob')", [4]),
        ("name NOT IN ('ann', NULL)", []),
        ("name LIKE 'a%'", [1, 4]),
        ("name ILIKE 'A_n'", [1]),
        ("name NOT LIKE 'a%'", [2]),
        ("NOT name LIKE 'a%'", [2]),
        ("name RLIKE '^[ab].[nb]$'", [1, 2, 4]),
        (r"name rlike r'%\w' OR regexp_like(name, 'nn')", [1, 4]),
        ("name NOT RLIKE 'b'", [1]),
        ("id % 2 = 1", [1, 3]),
        ("mod(id + 1, id) = 1 AND -id % 3 = -2", [2]),
        ("id % 0 IS NULL AND 7 % -id = 1 AND id % -1 = 0", [2, 3]),
        ("id % NULL IS NULL", [1, 2, 3, 4]),
        ("NOT name NOT LIKE 'a%'", [1, 4]),
        ("name NOT ILIKE 'A_n'", [2, 4]),
        ("name IS NULL", [3]),
        ("name IS NOT NULL AND id < 4", [1, 2]),
        ("id BETWEEN 2 AND 3", [2, 3]),
        ("id NOT BETWEEN 2 AND 3", [1, 4]),
        ("day >= '2024-02-01'", [2, 4]),
        ("day < DATE '2024-02-01'", [1]),
        ("at = '2024-01-01 10:00:00'", [1]),
        ("at > TIMESTAMP '2024-01-01 09:59:59.999'", [1]),
        ("coalesce(day, DATE '2024-05-05') = '2024-05-05'", [3]),
        ("'2024-02-01' < coalesce(day, DATE '2024-05-05')", [3, 4]),
        ("coalesce(day, DATE '2024-05-05') IN ('2024-05-05', '2024-01-01')", [1, 3]),
        ("if(paid, day, NULL) BETWEEN '2024-02-01' AND '2024-12-31'", [4]),
        ("cast(at AS TIMESTAMP_NTZ) = TIMESTAMP '2024-01-01 10:00:00'", [1]),
        ("cast(day AS STRING) = '2024-02-01'", [2]),
        ("price = 2.2", [2]),
        ("price > 1.1", [2, 4]),
        ("paid", [1, 4]),
        ("paid IS FALSE", [2]),
        ("paid IS NOT TRUE", [2, 3]),
        ("who.age >= 2", [2, 4]),
        ("id + 1 = 3", [2]),
        ("(id = 1 OR id = 2) AND (fare IS NULL)", [2]),
        ("true", [1, 2, 3, 4]),
        (f"id IN ({', '.join(str(number) for number in range(2, 200))})", [2, 3, 4]),
        (f"id NOT IN ({', '.join(str(number) for number in range(2, 200))})", [1]),
        (f"fare NOT IN ({', '.join(str(number) for number in range(2, 200))})", [1, 4]),
    ],
)
def test_a_condition_keeps_the_rows_that_sql_would(where: str, ids: list[int]) -> None:
    assert kept(where) == ids


FLOATS = pa.table(
    {
        "id": pa.array([1, 2, 3, 4], pa.int64()),
        "n": pa.array([1, 0, 3, None], pa.int64()),
        "x": [float("nan"), 1.0, None, 7.5],
        "y": [float("nan"), float("nan"), 1.0, 7.5],
        "s": pa.array([0.1, 1.0, None, float("nan")], pa.float32()),
    }
)


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ("n / 2 > 0.4", [1, 3]),
        ("3 / n = 1", [3]),
        ("n / 0 IS NULL", [1, 2, 3, 4]),
        ("NOT (n / n = 1)", []),
        ("x = x", [1, 2, 4]),
        ("x = 'NaN'", [1]),
        ("x > 5", [1, 4]),
        ("5 < x", [1, 4]),
        ("x >= 7.5", [1, 4]),
        ("NOT x > 5", [2]),
        ("x < 5", [2]),
        ("NOT x <= 5", [1, 4]),
        ("x <> 1", [1, 4]),
        ("x BETWEEN 0 AND 8", [2, 4]),
        ("x NOT BETWEEN 0 AND 8", [1]),
        ("x IN ('NaN')", [1]),
        ("x IN (1, 7.5)", [2, 4]),
        ("x NOT IN (1, 2)", [1, 4]),
        (f"x NOT IN ({', '.join(str(number) for number in range(200))})", [1, 4]),
        ("x = y", [1, 4]),
        ("x < y", [2]),
        ("NOT x >= y", [2]),
        ("x <= y", [1, 2, 4]),
        ("x + 1 > 8", [1, 4]),
        ("s = 0.1", []),
        ("s > 0.1", [1, 2, 4]),
        (f"s IN ({', '.join(str(number / 10) for number in range(200))})", [2]),
        ("x = NULL OR id = 1", [1]),
    ],
)
def test_floats_compare_and_numbers_divide_as_in_spark(where: str, ids: list[int]) -> None:
    """The answers are those of `spark.sql` over the same rows, with `spark.sql.ansi.enabled` off."""
    expression = parse_where(where, FLOATS.schema)
    assert FLOATS.filter(expression).column("id").to_pylist() == ids


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("'O''Brien'", "O'Brien"),
        ('"the ""old"" mill"', 'the "old" mill'),
        ("''''", "'"),
        ("''", ""),
        (r"'O\'Brien'", "O'Brien"),
        ("'two ' 'parts'", "two parts"),
        (r"r'\d+'", r"\d+"),
    ],
)
def test_a_text_says_what_spark_4_reads_in_it(text: str, value: str) -> None:
    rows = pa.table({"t": ["its", value, "OBrien", "the old mill"]})
    same, listed = (parse_where(each, rows.schema) for each in (f"t = {text}", f"t in ('none', {text})"))
    assert rows.filter(same).column("t").to_pylist() == [value]
    assert rows.filter(listed).column("t").to_pylist() == [value]
    set_to = parse_value(text, rows.schema, rows.schema.field("t"))
    assert evaluated(rows.slice(0, 1), [set_to], ["t"]).column("t").to_pylist() == [value]


def test_an_arrow_expression_is_taken_as_it_is() -> None:
    assert kept((pc.field("id") > 1) & pc.field("paid")) == [4]


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("namme = 'x'", "no column namme. Did you mean Name"),
        ("xyz = 1", "no column xyz. It has id"),
        (pc.field("fair") > 1, "Did you mean fare"),
        ("id = ", "not a SQL condition. Look at column 4"),
        ("id = 1; id = 2", "not a SQL condition"),
        ("id IN (SELECT 1)", "needs a list of values"),
        ("sqrt(id) = 1", "not supported"),
        ("\"name\" = 'ann'", "names no column.*backticks"),
        ('"name" LIKE "a%"', "names no column.*backticks"),
        ('id > 1 AND "name" IN ("ann", "bob")', "names no column.*backticks"),
        ("name + 1 > 2", "'name \\+ 1', which computes with values that are not numbers"),
        ("id > 100000000000000000000000000000000000000", "more than 38 digits"),
        ("fare % 2 = 1", r"remainder \(%\) of type double. Use % on integers"),
        ("name RLIKE '('", "regular expression '\\('"),
        ("name RLIKE 'a(?=b)'", "regular expression"),
        ("name RLIKE '[a-z&&[^b]]'", "nested character classes"),
        ("name RLIKE '(?s)a.b'", "flags other than"),
        ("name RLIKE name", "plain value"),
        ("\"name\" RLIKE 'a'", "names no column.*backticks"),
        ("id RLIKE '1'", "does not fit the columns"),
        ("quarter(day) = 1", "QUARTER.*not supported. Use comparisons.*a pyarrow expression"),
        ("id BETWEEN SYMMETRIC 3 AND 1", "BETWEEN.*not supported|no column SYMMETRIC"),
        ("name LIKE 'a%' ESCAPE '!'", "ESCAPE.*not supported"),
        ("name = 5", "'5' does not fit"),
        ("day = 'soon'", "'soon' does not fit"),
        ("who.size = 1", "no field size"),
        (pc.field("id") > "x", "does not fit the columns"),
        ("id", "not a condition"),
    ],
    ids=str,
)
def test_a_bad_condition_is_refused_with_a_hint(where: Any, message: str) -> None:
    with pytest.raises(InvalidError, match=message):
        parse_where(where, ROWS.schema)


def test_what_a_parser_adds_to_a_node_is_refused_and_not_overlooked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A newer parser may write NOT into a node as it did for LIKE."""

    def parse(text: str, what: str) -> sqlglot.Expression:
        node = sqlglot.parser.Parser().parse(sqlglot.tokenize(text, "spark"), text)[0]
        assert node is not None
        node.set("negate", True)
        return node

    monkeypatch.setattr("drawstring.expressions.sql_condition.parsed", parse)
    for where in ("id BETWEEN 1 AND 2", "id IN (1)", "(id = 1)", "id IS NULL", "paid", "(paid)"):
        with pytest.raises(InvalidError, match="not supported"):
            parse_where(where, ROWS.schema)


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("b$", ["ab", "ab\n", "ab\r\n", "ab\u2028"]),
        ("^ab.?$", ["ab", "ab\n", "ab\r\n", "ab\u2028", "ab\x0b"]),
        ("b.", ["ab\x0b"]),
        ("(?i)B[.$]|B\\\\s", ["ab\n", "ab\n\n", "ab\r\n", "ab\x0b"]),
        ("\\\\Qb$\\\\E", []),
    ],
)
def test_a_regular_expression_ends_and_dots_as_in_java(pattern: str, found: list[str]) -> None:
    texts = pa.table({"t": ["ab", "ab\n", "ab\n\n", "ab\r\n", "ab\u2028", "ab\x0b"]})
    assert texts.filter(parse_where(f"t RLIKE '{pattern}'", texts.schema))["t"].to_pylist() == found
