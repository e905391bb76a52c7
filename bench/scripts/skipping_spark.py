"""Files that queries on Spark leave out of a copy-on-write table. usage: skipping_spark.py TABLE

400,000 rows in 20 partitions of 10 files, each of which has a range of `amount`, with statistics of columns
and a record index. Each condition is counted with and without data skipping; told are seconds, the median of
several, and files read of the files there.
"""

from __future__ import annotations

import shutil
import sys
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa
from sparks import session

import drawstring
import drawstring.spark

PARTITIONS, FILES, ROWS = 20, 10, 2_000
REPEATS = 5
OPTIONS = {
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.clean.automatic": "false",
}
CONDITIONS = {
    "one key": "id = 'ride-7001'",
    "1 % of a sorted column": "amount between 0.500 and 0.509",
    "1 % of an unsorted column": "distance between 0.500 and 0.509",
    "a value that no file has": "amount < -1",
}


def load(path: str) -> None:
    """Write a file of each partition with every commit."""
    schema = pa.schema(
        [("id", "string"), ("day", "string"), ("ts", "int64"), ("amount", "float64"), ("distance", "float64")]
    )
    table = drawstring.create(
        path, schema, name="skipping", record_key="id", ordering="ts", partition_by="day"
    )
    rng = np.random.default_rng(0)
    count = PARTITIONS * ROWS
    for number in range(FILES):
        numbers = np.arange(count) + number * count
        columns = [
            pa.array([f"ride-{each}" for each in numbers.tolist()]),
            pa.array([f"day-{each % PARTITIONS:02}" for each in numbers.tolist()]),
            pa.array(np.full(count, number)),
            pa.array((number + rng.random(count)) / FILES),
            pa.array(rng.random(count)),
        ]
        table.insert(pa.Table.from_arrays(columns, schema=schema), options=OPTIONS)


def files_read(frame: Any) -> int:
    """Return how many files the scan of a collected query read."""
    scans = frame._jdf.queryExecution().executedPlan().collectLeaves()
    found = [scans.apply(at).metrics().get("numFiles") for at in range(scans.length())]
    return sum(each.get().value() for each in found if each.isDefined())


def main(path: str) -> None:
    """Count rows by each condition."""
    shutil.rmtree(path, ignore_errors=True)
    load(path)
    spark = session(None, {"spark.sql.adaptive.enabled": "false"})
    drawstring.spark.register(spark)
    for name, condition in CONDITIONS.items():
        for skips in (False, True):
            seconds, rows, files = [], 0, 0
            for _ in range(REPEATS):
                start = perf_counter()
                options = {"hoodie.enable.data.skipping": str(skips).lower()}
                frame = spark.read.format("hudi").options(**options).load(path).where(condition).select("id")
                rows = len(frame.collect())
                seconds.append(perf_counter() - start)
                files = files_read(frame)
            told = f"{files} of {PARTITIONS * FILES} files"
            print(f"{name:28} skipping {skips!s:5} {rows:6,} rows {told} {median(seconds):.2f} s", flush=True)
    spark.stop()
    shutil.rmtree(path)


if __name__ == "__main__":
    main(sys.argv[1])
