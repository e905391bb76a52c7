"""Apache Hudi's services on Spark. usage: services_hudi_jvm.py DATA TABLE JARS [PHASE]"""

from __future__ import annotations

import sys

import hudi_jvm
from services import SORT_BY, run


class Flat(hudi_jvm.Peer):
    def append(self, file: str) -> None:
        self._write(file, "bulk_insert", "append")

    def cluster(self) -> None:
        what = f"op => 'scheduleandexecute', path => '{self.work.table}', order => '{SORT_BY}'"
        self.spark.sql(f"call run_clustering({what})").collect()


if __name__ == "__main__":
    run(
        lambda work: hudi_jvm.Peer(work, sys.argv[3], "mor", "bucket"),
        lambda work: Flat(work, sys.argv[3], "cow", "simple"),
    )
