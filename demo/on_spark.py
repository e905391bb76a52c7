"""The pipeline's steps in PySpark, as a script for Hudi's own bundle has them.

Only `drawstring.spark.register` is new: it stands where the settings for the jar stood.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import drawstring.spark
from demo.tables import DELAYS, FLIGHTS, GROUP, TableSpec

INCREMENTAL = "hoodie.datasource.query.type"
BEGIN = "hoodie.datasource.read.begin.instanttime"
AS_OF = "as.of.instant"


class SparkBackend:
    """Keeps `backend.Backend`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._spark = (
            SparkSession.builder.master("local[*]")
            .appName("drawstring demo")
            .config("spark.sql.shuffle.partitions", "4")
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.driver.memory", "2g")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .getOrCreate()
        )
        self._spark.sparkContext.setLogLevel("ERROR")
        drawstring.spark.register(self._spark)
        cores = self._spark.sparkContext.defaultParallelism
        self.label = f"PySpark {self._spark.version}, local[*] with {cores} cores, no bundle jar"

    def load(self, spec: TableSpec, file: Path) -> None:
        self._write(spec, self._landed(file), "bulk_insert", mode="overwrite")

    def upsert(self, spec: TableSpec, file: Path) -> None:
        self._write(spec, self._landed(file), "upsert")

    def delete(self, spec: TableSpec, file: Path) -> None:
        self._write(spec, self._landed(file), "delete")

    def changed_groups(self, since: str) -> DataFrame:
        increment = self._spark.read.format("hudi").option(INCREMENTAL, "incremental").option(BEGIN, since)
        return increment.load(self._path(FLIGHTS)).select(*GROUP).distinct().cache()

    def groups_in(self, file: Path) -> DataFrame:
        return self._landed(file).select(*GROUP).distinct().cache()

    def refresh(self, groups: DataFrame) -> int:
        """Compute the groups from the months they are in; a group that lost all flights goes."""
        count, months = groups.agg(F.count("*"), F.collect_set("month")).collect()[0]
        if not months:
            return 0
        flights = self._spark.read.format("hudi").load(self._path(FLIGHTS)).where(F.col("month").isin(months))
        touched = flights.join(F.broadcast(groups), list(GROUP), "left_semi")
        delays = touched.groupBy(*GROUP).agg(
            F.count("*").alias("flights"),
            F.count("dep_delay").alias("departed"),
            F.count("arr_time").alias("landed"),
            F.coalesce(F.sum("dep_delay"), F.lit(0)).alias("dep_delay_minutes"),
            F.coalesce(F.sum("arr_delay"), F.lit(0)).alias("arr_delay_minutes"),
            F.max("arr_delay").alias("arr_delay_worst"),
        )
        delays.cache()
        self._write(DELAYS, delays, "upsert")
        if delays.count() < count:
            self._write(DELAYS, groups.join(delays, list(GROUP), "left_anti"), "delete")
        for frame in (delays, groups):
            frame.unpersist()
        return int(count)

    def compact(self, spec: TableSpec) -> None:
        engine = drawstring.spark.SparkEngine(self._spark)
        drawstring.open(self._path(spec), engine=engine).services.compact()

    def read(self, spec: TableSpec, as_of: str | None = None) -> pa.Table:
        reader = self._spark.read.format("hudi")
        if as_of is not None:
            reader = reader.option(AS_OF, as_of)
        return reader.load(self._path(spec)).select(*spec.schema.names).toArrow()

    def close(self) -> None:
        self._spark.stop()

    def _landed(self, file: Path) -> DataFrame:
        return self._spark.read.parquet(str(file))

    def _write(self, spec: TableSpec, rows: DataFrame, operation: str, mode: str = "append") -> None:
        options = spec.spark_options(operation)
        rows.write.format("hudi").options(**options).mode(mode).save(self._path(spec))

    def _path(self, spec: TableSpec) -> str:
        return str(self._folder / spec.name)
