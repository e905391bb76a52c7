"""Apache Hudi's indexes on the same writes. usage: indexes_hudi_jvm.py DATA TABLE JARS mor|cow INDEX"""

from __future__ import annotations

import sys

from hudi_jvm import CONF
from hudi_options import write_options
from indexes import run
from pyspark.sql import functions as F
from ride import Workload
from sparks import session, source


class Peer:
    def __init__(self, work: Workload, jars: str, kind: str, index: str) -> None:
        self._table = work.table
        self._options = write_options(kind, index)
        self._spark = session(jars, CONF)
        self._spark.range(1000).count()

    def write(self, operation: str, file: str) -> None:
        writer = source(self._spark, file).write.format("hudi").options(**self._options)
        mode = "overwrite" if operation == "bulk_insert" else "append"
        writer.option("hoodie.datasource.write.operation", operation).mode(mode).save(self._table)

    def keys(self) -> tuple[int, int]:
        rides = self._spark.read.format("hudi").load(self._table)
        row = rides.agg(F.count("*"), F.countDistinct("ride_id")).collect()[0]
        return row[0], row[1]


if __name__ == "__main__":
    work = Workload(sys.argv[1], sys.argv[2])
    work.fresh()
    run(Peer(work, *sys.argv[3:6]), work)
