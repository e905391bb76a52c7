"""Which slices Spark's own Parquet reader reads, and which go through Python."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import drawstring
import drawstring.spark
from drawstring.base.errors import CorruptTableError, InvalidError
from drawstring.spark import jvm
from drawstring.spark.reading.dataframe import fits
from tests.support.tables import create

NAMES = ["a b", "ä", "x=y", "p%20q", "[z]", "c:d", "{e}", "f*", "g?", "h'i", 'j"k', "l#m", "n&o"]


def plan_of(df: DataFrame) -> Any:
    return df._jdf.queryExecution().executedPlan()


def rows_by(df: DataFrame, reader: str) -> bool:
    return reader in plan_of(df).toString()


def rides(*numbers: int, ts: int = 1, cities: tuple[str, ...] = ("amsterdam", "berlin")) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "city": pa.array([cities[number % len(cities)] for number in numbers], pa.string()),
            "ts": pa.array([ts] * len(numbers), pa.int32()),
        }
    )


def created(path: Path, table: pa.Table, **more: str) -> drawstring.Table:
    return create(table.schema, path, **more)


@pytest.mark.spark
def test_files_without_logs_are_read_by_spark_itself(spark: SparkSession, tmp_path: Path) -> None:
    table = created(tmp_path / "t", rides())
    table.insert(rides(1, 2, 3))
    df = drawstring.spark.read(spark, str(tmp_path / "t"), columns=["id"], where="ts = 1 and city = 'berlin'")
    assert rows_by(df, "FileScan parquet")
    assert not rows_by(df, "MapInArrow")
    assert sorted(row.id for row in df.collect()) == [1, 3]


@pytest.mark.spark
def test_files_with_logs_go_through_python(spark: SparkSession, tmp_path: Path) -> None:
    table = created(tmp_path / "t", rides(), table_type="MERGE_ON_READ")
    table.insert(rides(1, 2, 3))
    table.upsert(rides(1, ts=5))
    df = drawstring.spark.read(spark, str(tmp_path / "t"), columns=["id", "ts"])
    assert rows_by(df, "FileScan parquet")
    assert rows_by(df, "MapInArrow")
    assert sorted(map(tuple, df.collect())) == [(1, 5), (2, 1), (3, 1)]
    read_optimized = drawstring.spark.read(spark, str(tmp_path / "t"), read_optimized=True)
    assert not rows_by(read_optimized, "MapInArrow")


@pytest.mark.spark
def test_conditions_that_only_arrow_knows_go_through_python(spark: SparkSession, tmp_path: Path) -> None:
    created(tmp_path / "t", rides()).insert(rides(1, 2, 3))
    df = drawstring.spark.read(spark, str(tmp_path / "t"), where=pc.field("id") > 2)
    assert not rows_by(df, "FileScan parquet")
    assert [row.id for row in df.collect()] == [3]


@pytest.mark.spark
@pytest.mark.parametrize(
    "where",
    [
        "ts / 2 > 0.4",
        "fare > 5",
        "NOT fare <= 5",
        "fare = fare",
        "id NOT LIKE '1%'",
        "(ts - 2) % 3 = -1 AND id RLIKE '^[1-9]$' AND concat(id, '''s') = '1''s'",
    ],
)
def test_a_condition_means_the_same_with_and_without_logs(
    spark: SparkSession, tmp_path: Path, where: str
) -> None:
    def fares(city: str) -> pa.Table:
        return pa.table(
            {"id": ["1", "2"], "city": [city] * 2, "ts": [1, 0], "fare": [float("nan"), 1.0]},
            schema=pa.schema(
                [("id", pa.string()), ("city", pa.string()), ("ts", pa.int64()), ("fare", pa.float64())]
            ),
        )

    table = created(tmp_path / "t", fares("x"), table_type="MERGE_ON_READ")
    table.insert(pa.concat_tables([fares("logs"), fares("none")]))
    table.upsert(fares("logs"))
    df = drawstring.spark.read(spark, str(tmp_path / "t"), columns=["id", "city"], where=where)
    assert rows_by(df, "FileScan parquet")
    assert rows_by(df, "MapInArrow")
    found = {city: [row.id for row in df.collect() if row.city == city] for city in ("logs", "none")}
    assert sorted(found["logs"]) == sorted(found["none"]) != []


@pytest.mark.spark
def test_files_older_than_a_widening_go_through_python(spark: SparkSession, tmp_path: Path) -> None:
    def seats(rows: pa.Table, kind: pa.DataType) -> pa.Table:
        return rows.append_column("seats", pa.array([4] * len(rows), kind))

    table = created(tmp_path / "t", seats(rides(), pa.int32()))
    table.insert(seats(rides(2, 4), pa.int32()))
    table.upsert(seats(rides(1, 3), pa.int64()))
    df = drawstring.spark.read(spark, str(tmp_path / "t"), columns=["id", "seats"])
    assert dict(df.dtypes) == {"id": "bigint", "seats": "bigint"}
    assert rows_by(df, "FileScan parquet")
    assert rows_by(df, "MapInArrow")
    assert sorted(map(tuple, df.collect())) == [(1, 4), (2, 4), (3, 4), (4, 4)]
    others = drawstring.spark.read(spark, str(tmp_path / "t"), columns=["id"])
    assert not rows_by(others, "MapInArrow")


@pytest.mark.spark
@pytest.mark.parametrize("encode", ["false", "true"])
def test_folders_with_odd_names_are_read(spark: SparkSession, tmp_path: Path, encode: str) -> None:
    properties = {
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.datasource.write.partitionpath.urlencode": encode,
    }
    table = created(tmp_path / "t", rides(), properties=properties)  # type: ignore[arg-type]
    table.insert(rides(*range(len(NAMES)), cities=tuple(NAMES)))
    df = drawstring.spark.read(spark, str(tmp_path / "t"), columns=["id", "city"])
    assert sorted(map(tuple, df.collect())) == list(enumerate(NAMES))


def files_read(df: DataFrame) -> int:
    """Return how many files Spark's own reader opened for an action on rows."""
    df.collect()
    leaves = plan_of(df).collectLeaves()
    return sum(int(leaves.apply(n).metrics().apply("numFiles").value()) for n in range(leaves.length()))


