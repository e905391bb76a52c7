"""drawstring's services on PySpark. usage: services_drawstring.py DATA TABLE [PHASE]"""

from __future__ import annotations

import drawstring_spark
from services import SORT_BY, run

import drawstring.spark

SORTED = {"hoodie.clustering.plan.strategy.sort.columns": SORT_BY}


class Flat(drawstring_spark.Peer):
    def append(self, file: str) -> None:
        self._write(file, "bulk_insert", "append")

    def cluster(self) -> None:
        engine = drawstring.spark.SparkEngine(self.spark)
        drawstring.open(self.work.table, engine=engine).services.cluster(options=SORTED)


if __name__ == "__main__":
    run(lambda work: drawstring_spark.Peer(work, "mor"), lambda work: Flat(work, "cow"))
