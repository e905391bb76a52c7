"""One partition whose value is null, or not in its path, leaves Spark's pruning of the others as it is."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import drawstring
import drawstring.spark
from tests.support.tables import COW, MOR, WITHOUT_COMPACTION, create

pytestmark = pytest.mark.spark

FIRST = date(2024, 1, 1)
DAYS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int": (pa.int32(), list(range(6))),
    "string": (pa.string(), [f"d{number}" for number in range(6)]),
    "date": (pa.date32(), [FIRST + timedelta(number) for number in range(6)]),
}
SELECTED = {
    "int": "cast(id as int)",
    "string": "concat('d', id)",
    "date": "date_add(date'2024-01-01', cast(id as int))",
}
PATHS = {
    "plain": {},
    "hive": {"hoodie.datasource.write.hive_style_partitioning": "true"},
    "encoded": {"hoodie.datasource.write.partitionpath.urlencode": "true"},
}
of_paths = pytest.mark.parametrize("properties", PATHS.values(), ids=PATHS)


def visits(kind: str, *more: Any, ts: int = 1) -> pa.Table:
    """Return a row for each of six days, and for some further values."""
    of_column, days = DAYS[kind]
    values = [*days, *more]
    return pa.table(
        {
            "id": pa.array(range(len(values)), pa.int64()),
            "day": pa.array(values, of_column),
            "ts": pa.array([ts] * len(values), pa.int64()),
        }
    )


def made(path: Path, rows: pa.Table, **how: Any) -> drawstring.Table:
    table = create(rows.schema, path, **{"partition_by": "day", **how})
    table.insert(rows)
    return table


def nodes(plan: Any) -> list[Any]:
    """Return the nodes of an executed plan, those of adaptive stages too."""
    name = plan.nodeName()
    if name.startswith("AdaptiveSparkPlan"):
        return nodes(plan.executedPlan())
    if name.endswith("QueryStage"):
        return nodes(plan.plan())
    children = [plan.children().apply(n) for n in range(plan.children().length())]
    return [plan, *(node for child in children for node in nodes(child))]


def run(df: DataFrame) -> tuple[list[tuple[Any, ...]], int, str]:
    """Return the rows of a query, how many files Spark's own reader opened, and the plan."""
    rows = sorted(map(tuple, df.collect()), key=str)
    plan = df._jdf.queryExecution().executedPlan()
    counts = [node.metrics() for node in nodes(plan)]
    files = sum(int(each.apply("numFiles").value()) for each in counts if each.contains("numFiles"))
    return rows, files, plan.toString()


def joined(session: SparkSession, df: DataFrame, kind: str) -> DataFrame:
    """Return the rows of a table in the days that a filtered dimension selects, the second and the fifth."""
    days = session.range(6).where("id % 3 = 1").selectExpr(f"{SELECTED[kind]} as selected")
    return df.join(F.broadcast(days), df.day == F.col("selected")).select(df.id)


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize(("table_type", "read_optimized"), [(COW, False), (MOR, False), (MOR, True)])
@pytest.mark.parametrize("kind", DAYS)
@of_paths
def test_partitions_are_left_out_beside_a_null_one(
    session: SparkSession,
    tmp_path: Path,
    kind: str,
    table_type: str,
    read_optimized: bool,
    version: int,
    properties: dict[str, str],
) -> None:
    made(tmp_path / "t", visits(kind, None), table_type=table_type, version=version, properties=properties)
    df = drawstring.spark.read(session, str(tmp_path / "t"), read_optimized=read_optimized)
    assert run(df)[1] == 7
    rows, files, plan = run(df.where(F.col("day") == DAYS[kind][1][3]).select("id", "day"))
    assert (rows, files) == ([(3, DAYS[kind][1][3])], 1)
    assert "PartitionFilters: [isnotnull(day" in plan
    assert run(df.where("day is null").select("id", "day"))[:2] == ([(6, None)], 1)
    rows, files, plan = run(joined(session, df, kind))
    assert (rows, files) == ([(1,), (4,)], 2)
    assert "dynamicpruning" in plan


