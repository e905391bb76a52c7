"""drawstring on PySpark 4: a table for `spark_tables`."""

from __future__ import annotations

from collections.abc import Mapping

from hudi_options import write_options
from pyspark.sql import DataFrame, SparkSession
from shapes import Shape
from spark_tables import Table

import drawstring.spark

INDEX = {"mor": "bucket", "cow": "simple"}
NOTHING: Mapping[str, str] = {}


class Drawstring(Table):
    def __init__(self, spark: SparkSession, warehouse: str, shape: Shape, kind: str) -> None:
        super().__init__(spark, warehouse, shape)
        self._options = write_options(kind, INDEX[kind], shape)
        if kind == "cow":
            self.compact = None

    @classmethod
    def start(cls, warehouse: str, jars: str | None) -> SparkSession:
        """Start Spark, its Python workers too: executors as the others' are, with no drawstring yet."""
        spark = super().start(warehouse, jars)
        drawstring.spark.register(spark)
        cores = spark.sparkContext.defaultParallelism
        spark.range(0, cores, 1, cores).mapInArrow(lambda batches: batches, "id long").count()
        return spark

    def load(self, file: str) -> None:
        self._write(file, "bulk_insert", "overwrite")

    def upsert(self, file: str) -> None:
        self._write(file, "upsert", "append")

    def set_columns(self, file: str) -> None:
        self._write(file, "upsert", "append", {"drawstring.write.partial_update": "true"})

    def read(self) -> DataFrame:
        return self.spark.read.format("hudi").load(self.path)

    def _compact(self) -> None:
        drawstring.open(self.path, engine=drawstring.spark.SparkEngine(self.spark)).services.compact()

    def _write(self, file: str, operation: str, mode: str, more: Mapping[str, str] = NOTHING) -> None:
        writer = self.landed(file).write.format("hudi").options(**self._options, **more)
        writer.option("hoodie.datasource.write.operation", operation).mode(mode).save(self.path)
