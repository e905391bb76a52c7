"""Dates in texts: conditions on them, and what cannot be parsed as Spark does."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pyarrow as pa
import pytest

from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.expressions.datetime import AS_DATE, AS_TIME, by_pattern, parse_supported_timestamps
from drawstring.expressions.predicate import parse_where

TEXTS = ["2024-01-05", "2024-1-5 x", "2023-12-31", "31.12.2023", "2024-02-30", "10000-01-01", None]
ROWS = pa.table(
    {
        "n": range(len(TEXTS)),
        "Day": TEXTS,
        "real": pa.array([date(2024, 1, 5)] * len(TEXTS)),
        "at": pa.array([datetime(2024, 1, 5, 23, tzinfo=UTC)] * len(TEXTS), pa.timestamp("us", "UTC")),
    }
)


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("to_date(day) = '2024-01-05'", [0, 1]),
        ("TO_DATE(`Day`) < date '2024-01-01'", [2]),
        ("to_date(day) in ('2023-12-31', '2024-01-05')", [0, 1, 2]),
        ("to_date(day) is null", [3, 4, 5, 6]),
        ("cast(day as date) = '2024-01-05'", [0, 1]),
        ("try_cast(day as date) is null", [3, 4, 5, 6]),
        ("to_date(day, 'yyyy-MM-dd') = '2024-01-05'", [0]),
        ("to_date(day, 'dd.MM.yyyy') >= '2023-01-01'", [3]),
        ("year(day) = 2024", [0, 1]),
        ("month(day) = 12 and day(day) = 31", [2]),
        ("date_add(day, 1) = '2024-01-01'", [2]),
        ("date_sub(day, 4) = '2024-01-01'", [0, 1]),
        ("to_date(day) = real", [0, 1]),
        ("to_date(day) = to_date(at)", [0, 1]),
        ("date_add(at, -5) = '2023-12-31' and date_add(real, 1) = '2024-01-06' and n < 2", [0, 1]),
        ("to_date(real, 'dd') = '2024-01-05' and n = 3", [3]),
    ],
)
def test_conditions_find_the_dates_in_texts(where: str, found: list[int]) -> None:
    assert ROWS.filter(parse_where(where, ROWS.schema)).column("n").to_pylist() == found


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("to_date(day, real) = '2024-01-05'", "needs a plain value"),
        ("to_date(day, 'yyyy', 1) = '2024-01-05'", "more than a pattern"),
        ("to_date(n) = '2024-01-05'", "takes a date, or a part of one, from a value of type int64"),
        ("date_add(day, 'x') = '2024-01-05'", "does not fit a column of type int32"),
        ("date_add(day) = '2024-01-05'", "is not a SQL condition|without a number of days"),
        ("reversed(day) = '2024-01-05'", "which is not supported"),
    ],
)
def test_conditions_on_dates_that_make_no_sense_say_why(where: str, message: str) -> None:
    with pytest.raises(InvalidError, match=message):
        ROWS.filter(parse_where(where, ROWS.schema))


@pytest.mark.parametrize(
    "pattern",
    [
        "y-MM-dd", "yyyyy", "MMM d yyyy", "EEEE", "hh:mm a", "yyyy-MM-dd X", "yyyy-MM-dd VV", "D", "kk",
        "yyyyMd", "ssSSS", "SSSss", "yyyy-yyyy", "-", "yyyy[-MM]", "yyyy{MM", "yyyy#", "yyyy-0M",
        "yyyy''MM", "SSSSSSSSSS",
    ],
)  # fmt: skip
def test_a_pattern_that_spark_may_read_in_another_way_is_refused(pattern: str) -> None:
    with pytest.raises(UnsupportedError, match=r"pattern|Dates in texts"):
        by_pattern(pattern)


@pytest.mark.parametrize("pattern", ["", "yyyy'"])
def test_what_is_no_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidError, match="date pattern"):
        by_pattern(pattern)


def test_times_that_only_spark_knows_are_refused_in_columns() -> None:
    for form, text in [
        (AS_DATE, "10000-01-01"),
        (AS_DATE, "-0044-03-15"),
        (AS_TIME, "12:30"),
        (AS_TIME, "2024-01-05 10:00:00 Europe/Oslo"),
        (by_pattern("yyyy-MM-dd"), "+10000-01-01"),
    ]:
        with pytest.raises(InvalidError, match="has a zone, no date, or a year before 0 or after 9999"):
            parse_supported_timestamps(pa.array(["2024-01-05", text]), form)