@pytest.mark.spark
def test_partitions_that_cannot_match_are_not_read(spark: SparkSession, tmp_path: Path) -> None:
    table = created(tmp_path / "t", rides())
    table.insert(rides(*range(40), cities=("a", "b", "it's", "d 4")))
    table.upsert(rides(1, ts=7, cities=("b", "b")))
    df = drawstring.spark.read(spark, str(tmp_path / "t"))
    assert files_read(df) == 4
    found = df.where("city = 'b'").select("id", "city", "ts")
    assert files_read(found) == 1
    assert sorted(map(tuple, found.collect())) == [(1, "b", 7), *((n, "b", 1) for n in range(5, 40, 4))]
    assert files_read(df.where("city in ('a', 'd 4') and id > 3").select("id")) == 2
    assert files_read(df.where("city like '%s'")) == 1
    assert df.where("city = 'nowhere'").count() == 0


@pytest.mark.spark
@pytest.mark.parametrize("logged", ["a", "b"])
def test_a_join_prunes_files_beside_slices_with_logs(
    spark: SparkSession, tmp_path: Path, logged: str
) -> None:
    table = created(tmp_path / "t", rides(), table_type="MERGE_ON_READ")
    table.insert(rides(*range(8), cities=("a", "b", "c", "d")))
    table.upsert(rides("abcd".index(logged), ts=5, cities=(logged,)))
    df = drawstring.spark.read(spark, str(tmp_path / "t"))
    selected = spark.range(4).where("id % 2 = 1").selectExpr("substr('abcd', cast(id as int) + 1, 1) as name")
    joined = df.join(F.broadcast(selected), df.city == F.col("name")).select(df.id)
    assert sorted(row.id for row in joined.collect()) == [1, 3, 5, 7]
    assert rows_by(joined, "MapInArrow")
    assert rows_by(joined, "dynamicpruning")


@pytest.mark.spark
def test_no_job_lists_many_files_again(spark: SparkSession, tmp_path: Path) -> None:
    table = created(tmp_path / "t", rides())
    cities = tuple(f"c{number}" for number in range(40))
    table.insert(rides(*range(40), cities=cities))
    spark.sparkContext.setJobGroup("many files", "")
    try:
        df = drawstring.spark.read(spark, str(tmp_path / "t"))
        assert not spark.sparkContext.statusTracker().getJobIdsForGroup("many files")
        assert files_read(df) == 40
    finally:
        spark.sparkContext._jsc.clearJobGroup()


