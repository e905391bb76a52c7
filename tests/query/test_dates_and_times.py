"""Conditions on dates and times of several types; `tests/spark/test_dates_and_times.py` compares more."""

from __future__ import annotations

import pytest

import drawstring
from drawstring.base.errors import InvalidError
from drawstring.expressions.predicate import parse_where
from tests.support.tables import create
from tests.support.time_cases import REFUSED, SCHEMA, TEXTS, ZONED, rows


def found(where: str) -> list[int]:
    numbers: list[int] = rows().filter(parse_where(where, SCHEMA)).column("n").to_pylist()
    return numbers


def texts(where: str) -> set[str | None]:
    return {TEXTS[at] for at in found(f"({where}) and n >= 0 and n < {len(TEXTS)}")}


AT_NOON = {
    "2024-02-29 12:30:01.123456",
    "2024-02-29T12:30:01.123456Z",
    "2024-02-29 14:30:01.123456+02:00",
    "2024-02-29 05:00:01.123456-0730",
    "2024-02-29 12:30:01.1234567",
}


def test_times_in_texts_have_an_offset_from_utc_or_are_in_utc() -> None:
    assert texts("cast(text as timestamp) = timestamp '2024-02-29 12:30:01.123456'") == AT_NOON
    assert texts("text = at") == AT_NOON
    assert texts("text = timestamp '2024-02-29 12:30:01.123456'") == AT_NOON


def test_a_time_without_a_zone_is_what_the_clock_shows() -> None:
    assert texts("text = local") == {each for each in AT_NOON if "+" not in each and "-0730" not in each}
    assert "2024-02-29 14:30:01.123456+02:00" in texts("cast(text as timestamp_ntz) > local")


def test_dates_are_midnights_where_they_are_compared_with_times() -> None:
    assert found("day = at") == [-1]
    assert found("day = local and n < 0") == [-1]
    assert found("day < at and n = 0") == [0]
    assert found("day >= timestamp '2024-02-29 00:00:01'") == []
    assert found("day = timestamp '2024-02-29 00:00:00' and n < 1") == [0, -1]
    assert found("at >= date '2024-02-29' and n < 0") == [-1]


def test_texts_are_dates_where_they_are_compared_with_dates() -> None:
    assert {"2024-02-29", "2024-2-29", "2024-02-29 12"} <= texts("text = day")
    assert texts("text < date '2000-01-01'") == {"1969-12-31 23:59:59.5"}
    assert texts("to_date(text) is null") == {"2023-02-29", "never", "", None}


@pytest.mark.parametrize("condition", REFUSED)
def test_what_cannot_be_compared_or_cast_is_named_with_what_to_write(condition: str) -> None:
    with pytest.raises(
        InvalidError, match=r"The SQL contains .*(Cast dates|cast one of the two values)"
    ) as caught:
        parse_where(condition, SCHEMA)
    assert any(name in str(caught.value) for name in ("day", "at", "local", "n"))


@pytest.mark.parametrize("text", ZONED)
def test_a_time_that_only_spark_knows_fails_a_condition_on_timestamps(text: str) -> None:
    table = create(SCHEMA, record_key="n", partition_by=None, ordering=())
    table.insert(rows().slice(0, 1).set_column(4, "text", [[text]]))
    where = "cast(text as timestamp) < at"
    with pytest.raises(InvalidError) as caught:
        table.scan(where=where).to_arrow()
    assert str(caught.value).startswith(f"The condition {where} fails on a row")
    assert text in str(caught.value)
    assert isinstance(caught.value, drawstring.InvalidError)
