"""Apache Hudi on Spark. usage: scaling_hudi_jvm.py DATA TABLES JARS mor|cow INDEX"""

from __future__ import annotations

import sys

from hudi_jvm import CONF
from hudi_options import write_options
from scaling import KEY, ORDERING, PARTITION, run
from sparks import session, source


class Peer:
    commits = (10, 100)

    def __init__(self, jars: str, kind: str, index: str) -> None:
        self._spark = session(jars, CONF)
        self._options = write_options(kind, index) | {
            "hoodie.datasource.write.recordkey.field": KEY,
            "hoodie.datasource.write.partitionpath.field": PARTITION,
            "hoodie.datasource.write.precombine.field": ORDERING,
            "hoodie.clean.automatic": "true",
        }
        if index == "bucket":
            self._options["hoodie.bucket.index.num.buckets"] = "1"

    def load(self, file: str, table: str) -> None:
        self._write(file, table, "bulk_insert", "overwrite")

    def upsert(self, file: str, table: str) -> None:
        self._write(file, table, "upsert", "append")

    def count(self, table: str) -> int:
        return self._spark.read.format("hudi").load(table).count()

    def _write(self, file: str, table: str, operation: str, mode: str) -> None:
        writer = source(self._spark, file, KEY).write.format("hudi").options(**self._options)
        writer.option("hoodie.datasource.write.operation", operation).mode(mode).save(table)


if __name__ == "__main__":
    run(Peer(*sys.argv[3:6]))
