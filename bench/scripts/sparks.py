"""What the peers on Spark share: the session, the source of their rows, and the aggregations."""

from __future__ import annotations

import os
import sys
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

KEY_HEAD = 3
KEY_LENGTH_MAX = 1000
KEY_LOW_BITS = 3


def session(jars: str | None, conf: dict[str, str]) -> SparkSession:
    """Start Spark on all cores; all peers get the same memory and the same number of shuffle partitions."""
    cores = os.cpu_count() or 2
    common = {
        "spark.driver.memory": os.environ.get("BENCH_SPARK_MEMORY", "8g"),
        "spark.sql.shuffle.partitions": str(2 * cores),
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    if jars:
        common["spark.jars"] = jars
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(f"local[{cores}]")
    for key, value in (common | conf).items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def source(spark: SparkSession, file: str, key: str = "ride_id") -> DataFrame:
    """Return the rows of an input file as a pipeline hands them over: with a column that it computes.

    The key is put together from two parts of itself: of a text its head and the rest, of a number its high
    and its low bits. Its values stay, but Spark has to make them, whatever the rows are for. So the source
    is not a bare file, which drawstring's Python workers would read themselves (ADR 28).
    """
    rows = spark.read.parquet(file)
    if rows.schema[key].dataType.typeName() == "string":
        parts = F.substring(key, 1, KEY_HEAD), F.substring(key, KEY_HEAD + 1, KEY_LENGTH_MAX)
        return rows.withColumn(key, F.concat(*parts))
    high = F.shiftleft(F.shiftright(key, KEY_LOW_BITS), KEY_LOW_BITS)
    return rows.withColumn(key, high.bitwiseOR(F.col(key).bitwiseAND((1 << KEY_LOW_BITS) - 1)))


def bare(spark: SparkSession, file: str) -> DataFrame:
    """Return the rows of a file that is only read: what queries join with a table."""
    return spark.read.parquet(file)


class Reads:
    """The steps that read; a peer says how it opens its table."""

    spark: SparkSession
    work: Any

    def warm(self) -> None:
        self.spark.range(1000).count()

    def rides(self) -> DataFrame:
        raise NotImplementedError

    def landed(self, file: str) -> DataFrame:
        """Return the rows of an input file."""
        return source(self.spark, file)

    def totals(self) -> list[float]:
        rides = self.rides()
        row = rides.agg(F.count("*"), F.sum("fare"), F.max("ts"), F.countDistinct("driver_id")).collect()[0]
        return [row[0], round(row[1], 2), row[2], row[3]]

    def everything(self) -> None:
        """Read all columns of all rides, to nowhere."""
        self.rides().write.format("noop").mode("overwrite").save()

    def project(self) -> float:
        dear = (F.col("city") == self.work.city) & (F.col("fare") > 30)
        return round(self.rides().where(dear).agg(F.sum("distance")).collect()[0][0] or 0.0, 1)

    def point(self) -> int:
        return self.rides().where(F.col("ride_id") == self.work.point).count()


class SqlMerge(Reads):
    """A peer whose upsert is SQL's merge."""

    table_sql: str

    def upsert(self, file: str) -> None:
        self._merge(file, "matched and new.ts >= old.ts then update set * when not matched then insert *")

    def delete(self, file: str) -> None:
        self._merge(file, "matched then delete")

    def _merge(self, file: str, what: str) -> None:
        self.landed(file).createOrReplaceTempView("new_rides")
        same = "old.city = new.city and old.ride_id = new.ride_id"
        self.spark.sql(f"merge into {self.table_sql} old using new_rides new on {same} when {what}").collect()
