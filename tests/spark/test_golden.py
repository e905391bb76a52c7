"""Real Hudi's answers on the golden tables are Spark's answers through drawstring.

Queries whose results have the same columns are asked for together, in one Spark job.
"""

from __future__ import annotations

import zipfile
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import cache, reduce
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import drawstring.spark
from drawstring.base.errors import UnsupportedError
from tests.golden.cases import ENCODED_IN_INCREMENTAL, NAMES, TABLES, Case, cases_of
from tests.golden.compare import Row, in_order, rows_of

pytestmark = pytest.mark.spark

TOGETHER = 12
CHUNKS = [NAMES[start : start + TOGETHER] for start in range(0, len(NAMES), TOGETHER)]
RootOf = Callable[[str], str]


@pytest.fixture(scope="module")
def root_of(tmp_path_factory: pytest.TempPathFactory) -> RootOf:
    root = tmp_path_factory.mktemp("golden")

    @cache
    def unpacked(name: str) -> str:
        with zipfile.ZipFile(TABLES / f"{name}.zip") as packed:
            packed.extractall(root / name)
        return str(root / name / name)

    return unpacked


def asked(spark: SparkSession, case: Case, path: str) -> DataFrame:
    if case.query == "incremental":
        return drawstring.spark.read(spark, path, incremental=(case.start, case.end))
    is_optimized = case.query == "read_optimized"
    return drawstring.spark.read(spark, path, as_of=case.start or None, read_optimized=is_optimized)


def answers(frames: Sequence[tuple[Case, DataFrame]]) -> list[tuple[Case, pa.Table]]:
    """Return the rows of queries, those with the same columns by one job."""
    alike = defaultdict(list)
    for case, df in frames:
        alike[df.schema.simpleString()].append((case, df))
    found = []
    for group in alike.values():
        numbered = [df.withColumn("query", F.lit(number)) for number, (_, df) in enumerate(group)]
        together = reduce(DataFrame.union, numbered).toArrow()
        for number, (case, _) in enumerate(group):
            rows = together.filter(pc.equal(together.column("query"), number))
            found.append((case, rows.drop_columns(["query"])))
    return found


def wanted(case: Case) -> list[Row]:
    column = ENCODED_IN_INCREMENTAL.get(case.table) if case.query == "incremental" else None
    return [row if column is None else row | {column: unquote(row[column])} for row in case.rows()]


@pytest.mark.parametrize("names", CHUNKS, ids=lambda names: f"{names[0]}-{names[-1]}")
def test_queries_return_what_real_hudi_returned(
    spark: SparkSession, root_of: RootOf, names: list[str]
) -> None:
    cases = [case for name in names for case in cases_of(name) if case.unsupported is None]
    differing = [
        (case.table, case.name)
        for case, table in answers([(case, asked(spark, case, root_of(case.table))) for case in cases])
        if in_order(rows_of(table, case.shown(table))) != in_order(wanted(case))
    ]
    assert differing == []


def test_what_is_not_supported_is_said_by_spark_too(spark: SparkSession, root_of: RootOf) -> None:
    case = next(case for case in cases_of("v9_mor_payload_partial") if case.unsupported)
    with pytest.raises(UnsupportedError, match=str(case.unsupported)):
        asked(spark, case, root_of(case.table)).collect()
