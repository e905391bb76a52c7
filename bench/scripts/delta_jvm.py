"""Delta Lake on Spark, with deletion vectors. usage: delta_jvm.py DATA TABLE JARS"""

from __future__ import annotations

import sys

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from ride import Workload, run
from sparks import SqlMerge, session

CONF = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.properties.defaults.enableDeletionVectors": "true",
}


class Peer(SqlMerge):
    def __init__(self, work: Workload, jars: str) -> None:
        self.work = work
        self.spark = session(jars, CONF)
        self.table_sql = f"delta.`{work.table}`"

    def rides(self) -> DataFrame:
        return self.spark.read.format("delta").load(self.work.table)

    def bulk_insert(self, file: str) -> None:
        self.landed(file).write.format("delta").partitionBy("city").save(self.work.table)

    def everything(self) -> None:
        """Read all columns into one number: Delta cannot send a table with deletion vectors to nowhere."""
        self.rides().agg(F.sum(F.hash("*"))).collect()

    def compact(self) -> None:
        self.spark.sql(f"optimize {self.table_sql}").collect()


if __name__ == "__main__":
    work = Workload(sys.argv[1], sys.argv[2])
    work.fresh()
    run(Peer(work, sys.argv[3]), work)
