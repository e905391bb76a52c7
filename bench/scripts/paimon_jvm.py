"""Apache Paimon on Spark, a primary-key table. usage: paimon_jvm.py DATA WAREHOUSE JARS"""

from __future__ import annotations

import sys

from pyspark.sql import DataFrame
from ride import Workload, run
from sparks import SqlMerge, session

PROPERTIES = {
    "primary-key": "ride_id,city",
    "bucket": "4",
    "sequence.field": "ts",
    "write-only": "true",
    "file.format": "parquet",
}


class Peer(SqlMerge):
    table_sql = "pai.db.rides"

    def __init__(self, work: Workload, jars: str) -> None:
        self.work = work
        conf = {
            "spark.sql.extensions": "org.apache.paimon.spark.extensions.PaimonSparkSessionExtensions",
            "spark.sql.catalog.pai": "org.apache.paimon.spark.SparkCatalog",
            "spark.sql.catalog.pai.warehouse": work.table,
        }
        self.spark = session(jars, conf)
        columns = ", ".join(
            f"{field.name} {field.dataType.simpleString()}" for field in self.landed(work.file("base")).schema
        )
        properties = ", ".join(f"'{key}' = '{value}'" for key, value in PROPERTIES.items())
        self.spark.sql("create database if not exists pai.db")
        self.spark.sql(
            f"create table if not exists {self.table_sql} ({columns}) partitioned by (city)"
            f" tblproperties ({properties})"
        )

    def rides(self) -> DataFrame:
        return self.spark.table(self.table_sql)

    def bulk_insert(self, file: str) -> None:
        self.upsert(file)

    def upsert(self, file: str) -> None:
        """Append: rows of one key meet when they are read."""
        self.landed(file).write.format("paimon").mode("append").insertInto(self.table_sql)

    def compact(self) -> None:
        self.spark.sql("call pai.sys.compact(table => 'db.rides')").collect()


if __name__ == "__main__":
    work = Workload(sys.argv[1], sys.argv[2])
    work.fresh()
    run(Peer(work, sys.argv[3]), work)
