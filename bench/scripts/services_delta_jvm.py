"""Delta Lake's services on Spark. usage: services_delta_jvm.py DATA TABLE JARS [PHASE]"""

from __future__ import annotations

import sys

import delta_jvm
from services import SORT_BY, run


class Flat(delta_jvm.Peer):
    def append(self, file: str) -> None:
        self.landed(file).write.format("delta").partitionBy("city").mode("append").save(self.work.table)

    def cluster(self) -> None:
        """Order by the curve through one column, which is a sort."""
        self.spark.sql(f"optimize {self.table_sql} zorder by ({SORT_BY})").collect()


if __name__ == "__main__":
    run(lambda work: delta_jvm.Peer(work, sys.argv[3]), lambda work: Flat(work, sys.argv[3]))