@pytest.mark.parametrize("table_type", [COW, MOR])
@of_paths
def test_empty_texts_stay_beside_null_ones(
    session: SparkSession, tmp_path: Path, table_type: str, properties: dict[str, str]
) -> None:
    rows = visits("string", None, "", "default", "__HIVE_DEFAULT_PARTITION__")
    table = made(tmp_path / "t", rows, table_type=table_type, properties=properties)
    df = drawstring.spark.read(session, str(tmp_path / "t")).select("id", "day")
    shown = [*enumerate(DAYS["string"][1]), (6, None), (7, ""), (8, "default")]
    assert run(df)[0] == [*shown, (9, "__HIVE_DEFAULT_PARTITION__")]
    assert run(df.where("day = 'd3'"))[:2] == ([(3, "d3")], 2)
    assert run(df.where("day = ''"))[:2] == ([(7, "")], 1)
    assert run(df.where("day is null"))[0] == [(6, None)]
    rows_found, files, plan = run(joined(session, df, "string"))
    assert (rows_found, files) == ([(1,), (4,)], 3)
    assert "dynamicpruning" in plan
    assert table.scan(["id"], where="day = ''").to_arrow().to_pydict() == {"id": [7]}


@pytest.mark.parametrize("table_type", [COW, MOR])
def test_a_folder_that_tells_no_values_is_read_beside_those_that_match(
    session: SparkSession, tmp_path: Path, table_type: str
) -> None:
    rows = visits("int", 9)
    cities = pa.array(["oslo"] * 6 + ["rome/centre"])
    made(
        tmp_path / "t",
        rows.append_column("city", cities),
        table_type=table_type,
        partition_by=["city", "day"],
    )
    df = drawstring.spark.read(session, str(tmp_path / "t"))
    assert run(df.where("day = 3").select("id", "city"))[:2] == ([(3, "oslo")], 2)
    assert run(df.where("day = 9").select("id", "city"))[:2] == ([(6, "rome/centre")], 1)
    rows_found, files, plan = run(joined(session, df, "int"))
    assert (rows_found, files) == ([(1,), (4,)], 3)
    assert "dynamicpruning" in plan


@pytest.mark.parametrize("version", [6, 9])
def test_log_files_of_one_partition_leave_the_pruning_of_the_others(
    session: SparkSession, tmp_path: Path, version: int
) -> None:
    table = made(tmp_path / "t", visits("int", None), table_type=MOR, version=version)
    table.upsert(visits("int", None, ts=2).slice(4), options=WITHOUT_COMPACTION)
    df = drawstring.spark.read(session, str(tmp_path / "t"))
    assert run(df.where("day = 3").select("id", "ts"))[:2] == ([(3, 1)], 1)
    assert run(df.where("day = 4").select("id", "ts"))[:2] == ([(4, 2)], 0)
    assert run(df.where("day is null").select("id", "ts"))[:2] == ([(6, 2)], 0)
    rows, files, plan = run(joined(session, df, "int"))
    assert (rows, files) == ([(1,), (4,)], 1)
    assert "dynamicpruning" in plan


@pytest.mark.parametrize("table_type", [COW, MOR])
def test_a_row_that_a_global_index_keeps_in_the_null_partition_has_null(
    session: SparkSession, tmp_path: Path, table_type: str
) -> None:
    table = made(tmp_path / "t", visits("int", None), table_type=table_type)
    kept = {"hoodie.index.type": "GLOBAL_SIMPLE", "hoodie.simple.index.update.partition.path": "false"}
    moved = visits("int", 3, ts=2).slice(6)
    table.upsert(moved, options={**kept, **WITHOUT_COMPACTION})
    df = drawstring.spark.read(session, str(tmp_path / "t"))
    assert run(df.where("ts = 2").select("id", "day"))[0] == [(6, None)]
    assert run(df.where("day = 3").select("id"))[0] == [(3,)]
    scan = table.scan(["id", "day"], where="ts = 2")
    assert scan.to_arrow().to_pydict() == {"id": [6], "day": [None]}


@pytest.mark.parametrize("table_type", [COW, MOR])
@pytest.mark.parametrize("version", [6, 9])
@of_paths
def test_files_without_partition_columns_are_read_by_spark_itself(
    session: SparkSession, tmp_path: Path, table_type: str, version: int, properties: dict[str, str]
) -> None:
    dropped = {**properties, "hoodie.datasource.write.drop.partition.columns": "true"}
    made(tmp_path / "t", visits("string", None), table_type=table_type, version=version, properties=dropped)
    df = drawstring.spark.read(session, str(tmp_path / "t")).select("id", "day")
    rows, files, plan = run(df)
    assert (rows, files) == ([*enumerate(DAYS["string"][1]), (6, None)], 7)
    assert "MapInArrow" not in plan
    assert run(df.where("day = 'd3'"))[:2] == ([(3, "d3")], 1)
    assert run(df.where("day is null"))[:2] == ([(6, None)], 1)
    assert run(joined(session, df, "string"))[:2] == ([(1,), (4,)], 2)
