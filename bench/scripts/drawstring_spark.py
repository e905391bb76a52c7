"""drawstring on PySpark. usage: drawstring_spark.py DATA TABLE mor|cow [PHASE]

    rides   the workload
    bare    the load alone, from a bare Parquet file: the workers read it themselves (ADR 28)

Each phase is a process of its own, so that either load is the first job of its session.
"""

from __future__ import annotations

import shutil
import subprocess
import sys

from hudi_options import BEGIN, INCREMENTAL, completion_of_first, write_options
from pyspark.sql import DataFrame
from ride import Workload, run, step
from sparks import Reads, session

import drawstring.spark

INDEX = {"mor": "bucket", "cow": "simple"}
PHASES = ("rides", "bare")


class Peer(Reads):
    def __init__(self, work: Workload, kind: str) -> None:
        self.work = work
        self.spark = session(None, {})
        drawstring.spark.register(self.spark)
        self._options = write_options(kind, INDEX[kind])
        if kind == "mor":
            self.compact = self._compact

    def warm(self) -> None:
        """Start Spark, its Python workers too: executors as the peers' are, with no drawstring yet."""
        super().warm()
        cores = self.spark.sparkContext.defaultParallelism
        self.spark.range(0, cores, 1, cores).mapInArrow(lambda batches: batches, "id long").count()

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

    def _compact(self) -> None:
        drawstring.open(self.work.table, engine=drawstring.spark.SparkEngine(self.spark)).services.compact()

    def _write(self, file: str, operation: str, mode: str) -> None:
        writer = self.landed(file).write.format("hudi").options(**self._options)
        writer.option("hoodie.datasource.write.operation", operation).mode(mode).save(self.work.table)


class Bare(Peer):
    def landed(self, file: str) -> DataFrame:
        return self.spark.read.parquet(file)


def load_bare(work: Workload, kind: str) -> None:
    """Load the base file as it is into a table that goes again."""
    peer = Bare(work, kind)
    peer.warm()
    step("bulk_insert_bare", peer.bulk_insert, work.file("base"))
    rows, expected = peer.rides().count(), work.facts["size"]["rows"]
    assert rows == expected, f"{rows} rows instead of {expected}"
    shutil.rmtree(work.table)


def main(data: str, table: str, kind: str, phase: str = "") -> None:
    """Do a phase in this process, or both in theirs."""
    if not phase:
        for each in PHASES:
            subprocess.run([sys.executable, *sys.argv, each], check=True)
        return
    work = Workload(data, table if phase == "rides" else f"{table}-{phase}")
    work.fresh()
    if phase == "rides":
        run(Peer(work, kind), work)
    else:
        load_bare(work, kind)


if __name__ == "__main__":
    main(*sys.argv[1:])
