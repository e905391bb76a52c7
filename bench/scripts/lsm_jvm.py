"""The job of the suite of layouts on Spark. usage: lsm_jvm.py DATA TABLE JARS SYSTEM [PHASE]

SYSTEM is `hudi-avro`, `hudi-parquet` (the format of its log blocks) or `paimon`.
"""

from __future__ import annotations

import sys
from typing import Any

import hudi_jvm
from hudi_options import INDEXES, UNCOMPACTED
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from sparks import session
from wide import Wide, run

HUDI_OPTIONS = {
    "hoodie.table.name": "wide",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.bulkinsert.shuffle.parallelism": "4",
    "hoodie.upsert.shuffle.parallelism": "4",
    **INDEXES["bucket"],
    "hoodie.bucket.index.num.buckets": "1",
    **UNCOMPACTED,
}
PAIMON_CONF = {
    "spark.sql.extensions": "org.apache.paimon.spark.extensions.PaimonSparkSessionExtensions",
    "spark.sql.catalog.pai": "org.apache.paimon.spark.SparkCatalog",
}
PAIMON_PROPERTIES = {
    "primary-key": "id",
    "bucket": "1",
    "sequence.field": "ts",
    "write-only": "true",
    "file.format": "parquet",
}


class Peer:
    phases = ("compact",)

    def __init__(self, wide: Wide, conf: dict[str, str]) -> None:
        self.wide = wide
        self.spark = session(sys.argv[3], conf)

    def stored(self) -> DataFrame:
        raise NotImplementedError

    def warm(self) -> None:
        self.spark.range(1000).count()

    def find(self, key: str) -> int:
        return len(self.stored().where(F.col("id") == key).collect())

    def between(self, first: str, last: str) -> int:
        return len(self.stored().where((F.col("id") >= first) & (F.col("id") < last)).collect())

    def merged(self, columns: list[str] | None = None) -> None:
        """Read the merged rows, to nowhere."""
        self.stored().select(columns or "*").write.format("noop").mode("overwrite").save()

    def totals(self) -> list[Any]:
        """Return the number of rows and two sums."""
        sums = (F.sum("ts"), F.round(F.sum(self.wide.columns[0]), 2))
        return list(self.stored().agg(F.count("*"), *sums).collect()[0])


class Hudi(Peer):
    def __init__(self, wide: Wide, log_format: str) -> None:
        super().__init__(wide, hudi_jvm.CONF)
        self.options = HUDI_OPTIONS | {"hoodie.logfile.data.block.format": log_format}

    def stored(self) -> DataFrame:
        return self.spark.read.format("hudi").load(self.wide.table)

    def load(self, file: str) -> None:
        self._write(file, "bulk_insert", "overwrite")

    def upsert(self, file: str) -> None:
        self._write(file, "upsert", "append")

    def compact(self) -> None:
        at_once = "hoodie.compact.inline.max.delta.commits=1"
        what = f"op => 'scheduleandexecute', path => '{self.wide.table}', options => '{at_once}'"
        self.spark.sql(f"call run_compaction({what})").collect()

    def _write(self, file: str, operation: str, mode: str) -> None:
        writer = self.spark.read.parquet(file).write.format("hudi").options(**self.options)
        writer.option("hoodie.datasource.write.operation", operation).mode(mode).save(self.wide.table)


class Paimon(Peer):
    table_sql = "pai.db.wide"

    def __init__(self, wide: Wide) -> None:
        super().__init__(wide, PAIMON_CONF | {"spark.sql.catalog.pai.warehouse": wide.table})
        fields = self.spark.read.parquet(wide.file(0)).schema
        columns = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in fields)
        properties = ", ".join(f"'{key}' = '{value}'" for key, value in PAIMON_PROPERTIES.items())
        self.spark.sql("create database if not exists pai.db")
        self.spark.sql(
            f"create table if not exists {self.table_sql} ({columns}) tblproperties ({properties})"
        )

    def stored(self) -> DataFrame:
        return self.spark.table(self.table_sql)

    def load(self, file: str) -> None:
        self.upsert(file)

    def upsert(self, file: str) -> None:
        """Append: rows of one key meet when they are read."""
        self.spark.read.parquet(file).write.format("paimon").mode("append").insertInto(self.table_sql)

    def compact(self) -> None:
        self.spark.sql("call pai.sys.compact(table => 'db.wide')").collect()


def _peer(wide: Wide) -> Peer:
    system, _, log_format = sys.argv[4].partition("-")
    return Hudi(wide, log_format) if system == "hudi" else Paimon(wide)


if __name__ == "__main__":
    run(_peer)
