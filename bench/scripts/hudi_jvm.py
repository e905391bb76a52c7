"""Apache Hudi on Spark. usage: hudi_jvm.py DATA TABLE JARS mor|cow INDEX"""

from __future__ import annotations

import sys

from hudi_options import BEGIN, INCREMENTAL, completion_of_first, write_options
from pyspark.sql import DataFrame
from ride import Workload, run
from sparks import Reads, session

CONF = {
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
}


class Peer(Reads):
    def __init__(self, work: Workload, jars: str, kind: str, index: str) -> None:
        self.work = work
        self.spark = session(jars, CONF)
        self._options = write_options(kind, index)
        if kind == "mor":
            self.compact = self._compact

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

    def before_compact(self) -> None:
        self.spark.sql(f"create table rides using hudi location '{self.work.table}'")

    def _compact(self) -> None:
        """Compact now, be there few commits or many."""
        at_once = "hoodie.compact.inline.max.delta.commits=1"
        what = f"op => 'scheduleandexecute', path => '{self.work.table}', options => '{at_once}'"
        self.spark.sql(f"call run_compaction({what})").collect()

    def _write(self, file: str, operation: str, mode: str) -> None:
        writer = self.landed(file).write.format("hudi").options(**self._options)
        writer.option("hoodie.datasource.write.operation", operation).mode(mode).save(self.work.table)


if __name__ == "__main__":
    work = Workload(sys.argv[1], sys.argv[2])
    work.fresh()
    run(Peer(work, *sys.argv[3:6]), work)
