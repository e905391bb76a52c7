"""Timestamp-based partition paths against what Apache Hudi 1.2.0 makes of the same values.

`data/timestamps.json` holds settings, and for each of them values with what Hudi's
`TimestampBasedAvroKeyGenerator` returned for them in a JVM in UTC; null where it threw.
"""

from __future__ import annotations

import json
import re
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drawstring.base.errors import DrawstringError, InvalidError, UnsupportedError
from drawstring.base.java_compat import PARSED_LETTERS, parse_pattern
from drawstring.config.table.key_settings import TIMEBASED, timestamp_settings
from drawstring.keygen import timestamps
from drawstring.keygen.timestamps import TimestampTexts, parse_dates

KNOWN = json.loads((Path(__file__).parent / "data/timestamps.json").read_text())


def maker(**settings: str) -> TimestampTexts:
    return TimestampTexts.of(
        timestamp_settings({TIMEBASED + key.replace("_", "."): value for key, value in settings.items()})
    )


def column_of(value: Any, is_text: bool) -> pa.Array:
    """Return a column of one value; decimals stand in lists."""
    if value is None:
        return pa.array([None], pa.string() if is_text else pa.int64())
    return pa.array([Decimal(value[0]) if isinstance(value, list) else value])


@pytest.mark.parametrize(("settings", "values"), KNOWN, ids=lambda part: "")
def test_paths_are_those_that_hudi_makes(settings: dict[str, str], values: list[list[Any]]) -> None:
    is_text = settings["timestamp.type"] in ("DATE_STRING", "MIXED")
    for value, expected in values:
        try:
            made = maker(**settings).texts(column_of(value, is_text), "p")[0].as_py()
        except DrawstringError:
            made = None
        assert (value, made) == (value, expected)


@pytest.mark.parametrize("unit", ["SECONDS", "MILLISECONDS", "NANOSECONDS"])
def test_texts_stand_for_the_numbers_in_them(unit: str) -> None:
    dates = maker(
        timestamp_type="SCALAR", timestamp_scalar_time_unit=unit, output_dateformat="yyyy-MM-dd HH:mm:ss.SSS"
    )
    numbers = pa.array([0, -5, 1_704_477_600, 1_704_477_600_000_000_000, None], pa.int64())
    if unit != "NANOSECONDS":
        numbers = numbers.slice(0, 3)
    assert dates.texts(numbers.cast(pa.string()), "p") == dates.texts(numbers, "p")
    for kind in (pa.string(), pa.large_string()):
        dates.check_type(kind, "p", number_texts=True)
        with pytest.raises(InvalidError, match="column p is string"):
            dates.check_type(kind, "p")


def test_many_values_and_nulls_keep_their_places() -> None:
    texts = maker(timestamp_type="DATE_STRING", input_dateformat="yyyy-MM-dd", output_dateformat="yyyyMM")
    values = pa.array(["2024-01-15", None, "2023-12-31", "2024-01-15"]).dictionary_encode()
    assert texts.texts(values, "p").to_pylist() == ["202401", "197001", "202312", "202401"]
    numbers = maker(timestamp_type="UNIX_TIMESTAMP", output_dateformat="HH")
    assert numbers.texts(pa.array([7200, None, 3600]), "p").to_pylist() == ["02", "00", "01"]


def test_dates_and_timestamps_count_in_the_unit_that_they_are_stored_in() -> None:
    days = maker(timestamp_type="SCALAR", timestamp_scalar_time_unit="DAYS", output_dateformat="yyyy-MM-dd")
    assert days.texts(pa.array([date(2024, 2, 29)]), "p").to_pylist() == ["2024-02-29"]
    micros = maker(timestamp_type="EPOCHMICROSECONDS", output_dateformat="yyyy-MM-dd HH")
    moments = pa.array([1_700_000_000_123_456], pa.timestamp("us", "UTC"))
    assert micros.texts(moments, "p").to_pylist() == ["2023-11-14 22"]


def test_the_paths_do_not_depend_on_how_rows_are_cut_into_batches() -> None:
    texts = maker(
        timestamp_type="EPOCHMILLISECONDS", output_dateformat="yyyy-MM-dd HH ZZ", timezone="Asia/Tokyo"
    )
    moments = pa.array(np.random.default_rng(1).integers(0, 2_000_000_000_000, 1000))
    whole = texts.texts(moments, "p").to_pylist()
    assert whole == [
        text for at in range(0, 1000, 7) for text in texts.texts(moments.slice(at, 7), "p").to_pylist()
    ]


def test_an_hour_that_the_clock_skipped_is_no_date() -> None:
    texts = maker(
        timestamp_type="DATE_STRING",
        input_dateformat="yyyy-MM-dd HH:mm",
        output_dateformat="HH",
        timezone="America/New_York",
    )
    assert texts.texts(pa.array(["2024-11-03 01:30"]), "p").to_pylist() == ["01"]
    with pytest.raises(InvalidError, match="does not exist in the time zone America/New_York"):
        texts.texts(pa.array(["2024-03-10 02:30"]), "p")


