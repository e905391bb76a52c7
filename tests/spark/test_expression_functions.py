"""The functions of expression indexes give what Spark gives, in a session in UTC."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from random import Random

import pyarrow as pa
import pytest
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from drawstring.base.errors import InvalidError
from drawstring.metadata.partitions.expression_index import FUNCTIONS, ExpressionIndex
from tests.support.spark import without_ansi

TEXTS = ["", " a b ", "xxAbcx", "Straße", "ΑΣ ΟΔΟΣ", "İi", "ǆ", "日本語テキスト", "a1b22c333", "\ta\n", None]
DAYS = [dt.date(1, 1, 1), dt.date(1582, 10, 15), dt.date(1969, 12, 31), dt.date(2024, 2, 29), None]
TIMES = [
    dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, dt.UTC),
    dt.datetime(2024, 2, 29, 12, 30, 45, 123_456, dt.UTC),
    dt.datetime(9999, 12, 31, 23, 0, 0, 1, dt.UTC),
    None,
]
SECONDS = [0, -1, 1_700_000_000, 253_402_300_799, -62_135_596_800, None]
COLUMNS = {
    "text": pa.array(TEXTS, pa.string()),
    "day": pa.array(DAYS, pa.date32()),
    "time": pa.array(TIMES, pa.timestamp("us", "UTC")),
    "second": pa.array(SECONDS, pa.int64()),
}
IN_SPARK = {
    "trim": lambda c, s: F.trim(c, *(F.lit(s[n]) for n in s)),
    "ltrim": lambda c, s: F.ltrim(c, *(F.lit(s[n]) for n in s)),
    "rtrim": lambda c, s: F.rtrim(c, *(F.lit(s[n]) for n in s)),
    "substring": lambda c, s: F.substring(c, int(s["pos"]), int(s["len"])),
    "regexp_replace": lambda c, s: F.regexp_replace(c, s["pattern"], s["replacement"]),
    "regexp_extract": lambda c, s: F.regexp_extract(c, s["pattern"], int(s["idx"])),
    "date_format": lambda c, s: F.date_format(c, s["format"]),
    "from_unixtime": lambda c, s: F.from_unixtime(c, *s.values()),
    "date_add": lambda c, s: F.date_add(c, int(s["days"])),
    "date_sub": lambda c, s: F.date_sub(c, int(s["days"])),
    "identity": lambda c, s: c,
}
PATTERN = "yyyy-M-dd HH:mm:ss.SSS"
CASES: list[tuple[str, str, Mapping[str, str]]] = [
    *(("text", name, {}) for name in ("identity", "upper", "lower", "trim", "ltrim", "rtrim", "length")),
    *(("text", name, {"trimString": "xa "}) for name in ("trim", "ltrim", "rtrim")),
    *(("text", "substring", {"pos": pos, "len": size}) for pos in "0134" for size in "029"),
    ("text", "regexp_replace", {"pattern": "([a-z])([0-9]+)", "replacement": r"$2\$<$1>\\"}),
    ("text", "regexp_replace", {"pattern": ".", "replacement": "-"}),
    ("text", "regexp_extract", {"pattern": "([a-z])([0-9]{2,})", "idx": "2"}),
    ("text", "regexp_extract", {"pattern": "b|bc?|x*", "idx": "0"}),
    *(("day", name, {}) for name in ("year", "month", "day", "unix_timestamp", "to_date", "to_timestamp")),
    *(("day", name, {"days": "400"}) for name in ("date_add", "date_sub")),
    ("day", "date_format", {"format": "yy/MM/dd"}),
    *(("time", name, {}) for name in ("year", "month", "day", "hour", "unix_timestamp", "to_date")),
    ("time", "to_timestamp", {}),
    *(("time", name, {"days": "40"}) for name in ("date_add", "date_sub")),
    *(("time", name, {"format": "yyyy"}) for name in ("unix_timestamp", "to_date", "to_timestamp")),
    ("time", "date_format", {"format": PATTERN}),
    ("second", "from_unixtime", {}),
    ("second", "from_unixtime", {"format": PATTERN}),
]


def in_spark(name: str, settings: Mapping[str, str]) -> Column:
    """Return a function of the column in Spark."""
    make = IN_SPARK.get(name, lambda c, s: getattr(F, name)(c, *s.values()))
    return make(F.col("c"), settings)


def test_all_functions_are_compared() -> None:
    assert {name for _, name, _ in CASES} == FUNCTIONS.keys()


PARSED = [
    *(("date", name, {}) for name in ("year", "month", "day", "hour", "to_date", "to_timestamp")),
    *(("date", name, {"days": "3"}) for name in ("date_add", "date_sub")),
    ("date", "unix_timestamp", {}),
    ("date", "date_format", {"format": PATTERN}),
]
PATTERNS = [
    "yyyy-MM-dd", "yyyyMMdd", "yyyy-M-d", "d/M/yy", "MM/dd/yyyy HH:mm:ss", "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'",
    "yyyy-MM-dd HH:mm:ss.SSS", "HH:mm", "dd.MM", "yyyyMMddHHmmss", "'Q'yyyy M", "Hmmss", "yyMMdd",
    "ss.SSSSSSSSS",
]  # fmt: skip
DATES = [
    "", " ", "abc", None, "2024", "2024-2", "2024-02", "2024-02-29", "2023-02-29", "2024-2-9", "2024-02-30",
    "1900-02-29", "2000-02-29", "2024-00-10", "2024-13-10", "2024-04-31", "2024-10-00", "0001-01-01",
    "9999-12-31", "1582-10-10", "1969-12-31 23:59:59.5", " 2024-02-29\t", "\x002024-02-29\x7f",
    "2024-02-29 ", "\u00a02024-02-29", "2024-02-29T", "2024-02-29 x", "2024-02-29Tx\ny", "2024-02-29x",
    "2024-02-", "2024-", "+2024-02-29", "02024-02-29", "0002024-02-29", "00002024-02-29", "24-02-29",
    "024-02-29", "2024-02-29 1", "2024-02-29 24", "2024-02-29 01:02", "2024-02-29 1:2:3",
    "2024-02-29T23:59:59", "2024-02-29 :", "2024-02-29 23:60:00", "2024-02-29 23:59:60",
    "2024-02-29 23:59:59.", "2024-02-29 23:59:59.1234567", "2024-02-29T01:02:03Z", "2024-02-29 01:02:03.25Z",
    "2024-02-29T01:02:03+02:00",
    "2024-02-29 001:02:03", "2024/02/29", "02/29/2024 10:20:30", "02/29/2023 10:20:30", "2/29/2024 10:20:30",
    "29/2/24", "029/02/99", "20240229", "20230229", "20240229235959", "0020240229",
    "2024-02-29T01:02:03.123456Z", "2024-02-29t01:02:03.1z", "2024-02-29 01:02:03.1234", "29.02", "28.02",
    "Q2024 0000002", "q2024 12", "0000000102030", "12.123456789", "12.1234567891", "12.", "-5-1-1",
    "2024--1-1", "2024-+1-1", "\u0662\u0660\u0662\u0664-01-01",
]  # fmt: skip
UNKNOWN = [
    "-0001-01-01", "-0000-01-01", "+12345-01-01", "12345-01-01", "12345-01-01 10:11:12", "12:30",
    "T12:30:01", "T12", "2024-02-29 01:02:03.5 Europe/Berlin",
    "2024-02-29 01:02:03 UTC", "23:59", "1:02", "24:00", "2024-02-29 01:02:03.12x", "+002024-02-29", "10203",
    "102030", "240229", "0000-01-01",
]  # fmt: skip
"""Texts some of whose times Spark alone knows."""


def mistyped() -> Iterator[str]:
    """Yield texts that differ from dates in a few characters."""
    random = Random(19)
    known = [each for each in DATES if each and each[:1].isdigit()]
    for _ in range(1000):
        text = [*random.choice(known)]
        for _ in range(random.randint(1, 3)):
            at = random.randrange(len(text) + 1)
            text[at : at + random.randint(0, 1)] = random.choice(["", *"0123456789 -/:.TZ+Qq"])
        yield "".join(text)


def known_values(index: ExpressionIndex, texts: list[str | None]) -> tuple[list[int], pa.Array, set[str]]:
    """Return which texts an index has values of, the values, and the texts that it refuses.

    It names a text that it refuses, which is left out then, until it refuses none; or else each is asked for.
    """
    refused: set[str] = set()
    while True:
        known = [number for number, text in enumerate(texts) if text not in refused]
        left = [texts[number] for number in known]
        try:
            return known, index.values(pa.array(left, pa.string())), refused
        except InvalidError as error:
            named = {text for text in left if text is not None and f"time {text!r} has" in error.message}
            refused |= named or {text for text in left if text is not None and is_refused(index, text)}


def is_refused(index: ExpressionIndex, text: str) -> bool:
    try:
        index.values(pa.array([text]))
    except InvalidError:
        return True
    return False


@pytest.mark.spark
def test_dates_in_texts_are_those_of_spark(spark: SparkSession) -> None:
    parsers = ("to_date", "to_timestamp", "unix_timestamp")
    cases = [*PARSED, *(("date", name, {"format": each}) for name in parsers for each in PATTERNS)]
    texts = [*DATES, *UNKNOWN, *mistyped()]
    rows = spark.createDataFrame(pa.table({"n": range(len(texts)), "c": pa.array(texts, pa.string())}))
    with without_ansi(spark):
        wanted = rows.select("n", *(in_spark(*each[1:]).alias(f"v{at}") for at, each in enumerate(cases)))
        found = wanted.toArrow().sort_by("n")
    refused = set()
    for at, (_, name, settings) in enumerate(cases):
        index = ExpressionIndex("expr_index_x", "column_stats", "c", name, settings)
        index.check()
        theirs = found.column(f"v{at}").combine_chunks()
        known, ours, unknown = known_values(index, texts)
        refused |= unknown
        assert ours.type == theirs.type, name
        shown = (each.cast(pa.string()).to_pylist() for each in (ours, theirs.take(pa.array(known))))
        compared = zip((texts[number] for number in known), *shown, strict=True)
        wrong = [(text, our, their) for text, our, their in compared if our != their]
        assert not wrong, (name, settings, wrong)
    assert refused >= {*UNKNOWN}
    assert not refused & {*DATES}, refused & {*DATES}
    assert len(refused) < len(texts) / 8


@pytest.mark.spark
@pytest.mark.parametrize("column", COLUMNS)
def test_values_are_those_of_spark(spark: SparkSession, column: str) -> None:
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    values = COLUMNS[column]
    cases = [(name, settings) for of, name, settings in CASES if of == column]
    rows = spark.createDataFrame(pa.table({"n": list(range(len(values))), "c": values}))
    wanted = rows.select("n", *(in_spark(*each).alias(f"v{at}") for at, each in enumerate(cases)))
    found = wanted.toArrow().sort_by("n")
    for at, (name, settings) in enumerate(cases):
        index = ExpressionIndex("expr_index_x", "column_stats", "c", name, settings)
        index.check()
        ours = index.values(values)
        theirs = found.column(f"v{at}").combine_chunks()
        assert ours.type == theirs.type, name
        assert ours.equals(theirs), (name, settings, ours.diff(theirs))
