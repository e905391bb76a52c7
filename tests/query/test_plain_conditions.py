"""Plain conditions are read without a parser, and mean what the parser makes of them."""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot.dialects.spark import Spark

from drawstring.base.errors import InvalidError
from drawstring.expressions.plain_conditions import plain_condition
from drawstring.expressions.predicate import condition_text
from drawstring.expressions.sql_condition import expression_of

SCHEMA = pa.schema(
    [
        ("city", pa.string()),
        ("Fare", pa.float64()),
        ("short", pa.float32()),
        ("n", pa.int32()),
        ("price", pa.decimal128(10, 2)),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("paid", pa.bool_()),
        ("_hoodie_record_key", pa.string()),
    ]
)
LITERALS = (
    "'delhi'", '"delhi"', "''", "'it''s'", "'a\\\\b'", "'and'", "'2024-01-31'", "'2024-01-31 10:00:00'",
    "'1'", "5", "-5", "- 5", "5.25", "-0.5", "007", "1e3", "5L", ".5", "5.", "12345678901234567890",
    "true", "null", "'x' 'y'", "city",
)  # fmt: skip
OPERATORS = ("=", "<>", "!=", "<", "<=", ">", ">=", "==", "<=>", " = ", "\n>\t", "is", "like")
JOINTS = (" and ", " AND ", "and", " and\n", " or ", " and not ", " -- ")


def outcome(read: object, text: str, schema: pa.Schema) -> object:
    """Return the expression that a text becomes, or what is wrong with it."""
    try:
        return read(text, schema)  # type: ignore[operator]  # either reader
    except InvalidError as error:
        return error.message


def assert_same(text: str, schema: pa.Schema) -> bool:
    """Compare with the parser; tell whether the text counts as plain."""
    plain = outcome(plain_condition, text, schema)
    if plain is None:
        return False
    parsed = outcome(expression_of, text, schema)
    # The parser refuses names that are words of SQL; the table has such a column, so it is meant.
    is_refused = isinstance(parsed, str) and parsed.startswith(("The condition ", "The SQL "))
    assert is_refused or str(plain) == str(parsed), text
    return True


COMPARISONS = st.tuples(
    st.sampled_from([*SCHEMA.names, "fare", "nothing", "`city`"]),
    st.sampled_from(OPERATORS),
    st.sampled_from(LITERALS),
).map("".join)


@given(st.lists(COMPARISONS, min_size=1, max_size=4), st.sampled_from(JOINTS))
def test_a_plain_condition_means_what_the_parser_makes_of_it(comparisons: list[str], joint: str) -> None:
    assert_same(joint.join(comparisons), SCHEMA)


@pytest.mark.parametrize(
    "name", sorted({word.lower() for word in Spark.Tokenizer.KEYWORDS if word.isidentifier()})
)
def test_a_word_of_sql_as_a_name_means_what_the_parser_makes_of_it(name: str) -> None:
    schema = pa.schema([(name, pa.string())])
    assert_same(f"{name} = 'x'", schema)


@pytest.mark.parametrize(
    "text",
    [
        "city = 'delhi' and Fare > 30",
        "_hoodie_record_key='k1'",
        "n>=-5 AND day < '2024-01-31' and price = 5.25",
        " paid = 'true'",
    ],
)
def test_comparisons_joined_by_and_are_plain(text: str) -> None:
    assert assert_same(text, SCHEMA)


@pytest.mark.parametrize(
    "text", ["", "city", "city = 'a' or n = 1", "fare > 1", "city = 'a' and", "n = n", "city = 'it''s'"]
)
def test_other_texts_are_left_to_the_parser(text: str) -> None:
    assert plain_condition(text, SCHEMA) is None


def test_a_plain_condition_loads_no_parser() -> None:
    code = (
        "import sys, pyarrow as pa\n"
        "from drawstring.expressions.predicate import parse_where\n"
        "schema = pa.schema([('city', 'string'), ('fare', 'float64')])\n"
        "parse_where(\"city = 'delhi' and fare > 30\", schema)\n"
        "print('sqlglot' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        ("Fare > 1.5", "(Fare > 1.5)"),
        ("Fare >= -1.5", "(Fare >= -1.5)"),
        ("Fare = 1.5", "(Fare == 1.5)"),
        ("Fare < 1.5", "(Fare < 1.5)"),
        ("Fare <= 1e-9", "(Fare <= 1e-9)"),
        ("Fare < -1.5 and n = 5", "((Fare < -1.5) and (n == 5))"),
    ],
)
def test_a_condition_is_shown_without_asking_whether_a_number_is_one(condition: str, text: str) -> None:
    found = expression_of(condition, SCHEMA)
    assert found is not None
    assert condition_text(found) == text
