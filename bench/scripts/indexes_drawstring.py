"""drawstring with an index on these writes. usage: indexes_drawstring.py DATA TABLE local|spark KIND INDEX"""

from __future__ import annotations

import sys

import pyarrow.parquet as pq
from arrow import stream
from embedded import create_rides
from hudi_options import INDEXES, KINDS, UNCOMPACTED, write_options
from indexes import run
from ride import Workload

import drawstring


class Keys:
    _table: str

    def keys(self) -> tuple[int, int]:
        found = drawstring.open(self._table).scan(columns=["ride_id"]).to_arrow()["ride_id"]
        return len(found), len(found.unique())


class Embedded(Keys):
    def __init__(self, work: Workload, kind: str, index: str) -> None:
        self._table = work.table
        create_rides(work.table, pq.read_schema(work.file("base")), KINDS[kind], INDEXES[index])

    def write(self, operation: str, file: str) -> None:
        getattr(drawstring.open(self._table), operation)(stream(file), options=UNCOMPACTED)


class OnSpark(Keys):
    def __init__(self, work: Workload, kind: str, index: str) -> None:
        from sparks import session

        import drawstring.spark

        self._table = work.table
        self._options = write_options(kind, index)
        self._spark = session(None, {})
        drawstring.spark.register(self._spark)
        cores = self._spark.sparkContext.defaultParallelism
        self._spark.range(0, cores, 1, cores).mapInArrow(lambda batches: batches, "id long").count()

    def write(self, operation: str, file: str) -> None:
        from sparks import source

        writer = source(self._spark, file).write.format("hudi").options(**self._options)
        mode = "overwrite" if operation == "bulk_insert" else "append"
        writer.option("hoodie.datasource.write.operation", operation).mode(mode).save(self._table)


def main() -> None:
    """Take an engine through the writes."""
    work = Workload(sys.argv[1], sys.argv[2])
    engine, kind, index = sys.argv[3:6]
    work.fresh()
    run({"local": Embedded, "spark": OnSpark}[engine](work, kind, index), work)


if __name__ == "__main__":
    drawstring.use_allocator()
    main()
