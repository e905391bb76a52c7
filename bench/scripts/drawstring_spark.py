"""drawstring on PySpark. usage: drawstring_spark.py DATA TABLE mor|cow"""

from __future__ import annotations

import sys

from hudi_options import BEGIN, INCREMENTAL, completion_of_first, write_options
from pyspark.sql import DataFrame
from ride import Workload, run
from sparks import Reads, session

import drawstring.spark

INDEX = {"mor": "bucket", "cow": "simple"}


class Peer(Reads):
    def __init__(self, work: Workload, kind: str) -> None:
        self.work = work
        self.spark = session(None, {})
        drawstring.spark.register(self.spark)
        self._options = write_options(kind, INDEX[kind])
        if kind == "mor":
            self.compact = self._compact

    def warm(self) -> None:
        """Start Spark, its Python workers too: executors as the peers' are, with no drawstring yet."""
        super().warm()
        cores = self.spark.sparkContext.defaultParallelism
        self.spark.range(0, cores, 1, cores).mapInArrow(lambda batches: batches, "id long").count()

    def rides(self) -> DataFrame:
        return self.spark.read.format("hudi").load(self.work.table)

    def bulk_insert(self, file: str) -> None:
        self._write(file, "bulk_insert", "overwrite")

    def upsert(self, file: str) -> None:
        self._write(file, "upsert", "append")

    def delete(self, file: str) -> None:
        self._write(file, "delete", "append")

    def incremental(self) -> int:
        reader = self.spark.read.format("hudi").options(**INCREMENTAL)
        return reader.option(BEGIN, completion_of_first(self.work.table)).load(self.work.table).count()

    def _compact(self) -> None:
        drawstring.open(self.work.table, engine=drawstring.spark.SparkEngine(self.spark)).compact()

    def _write(self, file: str, operation: str, mode: str) -> None:
        writer = self.landed(file).write.format("hudi").options(**self._options)
        writer.option("hoodie.datasource.write.operation", operation).mode(mode).save(self.work.table)


if __name__ == "__main__":
    work = Workload(sys.argv[1], sys.argv[2])
    work.fresh()
    run(Peer(work, sys.argv[3]), work)
