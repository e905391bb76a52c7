"""Real Hudi's answers on the golden tables are Spark's answers through drawstring.

Which file slices a query reads, and what comes out of them, is the same code on both engines, and the
embedded one is asked every query there is. What Spark adds is asked here: types, Spark's own reader of files
without logs, the way of tasks to its workers. Two queries on one table of each kind do for that; `make
test-long` asks them all of all tables.

Queries whose results have the same columns are asked for together, in one Spark job.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import drawstring
import drawstring.spark
from drawstring.base.errors import UnsupportedError
from tests.support.golden import NAMES, Case, cases_of, chosen, of_each_kind, unpack, wanted
from tests.support.golden_rows import in_order, rows_of

pytestmark = pytest.mark.spark

TOGETHER = 24
"""Tables in a test."""
OF_EACH_KIND = sorted(of_each_kind(NAMES))
IN_A_JOB = 16
"""Queries: each task of a job is sent the plan of all of them."""

RootOf = Callable[[str], str]


def chunks(names: list[str]) -> list[list[str]]:
    return [names[start : start + TOGETHER] for start in range(0, len(names), TOGETHER)]


@pytest.fixture(scope="module")
def root_of(tmp_path_factory: pytest.TempPathFactory) -> RootOf:
    root = tmp_path_factory.mktemp("golden")

    return cache(lambda name: str(unpack(name, root / name)))


def asked(spark: SparkSession, case: Case, path: str) -> DataFrame:
    if case.query == "incremental":
        return drawstring.spark.read(spark, path, incremental=(case.start, case.end))
    if case.query == "cdc":
        return drawstring.spark.changes(spark, path, case.start, case.end)
    is_optimized = case.query == "read_optimized"
    return drawstring.spark.read(spark, path, as_of=case.start or None, read_optimized=is_optimized)


def answers(frames: Sequence[tuple[Case, DataFrame]]) -> list[tuple[Case, pa.Table]]:
    """Return the rows of queries, those with the same columns by one job."""
    alike = defaultdict(list)
    for case, df in frames:
        alike[df.schema.simpleString()].append((case, df))
    found = []
    for group in (
        all_[at : at + IN_A_JOB] for all_ in alike.values() for at in range(0, len(all_), IN_A_JOB)
    ):
        numbered = [df.withColumn("query", F.lit(number)) for number, (_, df) in enumerate(group)]
        together = united(numbered).toArrow()
        for number, (case, _) in enumerate(group):
            rows = together.filter(pc.equal(together.column("query"), number))
            found.append((case, rows.drop_columns(["query"])))
    return found


def united(frames: Sequence[DataFrame]) -> DataFrame:
    """Return the rows of all: by halves, for Spark looks at the whole plan each time that one is added."""
    half = len(frames) // 2
    return united(frames[:half]).union(united(frames[half:])) if half else frames[0]


def asked_first(name: str) -> list[Case]:
    """Return the newest rows of a table, and one more of the chosen queries, by turns."""
    newest, *others = chosen(name)
    number = NAMES.index(name)
    return [newest, *others[number % len(others) :][:1]] if others else [newest]


@pytest.mark.parametrize("names", chunks(OF_EACH_KIND), ids=lambda names: f"{names[0]}-{names[-1]}")
def test_queries_return_what_real_hudi_returned(
    spark: SparkSession, root_of: RootOf, names: list[str]
) -> None:
    check(spark, root_of, [case for name in names for case in asked_first(name)])


@pytest.mark.long
@pytest.mark.parametrize("names", chunks(NAMES), ids=lambda names: f"{names[0]}-{names[-1]}")
def test_all_queries_return_what_real_hudi_returned(
    spark: SparkSession, root_of: RootOf, names: list[str]
) -> None:
    check(spark, root_of, [case for name in names for case in cases_of(name)])


def check(spark: SparkSession, root_of: RootOf, cases: list[Case]) -> None:
    differing = [
        (case.table, case.name)
        for case, table in answers([(case, asked(spark, case, root_of(case.table))) for case in cases])
        if in_order(rows_of(table, case.shown(table))) != in_order(wanted(case))
    ]
    assert differing == []


OWN_MERGER = "com.example.LongestName"


def with_own_merger(root: str) -> str:
    """Let a table ask for a merger of the user's own."""
    properties = Path(root) / ".hoodie/hoodie.properties"
    text = properties.read_text().replace("EVENT_TIME_ORDERING", "CUSTOM")
    properties.write_text(f"{text}\nhoodie.record.merge.strategy.id={OWN_MERGER}\n")
    return root


def longest_name(older: pa.Table, newer: pa.Table) -> pa.Table:
    is_longer = pc.greater(pc.utf8_length(older["name"]), pc.utf8_length(newer["name"]))
    return newer.set_column(
        newer.schema.get_field_index("name"), "name", pc.if_else(is_longer, older["name"], newer["name"])
    )


def test_a_merger_that_nobody_registered_is_asked_for_by_name(spark: SparkSession, tmp_path: Path) -> None:
    root = with_own_merger(str(unpack("v9_mor_event_time", tmp_path)))
    with pytest.raises(UnsupportedError, match=f"register_merger\\('{OWN_MERGER}'"):
        drawstring.spark.read(spark, root).collect()


def test_a_registered_merger_runs_in_the_workers(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("drawstring.config.table_types._mergers", {})
    root = with_own_merger(str(unpack("v9_mor_event_time", tmp_path)))
    drawstring.register_merger(OWN_MERGER, longest_name)
    found = drawstring.spark.read(spark, root).toArrow()
    here = drawstring.open(root).scan().to_arrow()
    assert in_order(rows_of(found)) == in_order(rows_of(here))
