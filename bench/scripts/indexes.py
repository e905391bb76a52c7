"""drawstring's indexes on the same writes. usage: indexes.py DATA TABLE local|spark mor|cow INDEX

First the rides and their batches of updates with some new rows, then batches of new rows alone, as upserts
too: every key is looked for.
"""

from __future__ import annotations

import sys
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from arrow import stream
from hudi_options import INDEXES, KINDS, UNCOMPACTED, write_options
from ride import Workload, size, step

import drawstring


class Embedded:
    def __init__(self, work: Workload, kind: str, index: str) -> None:
        self._table = work.table
        schema = pq.read_schema(work.file("base"))
        keys: dict[str, Any] = {"record_key": ["ride_id"], "partition_by": ["city"], "ordering": ["ts"]}
        drawstring.create(
            work.table, schema, name="rides", table_type=KINDS[kind], properties=INDEXES[index], **keys
        )

    def write(self, operation: str, file: str) -> None:
        getattr(drawstring.open(self._table), operation)(stream(file), **UNCOMPACTED)


class OnSpark:
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
        writer = self._spark.read.parquet(file).write.format("hudi").options(**self._options)
        mode = "overwrite" if operation == "bulk_insert" else "append"
        writer.option("hoodie.datasource.write.operation", operation).mode(mode).save(self._table)


def main() -> None:
    """Write, and see that every key is there once."""
    work = Workload(sys.argv[1], sys.argv[2])
    engine, kind, index = sys.argv[3:6]
    work.fresh()
    peer = {"local": Embedded, "spark": OnSpark}[engine](work, kind, index)
    step("bulk_insert", peer.write, "bulk_insert", work.file("base"))
    batches = range(1, work.facts["size"]["batches"] + 1)
    for name, file in (("upsert", "batch"), ("new_rows", "new")):
        for number in batches:
            step(f"{name}_{number}", peer.write, "upsert", work.file(f"{file}_{number}"))
    step("size", size, work.table)
    keys = drawstring.open(work.table).scan(columns=["ride_id"]).to_arrow()["ride_id"]
    rides = work.facts["size"]
    expected = rides["rows"] + 2 * len(batches) * rides["inserts"]
    assert len(keys) == len(pa.chunked_array(keys).unique()) == expected, (
        f"{len(keys)} rows: {expected} expected"
    )


if __name__ == "__main__":
    main()
