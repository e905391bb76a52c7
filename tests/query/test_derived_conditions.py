"""Conditions on an expression become ones on its column; parts that nothing is known of are left out."""

from __future__ import annotations

import pyarrow as pa
import pytest

from drawstring.expressions.predicate import DerivedColumn, with_derived_column

COLUMNS = pa.schema([("id", pa.int64()), ("day", pa.string())])
DATES = DerivedColumn("to_date(`day`)", pa.field("value", pa.date32()))
ONE_DAY = "(value == 2024-02-05)"
UNKNOWN = "to_date(day, 'd.MM.yyyy[ HH]') > date '2024-01-01'"


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("to_date(day) = date '2024-02-05'", ONE_DAY),
        (f"to_date(day) = date '2024-02-05' and {UNKNOWN}", ONE_DAY),
        (f"{UNKNOWN} and to_date(day) = date '2024-02-05' and ({UNKNOWN})", ONE_DAY),
        (f"(({UNKNOWN}) and (to_date(DAY) = date '2024-02-05'))", ONE_DAY),
        (f"to_date(day) = date '2024-02-05' or (id = 1 and {UNKNOWN})", f"({ONE_DAY} or (id == 1))"),
        (f"to_date(day) = date '2024-02-05' and ({UNKNOWN} or id = 1)", ONE_DAY),
        (f"to_date(day) = date '2024-02-05' or {UNKNOWN}", None),
        (f"not (to_date(day) = date '2024-02-05' and {UNKNOWN})", None),
        (UNKNOWN, None),
        (f"id = 1 and {UNKNOWN}", None),
    ],
)
def test_a_part_that_no_column_answers_leaves_the_other_parts(condition: str, expected: str | None) -> None:
    found = with_derived_column(condition, COLUMNS, DATES)
    assert (str(found[0]) if found else None) == expected
