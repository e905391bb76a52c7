"""What Spark's optimizer leaves out of a query is not read, and answers stay what they are."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import drawstring
import drawstring.spark
from drawstring.query import scan
from drawstring.spark.reading import planner, relation
from drawstring.spark.reading.filters import Facts, conditions, sql_conditions
from tests.support.tables import create

pytestmark = pytest.mark.spark

NAN = float("nan")
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("city", pa.string()),
        ("ts", pa.int64()),
        ("seats", pa.int32()),
        ("fare", pa.float64()),
        ("tip", pa.float32()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("good", pa.bool_()),
        ("note", pa.struct([("a", pa.int32()), ("b", pa.string())])),
    ]
)
Reads = list[tuple[tuple[str, ...], str, int]]


def rides(numbers: range, ts: int) -> pa.Table:
    fares = [None, NAN, -0.0, 0.0, 1.5, -2.0, 30.0, float("inf")]
    rows = [
        {
            "id": f"r{number}",
            "city": ["x", "z z"][number % 2],
            "ts": ts,
            "seats": None if number % 5 == 0 else number % 4,
            "fare": fares[number % 8],
            "tip": fares[(number + 3) % 8],
            "day": date(2024, 1, 1 + number % 3),
            "at": datetime(2024, 1, 1, number % 24, tzinfo=UTC),
            "good": [True, False, None][number % 3],
            "note": None if number % 7 == 0 else {"a": number % 3, "b": f"n{number}"},
        }
        for number in numbers
    ]
    return pa.Table.from_pylist(rows, SCHEMA)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A table with logs in all slices: two buckets in two cities."""
    path = str(tmp_path_factory.mktemp("pushdown") / "rides")
    table = create(
        SCHEMA,
        path,
        table_type="MERGE_ON_READ",
        properties={"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"},
    )
    table.insert(rides(range(60), 1))
    table.upsert(rides(range(30, 90), 2))
    table.delete(pa.table({"id": ["r4", "r5"], "city": ["x", "z z"], "ts": [9, 9]}))
    return path


@pytest.fixture
def df(spark: SparkSession, path: str) -> DataFrame:
    drawstring.spark.register(spark)
    return spark.read.format("hudi").load(path)


@pytest.fixture(scope="module")
def plain(spark: SparkSession, path: str) -> DataFrame:
    """The same rows, read by the embedded engine."""
    return spark.createDataFrame(drawstring.open(path).scan().to_arrow())


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    """What the workers are told to read: columns, condition, number of slices."""
    found: Reads = []

    def spy(tasks: Any, columns: Any, where: Any) -> Any:
        left = scan.narrowed(tasks, columns, where)
        assert all(task.columns == tuple(columns) for task in left)
        found.append((tuple(columns), str(where), len(left)))
        return left

    monkeypatch.setattr(relation, "narrowed", spy)
    return found


def answers(df: DataFrame) -> list[str]:
    return sorted(map(str, df.collect()))


def test_only_wanted_columns_are_read(df: DataFrame, reads: Reads) -> None:
    df.agg(F.sum("seats"), F.max("ts")).collect()
    assert reads[-1] == (("ts", "seats"), "None", 4)
    df.count()
    assert reads[-1][0] == ("_hoodie_record_key",)
    df.createOrReplaceTempView("rides_of_pushdown")
    df.sparkSession.sql("SELECT day FROM rides_of_pushdown ORDER BY good LIMIT 3").collect()
    assert reads[-1][0] == ("day", "good")


def test_only_partitions_and_buckets_that_match_are_read(df: DataFrame, reads: Reads) -> None:
    df.where("city = 'x'").select("ts").collect()
    assert reads[-1][2] == 2
    assert df.where("id = 'r9'").count() == 1
    assert reads[-1][2] == 2
    assert df.where("id = 'r9' and city = 'z z'").count() == 1
    assert reads[-1][2] == 1
    assert df.where("city = 'nowhere'").count() == 0
    assert reads[-1][2] == 0


