"""What a large write holds in memory. usage: memory.py DATA TABLES local|spark

    update_all_files   one row in a hundred of a copy-on-write table changes: all its files are written anew
    hot_*              nine of ten rows of a batch are in one partition: as a first load, as more rows for
                       that, as an upsert of a copy-on-write table, and as one of a merge-on-read table with
                       one bucket a partition

Every step is a process of its own, so that the peak that is seen is its own. Its result is the number of
files that it wrote, how many of them to the hot partition, and the size of the batch.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from arrow import stream
from hudi_options import KINDS
from ride import step

import drawstring

HOT = "p0"
COW, MOR = (
    ("cow", {"hoodie.index.type": "SIMPLE"}),
    (
        "mor",
        {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"},
    ),
)
SPARK_MEMORY = {"spark.driver.memory": "2g"}
"""As little as shows that a task streams."""
STEPS = (
    ("load_wide", "wide", "bulk_insert", "wide", COW),
    ("update_all_files", "wide", "upsert", "wide_changes", COW),
    ("hot_bulk_insert", "hot_cow", "bulk_insert", "hot", COW),
    ("hot_insert", "hot_cow", "insert", "hot_new", COW),
    ("hot_upsert_cow", "hot_cow", "upsert", "hot", COW),
    ("load_bucket", "hot_mor", "bulk_insert", "hot", MOR),
    ("hot_upsert_bucket", "hot_mor", "upsert", "hot", MOR),
)
"""Step, table, operation, input, kind of table; loads are not measured."""


def write(name: str) -> None:
    """Do one step in this process."""
    data, tables, engine = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    _, table, operation, file, (kind, properties) = next(each for each in STEPS if each[0] == name)
    path, rows = str(tables / table), str(data / f"{file}.parquet")
    if not Path(path).exists():
        _create(path, rows, kind, properties)
    if engine == "spark":
        _write_on_spark(path, operation, rows)
    else:
        getattr(drawstring.open(path), operation)(stream(rows))


def _create(path: str, rows: str, kind: str, properties: dict[str, str]) -> None:
    keys: dict[str, Any] = {"record_key": ["id"], "partition_by": ["part"], "ordering": ["ts"]}
    schema = pq.read_schema(rows)
    drawstring.create(path, schema, name="wide", table_type=KINDS[kind], properties=properties, **keys)


def _write_on_spark(path: str, operation: str, rows: str) -> None:
    from sparks import session, source

    import drawstring.spark

    spark = session(None, SPARK_MEMORY)
    drawstring.spark.register(spark)
    writer = source(spark, rows, "id").write.format("hudi")
    writer.option("hoodie.datasource.write.operation", operation).mode("append").save(path)


def apart(name: str) -> dict[str, int]:
    """Do one step in a process of its own; tell what it wrote."""
    table = Path(sys.argv[2], next(each[1] for each in STEPS if each[0] == name))
    before = _files(table)
    subprocess.run([sys.executable, *sys.argv[:4], name], stdout=subprocess.DEVNULL, check=True)
    new = _files(table) - before
    rows = next(Path(sys.argv[1], f"{each[3]}.parquet") for each in STEPS if each[0] == name)
    hot = sum(file.parent.name == HOT for file in new)
    return {"files": len(new), "hot": hot, "batch_mb": rows.stat().st_size // 1_000_000}


def _files(table: Path) -> set[Path]:
    return {file for file in table.glob("*/*") if ".log." in file.name or file.suffix == ".parquet"}


def main() -> None:
    """Do all steps."""
    if len(sys.argv) > 4:
        write(sys.argv[4])
        return
    shutil.rmtree(sys.argv[2], ignore_errors=True)
    Path(sys.argv[2]).mkdir(parents=True)
    for name, *_ in STEPS:
        if name.startswith("load"):
            apart(name)
        else:
            step(name, apart, name)
    shutil.rmtree(sys.argv[2])


if __name__ == "__main__":
    drawstring.use_allocator()
    main()
