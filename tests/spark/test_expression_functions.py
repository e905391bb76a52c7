"""The functions of expression indexes give what Spark gives, in a session in UTC."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping

import pyarrow as pa
import pytest
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from drawstring.metadata.expressions.functions import FUNCTIONS
from drawstring.metadata.expressions.index import ExpressionIndex

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
    *(("day", name, {}) for name in ("year", "month", "day", "unix_timestamp", "to_date")),
    *(("day", name, {"days": "400"}) for name in ("date_add", "date_sub")),
    ("day", "date_format", {"format": "yy/MM/dd"}),
    *(("time", name, {}) for name in ("year", "month", "day", "hour", "unix_timestamp", "to_date")),
    ("time", "to_timestamp", {}),
    ("time", "date_format", {"format": PATTERN}),
    ("second", "from_unixtime", {}),
    ("second", "from_unixtime", {"format": PATTERN}),
]


def test_all_functions_are_compared() -> None:
    assert {name for _, name, _ in CASES} == FUNCTIONS.keys()


@pytest.mark.spark
@pytest.mark.parametrize("column", COLUMNS)
def test_values_are_those_of_spark(spark: SparkSession, column: str) -> None:
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    values = COLUMNS[column]
    cases = [(name, settings) for of, name, settings in CASES if of == column]
    rows = spark.createDataFrame(pa.table({"n": list(range(len(values))), "c": values}))

    def in_spark(name: str, settings: Mapping[str, str]) -> Column:
        make = IN_SPARK.get(name, lambda c, s: getattr(F, name)(c))
        return make(F.col("c"), settings)

    wanted = rows.select("n", *(in_spark(*each).alias(f"v{at}") for at, each in enumerate(cases)))
    found = wanted.toArrow().sort_by("n")
    for at, (name, settings) in enumerate(cases):
        index = ExpressionIndex("expr_index_x", "column_stats", "c", name, settings)
        index.check()
        ours = index.values(values)
        theirs = found.column(f"v{at}").combine_chunks()
        assert ours.type == theirs.type, name
        assert ours.equals(theirs), (name, settings, ours.diff(theirs))