CONDITIONS = [
    "seats = 1",
    "seats > 1 and seats is not null",
    "seats is null",
    "not seats = 1",
    "seats <=> null",
    "seats in (1, 3, null)",
    "seats not in (1, 3)",
    "2 <= seats",
    "fare > 1",
    "fare >= double('NaN')",
    "fare < 30",
    "fare = 0.0",
    "fare in (double('NaN'), 1.5)",
    "tip <= 1.5",
    "tip > float(1.5) or fare is null",
    "day >= '2024-01-02'",
    "at = timestamp '2024-01-01 03:00:00'",
    "at between '2024-01-01 03:00:00' and '2024-01-01 05:00:00'",
    "good",
    "not good",
    "good = false or seats = 2",
    "note.a = 1",
    "note is null",
    "city > 'x' and id like 'r1%'",
    "city collate UTF8_LCASE = 'X'",
    "upper(city) = 'X'",
    "seats + 1 = 2",
    "_hoodie_partition_path = 'x'",
    "false",
]


def test_conditions_keep_the_rows_that_spark_keeps(df: DataFrame, plain: DataFrame) -> None:
    def kept(rows: DataFrame) -> list[str]:
        parts = [rows.where(where).select(F.lit(where), "id") for where in CONDITIONS]
        return answers(reduce(DataFrame.union, parts))

    assert kept(df) == kept(plain)


def doubled(batches: Any) -> Any:
    for batch in batches:
        yield from (batch, batch)


QUERIES: dict[str, Callable[[DataFrame], DataFrame]] = {
    "filter of another column": lambda df: df.where("fare > 1").select("id"),
    "self join": lambda df: df.alias("l").join(df.alias("r"), "id").select("l.seats", "r.day"),
    "self join of parts": lambda df: df.where("city = 'x'").join(df.select("seats", "id"), "id").select("ts"),
    "union": lambda df: df.select("id", "city").union(df.where("city = 'z z'").select("city", "id")),
    "subquery": lambda df: df.where(F.col("seats") == df.agg(F.max("seats")).scalar()).select("id"),
    "exists": lambda df: df.alias("o").where(
        df.alias("i").where(F.col("i.day").outer() == F.col("i.day")).exists()
    ),
    "window": lambda df: df.selectExpr("id", "row_number() over (partition by city order by id)"),
    "nested": lambda df: df.selectExpr("note.b"),
    "map in arrow": lambda df: df.select("id", "fare").mapInArrow(doubled, "id string, fare double"),
    "sorted": lambda df: df.orderBy("ts", "id").limit(5).select("seats"),
    "renamed": lambda df: df.withColumnRenamed("city", "town").where("town = 'x'").select("town"),
    "replaced": lambda df: df.withColumn("seats", F.lit(7)).where("seats = 7").select("seats", "id"),
    "repartitioned": lambda df: df.repartition(3, "city").groupBy("city").count(),
    "broadcast": lambda df: df.join(F.broadcast(df.select("city").distinct()), "city").select("id"),
}


@pytest.mark.parametrize("name", QUERIES)
def test_every_query_has_its_answer(df: DataFrame, plain: DataFrame, name: str) -> None:
    assert answers(QUERIES[name](df)) == answers(QUERIES[name](plain))


def test_every_action_has_its_rows(df: DataFrame, plain: DataFrame, tmp_path: Path) -> None:
    some = df.where("city = 'x'").select("id")
    ids = sorted(row.id for row in plain.where("city = 'x'").collect())
    some.write.parquet(str(tmp_path / "copy"))
    found = {
        "arrow": some.toArrow()["id"].to_pylist(),
        "pandas": some.toPandas()["id"].tolist(),
        "iterator": [row.id for row in some.toLocalIterator()],
        "rdd": some.rdd.map(lambda row: row.id).collect(),
        "copy": [row.id for row in df.sparkSession.read.parquet(str(tmp_path / "copy")).collect()],
        "tail": [row.id for row in some.tail(100)],
        "take": [row.id for row in some.take(100)],
    }
    assert {name: sorted(rows) for name, rows in found.items()} == dict.fromkeys(found, ids)
    assert not some.isEmpty()


