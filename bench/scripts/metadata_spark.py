"""The metadata table on Spark. usage: metadata_spark.py DATA TABLE [JARS] drawstring|hudi|delta|iceberg

The rides of the data, copy on write, as without Spark (`metadata.py`): `load_*`, `change_*` and `find_*` in
tables without a metadata table (`plain`), with the list of files (`files`) and with statistics of columns,
bloom filters and the record index as well (`indexes`); `keys_*` by several indexes; `narrow_*` before and
after clustering by driver. Delta Lake and Iceberg have names of files and their statistics in their logs
and manifests, whatever they are asked: theirs are `load_files`, `change_files`, `find_indexes`,
`keys_simple` and `narrow_*`.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from typing import Any

from hudi_options import INDEXES, write_options
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from ride import Workload, step
from sparks import session, source

REPEATS = 3
KEYS = 1_000
DRIVERS_READ = 50
SMALL_FILES = {"hoodie.parquet.max.file.size": str(1 << 20)}
KEPT = {"hoodie.metadata.enable": "true", "hoodie.metadata.index.column.stats.enable": "false"}
INDEXED = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.metadata.global.record.level.index.enable": "true",
}
VARIANTS = {"plain": {"hoodie.metadata.enable": "false"}, "files": KEPT, "indexes": INDEXED}
RECORD_INDEX = {"hoodie.index.type": "GLOBAL_RECORD_LEVEL_INDEX"} | INDEXED
WAYS = {name: INDEXES[name] | KEPT for name in ("simple", "bloom", "bucket")} | {"record_index": RECORD_INDEX}


class Hudi:
    """Apache Hudi, or drawstring with the same options."""

    def __init__(self, work: Workload, spark: Any) -> None:
        self.work, self.spark = work, spark

    def write(self, rows: DataFrame, operation: str, options: Mapping[str, str]) -> None:
        every = write_options("cow", "simple") | SMALL_FILES | dict(options)
        writer = rows.write.format("hudi").options(**every)
        mode = "overwrite" if operation == "bulk_insert" else "append"
        writer.option("hoodie.datasource.write.operation", operation).mode(mode).save(self.work.table)

    def rides(self, options: Mapping[str, str]) -> DataFrame:
        skipping = {"hoodie.enable.data.skipping": "true"}
        return self.spark.read.format("hudi").options(**skipping, **options).load(self.work.table)

    def cluster(self) -> None:
        by_driver = "order => 'driver_id'"
        what = f"op => 'scheduleandexecute', path => '{self.work.table}', {by_driver}"
        self.spark.sql(f"call run_clustering({what})").collect()


class Drawstring(Hudi):
    def cluster(self) -> None:
        import drawstring.spark

        by_driver = {"hoodie.clustering.plan.strategy.sort.columns": "driver_id"}
        sizes = {"hoodie.clustering.plan.strategy.target.file.max.bytes": str(1 << 20)}
        engine = drawstring.spark.SparkEngine(self.spark)
        drawstring.open(self.work.table, engine=engine).services.cluster(options=by_driver | sizes)


class WithLog:
    """A format whose log or manifests have all names and statistics."""

    def __init__(self, work: Workload, peer: Any, cluster: str, drop: str = "") -> None:
        self.work, self.spark = work, peer.spark
        self._peer, self._cluster, self._drop = peer, cluster, drop

    def write(self, rows: DataFrame, operation: str, options: Mapping[str, str]) -> None:
        file = f"{self.work.table}-rows"
        if operation == "bulk_insert":
            if self._drop:
                self.spark.sql(self._drop)
            shutil.rmtree(self.work.table, ignore_errors=True)
            self._peer.bulk_insert(self.work.file("base"))
            return
        rows.write.mode("overwrite").parquet(file)
        self._peer.upsert(file)

    def rides(self, options: Mapping[str, str]) -> DataFrame:
        return self._peer.rides()

    def cluster(self) -> None:
        self.spark.sql(self._cluster).collect()


def run(table: Any, work: Workload, variants: Mapping[str, dict[str, str]], ways: Any) -> None:
    """Take a format through all steps."""
    base = source(table.spark, work.file("base"))
    batches = range(1, work.facts["size"]["batches"] + 1)
    first = next(iter(variants.values()))
    step("warm", table.write, base, "bulk_insert", first)  # loads the code of the format
    for name, options in variants.items():
        step(f"load_{name}", table.write, base, "bulk_insert", options)
        for number in batches:
            rows = source(table.spark, work.file(f"batch_{number}"))
            step(f"change_{name}", table.write, rows, "upsert", options)
        find = "find_plain" if name == "plain" else "find_indexes"
        for _ in range(REPEATS if name != "files" or len(variants) == 1 else 0):
            step(find, _count, table, options, F.col("ride_id") == work.point)
    share = max(1, work.facts["size"]["rows"] // KEYS)
    few = base.where(F.expr(f"pmod(xxhash64(ride_id), {share}) = 0"))
    for name, options in ways.items():
        table.write(base, "bulk_insert", options)
        for _ in range(REPEATS):
            step(f"keys_{name}", table.write, few, "upsert", options)
    table.write(base, "bulk_insert", INDEXED)
    narrow = F.col("driver_id") < DRIVERS_READ
    for when in ("unsorted", "clustered"):
        for _ in range(REPEATS):
            step(f"narrow_{when}", _count, table, INDEXED, narrow)
        if when == "unsorted":
            table.services.cluster()


def _count(table: Any, options: Mapping[str, str], condition: Any) -> int:
    count: int = table.rides(options).where(condition).select("ride_id").count()
    return count


def main(words: list[str]) -> None:
    """Start Spark with one format and do all steps."""
    data, path, *jars, kind = words
    work = Workload(data, path)
    work.fresh()
    if kind == "drawstring":
        import drawstring.spark

        spark = session(None, {})
        drawstring.spark.register(spark)
        table: Any = Drawstring(work, spark)
    elif kind == "hudi":
        from hudi_jvm import CONF

        table = Hudi(work, session(jars[0], CONF))
    elif kind == "delta":
        import delta_jvm

        peer: Any = delta_jvm.Peer(work, jars[0])
        table = WithLog(work, peer, f"optimize {peer.table_sql} zorder by (driver_id)")
    else:
        import iceberg_jvm

        how = "strategy => 'sort', sort_order => 'driver_id', options => map('rewrite-all', 'true')"
        cluster = f"call ice.system.rewrite_data_files(table => 'db.rides', {how})"
        drop = "drop table if exists ice.db.rides"
        table = WithLog(work, iceberg_jvm.Peer(work, jars[0]), cluster, drop)
    table.spark.range(1000).count()
    has_log = isinstance(table, WithLog)
    run(table, work, {"files": KEPT} if has_log else VARIANTS, {"simple": {}} if has_log else WAYS)


if __name__ == "__main__":
    main(sys.argv[1:])
