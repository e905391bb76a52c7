"""Apache Iceberg on Spark, merge on read. usage: iceberg_jvm.py DATA WAREHOUSE JARS"""

from __future__ import annotations

import sys

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from ride import Workload, run
from sparks import SqlMerge, session

CATALOG = "spark.sql.catalog.ice"
MERGE_ON_READ = {f"write.{verb}.mode": "merge-on-read" for verb in ("merge", "update", "delete")}


class Peer(SqlMerge):
    table_sql = "ice.db.rides"

    def __init__(self, work: Workload, jars: str) -> None:
        self.work = work
        conf = {
            "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
            CATALOG: "org.apache.iceberg.spark.SparkCatalog",
            f"{CATALOG}.type": "hadoop",
            f"{CATALOG}.warehouse": work.table,
        }
        self.spark = session(jars, conf)

    def rides(self) -> DataFrame:
        return self.spark.table(self.table_sql)

    def bulk_insert(self, file: str) -> None:
        writer = self.landed(file).writeTo(self.table_sql).partitionedBy(F.col("city"))
        for key, value in ({"format-version": "2"} | MERGE_ON_READ).items():
            writer = writer.tableProperty(key, value)
        writer.create()

    def compact(self) -> None:
        options = "map('delete-file-threshold', '1', 'rewrite-all', 'true')"
        call = f"call ice.system.rewrite_data_files(table => 'db.rides', options => {options})"
        self.spark.sql(call).collect()


if __name__ == "__main__":
    work = Workload(sys.argv[1], sys.argv[2])
    work.fresh()
    run(Peer(work, sys.argv[3]), work)