@pytest.mark.spark
def test_a_spark_that_compiles_nothing_reads_files_in_python(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway = spark.sparkContext._gateway
    assert jvm.instance(spark, "Gone") is None
    monkeypatch.setitem(jvm._instances[gateway], "BaseFiles", None)
    table = created(tmp_path / "t", rides())
    table.insert(rides(1, 3))
    df = drawstring.spark.read(spark, str(tmp_path / "t")).select("id", "ts")
    assert rows_by(df, "MapInArrow")
    assert sorted(map(tuple, df.collect())) == [(1, 1), (3, 1)]


@pytest.mark.spark
def test_files_are_those_of_the_read_after_a_refresh(spark: SparkSession, tmp_path: Path) -> None:
    table = created(tmp_path / "t", rides())
    table.insert(rides(1, 3))
    df = drawstring.spark.read(spark, str(tmp_path / "t")).select("id", "ts").cache()
    try:
        table.upsert(rides(1, ts=7))
        spark.catalog.refreshByPath(str(tmp_path / "t"))
        assert sorted(map(tuple, df.collect())) == [(1, 1), (3, 1)]
    finally:
        df.unpersist()


@pytest.mark.spark
def test_values_of_all_types_come_from_folders(spark: SparkSession, tmp_path: Path) -> None:
    columns = {
        "flag": pa.array([True, False]),
        "day": pa.array([date(2024, 1, 2), date(1969, 12, 31)]),
        "small": pa.array([-3, 4], pa.int16()),
        "large": pa.array([7, 1 << 40]),
    }
    rows = pa.table({"id": ["a", "b"], "ts": [1, 1], **columns})
    for name in columns:
        path = str(tmp_path / name)
        made = drawstring.create(path, rows.schema, record_key="id", partition_by=name, ordering="ts")
        made.insert(rows)
        df = drawstring.spark.read(spark, path, columns=rows.schema.names)
        assert df.orderBy("id").collect() == spark.createDataFrame(rows).orderBy("id").collect()
        literal = F.lit(rows[name][1].as_py()).cast(df.schema[name].dataType)
        assert files_read(df.where(df[name] == literal)) == 1


@pytest.mark.spark
def test_an_empty_table_has_its_columns(spark: SparkSession, tmp_path: Path) -> None:
    created(tmp_path / "t", rides())
    df = drawstring.spark.read(spark, str(tmp_path / "t"))
    assert df.count() == 0
    assert df.columns[-3:] == ["id", "city", "ts"]


STRUCT = pa.struct([("a", pa.int32()), ("b", pa.list_(pa.float32()))])


@pytest.mark.parametrize(
    ("stored", "wanted", "can"),
    [
        (pa.int64(), pa.int64(), True),
        (pa.int32(), pa.int64(), False),
        (pa.timestamp("ms", "UTC"), pa.timestamp("us", "UTC"), True),
        (pa.timestamp("us", "UTC"), pa.timestamp("ms", "UTC"), False),
        (pa.list_(pa.timestamp("us", "UTC")), pa.list_(pa.timestamp("ms", "UTC")), False),
        (pa.timestamp("us"), pa.timestamp("us", "UTC"), False),
        (pa.decimal128(5, 2), pa.decimal128(7, 2), False),
        (pa.time64("us"), pa.time64("us"), False),
        (STRUCT, pa.struct([*STRUCT, ("c", pa.string())]), True),
        (STRUCT, pa.struct([("a", pa.int64())]), False),
        (pa.list_(STRUCT), pa.list_(pa.field("array", STRUCT)), True),
        (pa.map_(pa.string(), pa.int32()), pa.map_(pa.string(), pa.int64()), False),
    ],
)
def test_spark_reads_what_only_lacks_columns(stored: pa.DataType, wanted: pa.DataType, can: bool) -> None:
    more = pa.field("more", pa.string())
    assert fits(pa.schema([("x", stored)]), pa.schema([("x", wanted), more])) is can


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore:toPandas attempted Arrow optimization")
@pytest.mark.parametrize("action", ["collect", "count", "toPandas", "show", "write", "sql"])
def test_a_damaged_log_is_told_by_every_action(spark: SparkSession, tmp_path: Path, action: str) -> None:
    table = created(tmp_path / "t", rides(), table_type="MERGE_ON_READ")
    table.insert(rides(1, 2, 3))
    table.upsert(rides(1, ts=5))
    (log,) = (tmp_path / "t/berlin").glob(".*.log.*")
    log.write_bytes(log.read_bytes()[:50])
    drawstring.spark.register(spark)
    df = spark.read.format("hudi").load(str(tmp_path / "t"))
    df.createOrReplaceTempView("damaged")
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW damaged_in_sql USING hudi OPTIONS (path '{tmp_path / 't'}')")
    actions = {
        "collect": df.collect,
        "count": df.count,
        "toPandas": df.toPandas,
        "show": df.show,
        "write": lambda: df.write.parquet(str(tmp_path / "copy")),
        "sql": lambda: spark.sql("SELECT * FROM damaged_in_sql").collect(),
    }
    with pytest.raises(CorruptTableError, match="damaged") as caught:
        actions[action]()
    assert (caught.value.table, caught.value.path) == (str(tmp_path / "t"), f"berlin/{log.name}")


@pytest.mark.spark
def test_errors_of_spark_itself_stay_what_they_are(spark: SparkSession, tmp_path: Path) -> None:
    table = created(tmp_path / "t", rides())
    table.insert(rides(1, 2, 3))
    df = drawstring.spark.read(spark, str(tmp_path / "t"))
    with pytest.raises(AnalysisException, match="nowhere"):
        df.select("nowhere")


@pytest.mark.spark
def test_every_error_names_the_table(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    table = created(tmp_path / "t", rides())
    table.insert(rides(1, 2, 3))
    rows = spark.createDataFrame([(1, "berlin", 1)], "id long, city string, ts int")
    for call in (
        lambda: drawstring.spark.write(rows, path, options={"hoodie.index.typ": "BUCKET"}),
        lambda: drawstring.spark.write(rows, path, mode="appendix"),
        lambda: drawstring.spark.read(spark, path, incremental=("earliest", None), as_of="2024-01-01"),
    ):
        with pytest.raises(InvalidError) as refused:
            call()
        assert refused.value.table == path
    for base in (tmp_path / "t/berlin").glob("*.parquet"):
        base.write_bytes(b"PAR1 not really")
    for base in (tmp_path / "t/amsterdam").glob("*.parquet"):
        base.write_bytes(b"PAR1 not really")
    with pytest.raises(CorruptTableError) as caught:
        drawstring.spark.read(spark, path)
    assert caught.value.table == path