def test_what_is_cached_has_all_its_columns(df: DataFrame, plain: DataFrame) -> None:
    kept = df.where("city = 'x'").cache()
    try:
        for name in ("id", "day"):
            assert answers(kept.select(name)) == answers(plain.where("city = 'x'").select(name))
        assert answers(df.where("city = 'x'").select("ts")) == answers(plain.where("city = 'x'").select("ts"))
        assert answers(df.select("fare")) == answers(plain.select("fare"))
    finally:
        kept.unpersist()


def test_threads_do_not_see_each_other(df: DataFrame, plain: DataFrame) -> None:
    names = ["id", "city", "fare", "day", "note", "seats"]
    with ThreadPoolExecutor(len(names)) as pool:
        found = list(pool.map(lambda name: answers(df.select(name)), names))
    assert found == [answers(plain.select(name)) for name in names]


def test_the_same_slices_are_read_once_in_a_query(df: DataFrame) -> None:
    sums = df.groupBy("city").agg(F.sum("seats").alias("all"))
    joined = sums.join(sums.hint("merge").withColumnRenamed("all", "again"), "city")
    joined.collect()
    assert "ReusedExchange" in joined._jdf.queryExecution().executedPlan().toString()


def test_slices_are_read_as_well_where_no_planner_asks(
    spark: SparkSession, path: str, plain: DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planner, "install", lambda spark: False)
    other = spark.newSession()
    df = drawstring.spark.read(other, path).where("fare > 1 and city = 'x'").select("id", "ts")
    assert "BatchScan" in df._jdf.queryExecution().executedPlan().toString()
    assert answers(df) == answers(plain.where("fare > 1 and city = 'x'").select("id", "ts"))


def test_a_session_is_changed_once(spark: SparkSession, path: str) -> None:
    other = spark.newSession()
    installed = []
    for _ in range(2):
        drawstring.spark.read(other, path)
        strategies = other._jsparkSession.experimental().extraStrategies()
        installed.append([strategies.apply(n).getClass().getName() for n in range(strategies.length())])
    assert installed[0] == installed[1] == sorted(set(installed[0]))


def test_spark_knows_how_large_a_table_is(df: DataFrame, path: str) -> None:
    stored = sum(file.stat().st_size for file in Path(path).rglob("*") if ".hoodie" not in file.parts)
    size = int(df._jdf.queryExecution().optimizedPlan().stats().sizeInBytes())
    assert stored / 2 < size <= stored


def test_a_conjunct_without_a_translation_leaves_the_others_at_any_depth() -> None:
    def both(name: str, *sides: Facts) -> Facts:
        return {"name": name, "of": sides}

    def equal(column: Facts, value: Facts) -> Facts:
        return {"name": "=", "of": (column, value)}

    unknown: Facts = {"name": "REGEXP", "of": ({"column": ["city"]},)}
    few = equal({"column": ["seats"]}, {"type": "int", "value": "1"})
    upper = equal({"name": "UPPER", "of": ({"column": ["city"]},)}, {"type": "string", "value": "X"})
    nested = both("OR", both("AND", few, unknown), both("AND", unknown, few))
    assert str(conditions([nested, unknown], SCHEMA)) == "((seats == 1) or (seats == 1))"
    assert conditions([both("OR", few, both("AND", unknown, unknown))], SCHEMA) is None
    nested = both("OR", both("AND", upper, unknown), upper)
    text = "(upper(`city`) = 'X')"
    assert sql_conditions([nested, unknown], SCHEMA) == f"(({text}) OR {text})"
    assert sql_conditions([both("OR", upper, unknown)], SCHEMA) is None