@pytest.mark.parametrize(
    ("settings", "value", "kind", "text"),
    [
        ({"timestamp_type": "DATE_STRING", "input_dateformat": "yyyy"}, 1, InvalidError, "column p is int64"),
        ({}, "a", InvalidError, "'a', which is not an integer. Give it as SCALAR"),
        ({}, "1.5", InvalidError, "'1.5', which is not an integer"),
        ({}, "9999999999999999999", InvalidError, "'9999999999999999999', which is not an integer"),
        ({}, True, InvalidError, "column p is bool"),
        ({"timestamp_type": "DATE_STRING", "input_dateformat": "yyyy"}, "x", InvalidError, "'x' of a part"),
        ({"timezone": "Mars/Base"}, 1, InvalidError, "no time zone 'Mars/Base'"),
        ({"timezone": "+03:00"}, 1, InvalidError, "no time zone"),
        ({"output_dateformat": "yyyy zzzz"}, 1, UnsupportedError, "'zzzz'"),
        ({"timestamp_type": "MIXED", "input_dateformat": "yy-MM"}, "1", UnsupportedError, "'yy'"),
        ({"timestamp_type": "MIXED", "input_dateformat": "dd d"}, "1", UnsupportedError, "twice"),
        ({"output_dateformat": "yyyy 'at"}, 1, InvalidError, "quote"),
        ({"timestamp_scalar_time_unit": "WEEKS"}, 1, InvalidError, "WEEKS"),
        ({"timestamp_type": "DATE_STRING"}, "1", InvalidError, "input.dateformat"),
        ({"output_dateformat": ""}, 1, InvalidError, "output.dateformat"),
    ],
)
def test_what_makes_no_sense_says_why(
    settings: dict[str, str], value: Any, kind: type[Exception], text: str
) -> None:
    with pytest.raises(kind, match=text):
        maker(**{"timestamp_type": "SCALAR", "output_dateformat": "yyyy"} | settings).texts(
            pa.array([value]), "p"
        )


ASCII = st.characters(max_codepoint=126)
PATTERNS = (
    "yyyy-MM-dd'T'HH:mm:ss.SSSZ",
    "yyyy-MM-dd HH:mm:ss",
    "yyyyMMddHHmmss",
    "dd.MM.yyyy",
    "yyyy-DDD",
    "d/M/yyyy h:mm",
    "HH:mm:ss.SSSSSS",
    "yyyy-MM-ddZ",
)


@given(st.sampled_from(PATTERNS), st.data())
def test_texts_are_read_alike_by_the_places_of_their_digits_and_by_an_expression(
    pattern: str, data: st.DataObject
) -> None:
    tokens = parse_pattern(pattern, PARSED_LETTERS)
    parts = {
        "y": "2024",
        "M": "0?[1-9]|1[0-2]",
        "d": "0?[1-9]|1[0-9]",
        "D": "[01][0-9]{2}",
        "S": "[0-9]{1,6}",
    }
    parts |= {
        "Z": "[Zz]|[+-]0[0-9](:?30)?",
        "h": "0?[1-9]",
        "H": "[01]?[0-9]",
        "m": "[0-5]?[0-9]",
        "s": "[0-5]?[0-9]",
    }
    regex = "".join(f"({parts[each.letter]})" if each.letter else re.escape(each.text) for each in tokens)
    texts = pa.array(
        data.draw(st.lists(st.from_regex(f"\\A{regex}\\Z", alphabet=ASCII), min_size=1, max_size=20)),
        pa.string(),
    )

    def read() -> Any:
        try:
            found = parse_dates(texts, [tokens], None)
        except InvalidError as error:
            return str(error)
        return found.utc.tolist(), found.local.tolist()

    by_places = read()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(timestamps, "layout_of", lambda _: None)
        assert read() == by_places


def test_texts_of_one_batch_may_stand_in_several_ways() -> None:
    (tokens,) = [parse_pattern("yyyy-MM-dd HH:mm", PARSED_LETTERS)]
    texts = pa.array(["x", "2024-01-31 10:05", "2024-1-31 10:5", "2024-01-31 10:06"]).slice(1)
    minutes = [moment // 60_000 % 60 for moment in parse_dates(texts, [tokens], None).utc.tolist()]
    assert minutes == [5, 5, 6]
    with pytest.raises(InvalidError, match=r"2024-13-31 10:05.*not a valid date"):
        parse_dates(pa.array(["2024-01-31 10:05", "2024-13-31 10:05"]), [tokens], None)


def test_a_delimiter_that_backtracks_for_ever_is_answered() -> None:
    settings = timestamp_settings(
        {
            TIMEBASED + "timestamp.type": "DATE_STRING",
            TIMEBASED + "input.dateformat": "y" * 64 + "!",
            TIMEBASED + "input.dateformat.list.delimiter.regex": "(y+)+$",
            TIMEBASED + "output.dateformat": "yyyy",
        }
    )
    assert settings.inputs == ("y" * 64 + "!",)


@pytest.mark.parametrize(("delimiter", "kind"), [("(", InvalidError), ("(?=,)", UnsupportedError)])
def test_a_delimiter_that_cannot_be_followed_is_refused(delimiter: str, kind: type[DrawstringError]) -> None:
    with pytest.raises(kind, match=r"delimiter\.regex"):
        maker(
            timestamp_type="DATE_STRING",
            input_dateformat="yyyy",
            output_dateformat="yyyy",
            input_dateformat_list_delimiter_regex=delimiter,
        )
