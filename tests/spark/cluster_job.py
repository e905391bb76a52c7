"""The driver that the cluster tests run as a process of its own; it prints one line of JSON.

usage: python -m tests.spark.cluster_job MASTER FOLDER
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import drawstring.spark
from drawstring.model.files import TaskContext
from drawstring.spark import SparkEngine
from tests.spark.dying import die_once
from tests.support.spark import INTERPRETED, JVM, WORKERS, spark_session

EXECUTORS = {
    **INTERPRETED,
    **WORKERS,
    "spark.driver.extraJavaOptions": JVM,
    "spark.executor.extraJavaOptions": JVM,
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.task.maxFailures": "4",
    "spark.default.parallelism": "4",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.adaptive.coalescePartitions.enabled": "false",
}


def where_rows_go(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Tell the processes that rows and items are worked on in."""
    engine = SparkEngine(spark)
    rows = engine.rows(spark.range(0, 4000, 1, 4)).exchange(["id"])
    found = rows.run(pids)
    return {
        "driver": os.getpid(),
        "rows": sum(count for _, count in found),
        "pids": sorted({pid for pid, _ in found}),
        "items": sorted(set(engine.map(pid_of, range(8)))),
    }


def pids(batches: Iterator[pa.RecordBatch], context: TaskContext) -> Iterator[tuple[int, int]]:
    yield os.getpid(), sum(batch.num_rows for batch in batches)
    time.sleep(0.5)


def pid_of(item: int) -> int:
    time.sleep(0.2)
    return os.getpid()


def a_task_that_dies(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Kill a worker after half of its results; tell all results and the attempts that gave them."""
    rows = SparkEngine(spark).rows(spark.range(0, 4000, 1, 4))
    found = rows.run(partial(count_or_die, str(folder / "died")))
    return {"results": sorted(found), "died": (folder / "died").exists()}


def count_or_die(
    marker: str, batches: Iterator[pa.RecordBatch], context: TaskContext
) -> Iterator[tuple[int, int]]:
    count = sum(batch.num_rows for batch in batches)
    yield context.attempt, count // 2
    if context.task == 2:
        die_once(marker)
    yield context.attempt, count - count // 2


def upsert_with_a_death(spark: SparkSession, folder: Path, kind: str) -> dict[str, Any]:
    """Load a table, then kill a worker or its executor in the middle of an upsert."""
    path = str(folder / f"table-{kind}")
    options = {
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "city",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ" if kind == "worker" else "COPY_ON_WRITE",
        "hoodie.table.ordering.fields": "ts",
    }
    if kind == "worker":
        options |= {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
    drawstring.spark.write(rides(spark, 0, 300, 1), path, operation="bulk_insert", options=options)
    (folder / f"kill-{kind}").touch()
    result = drawstring.spark.write(rides(spark, 200, 400, 2), path, options=options)
    (folder / f"kill-{kind}").unlink()
    found = drawstring.spark.read(spark, path, columns=["id", "ts"]).collect()
    return {
        "died": (folder / f"died-{kind}").exists(),
        "path": path,
        "instant": result.instant if result else None,
        "rows": sorted((row.id, row.ts) for row in found),
    }


def rides(spark: SparkSession, start: int, end: int, ts: int) -> DataFrame:
    city = "element_at(array('amsterdam', 'berlin', 'chennai'), cast(id % 3 as int) + 1)"
    return spark.range(start, end, 1, 4).selectExpr("id", f"{city} as city", f"{ts}L as ts")


JOBS = {
    "where": where_rows_go,
    "dies": a_task_that_dies,
    "upsert-worker": partial(upsert_with_a_death, kind="worker"),
    "upsert-executor": partial(upsert_with_a_death, kind="executor"),
}


def told_by(job: Callable[[SparkSession, Path], dict[str, Any]], spark: SparkSession, folder: Path) -> Any:
    try:
        return job(spark, folder)
    except Exception:
        return {"failed": traceback.format_exc()}


def main(master: str, folder: str) -> None:
    spark = spark_session(master, EXECUTORS)
    try:
        print(json.dumps({name: told_by(job, spark, Path(folder)) for name, job in JOBS.items()}))
    finally:
        spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
