"""What the metadata table saves and costs, without Spark. usage: metadata.py DATA TABLE

Many files: one commit puts a few rows into each of so many file groups (`BENCH_METADATA_GROUPS`, 20,000), ten
in each partition, of a table with buckets. Each step is done three times, by a table that was just opened.

    plan_listed       the tasks of a snapshot, by listing the storage
    plan_first        the same by the metadata table, once, before this process has read it
    plan_named        the same again
    tasks_named       the same, with each task taken once, as by a query of all rows
    point_named       one record by its key and its partition
    s3_named          the tasks of a snapshot, where each request takes 30 milliseconds, and the requests
    s3_point          one record there
    s3_listed         the tasks there by listing, with up to 1,000 partitions

The rides of the data, copy on write, in tables without a metadata table (`plain`), with the list of files
(`files`), and with statistics of columns, bloom filters and the record index as well (`indexes`):

    load_*            all of them
    change_*          each of the batches, by the simple index
    keys_*            1,000 rides, found by the simple, bloom and record index, and by buckets
    find_*            one ride by its key, without metadata table and by the record index
    narrow_*          the rides of one driver in a thousand, in the order of the load and clustered by driver:
                      rows, and files read of files there

The same rides, merge on read with buckets, without metadata table and with the list of files:

    calls_*           100 upserts of 100 rides of one partition each
    points_*          100 times one ride by its key and partition, by a table that was just opened

`BENCH_METADATA_PARTS` chooses among these: many, cost, keys, narrow, calls.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from embedded import create_rides
from hudi_options import INDEXES, KINDS
from many_files import BUCKETS, GROUPS, WHERE, few_columns
from ride import step
from slow_store import BUCKET, slow_store

import drawstring

REPEATS = 3
PARTS = os.environ.get("BENCH_METADATA_PARTS", "many,cost,keys,narrow,calls").split(",")
PARTITIONS_LISTED_MAX = 1_000
CALLS = 100
ROWS_OF_A_CALL = 100
DRIVERS = 50_000
INDEXED = ("column_stats", "bloom_filters", "record_index")
SMALL_FILES = {"hoodie.parquet.max.file.size": str(1 << 20)}
"""So that a load of the rides makes enough files to skip some."""

CLUSTERED = {
    "hoodie.clustering.plan.strategy.sort.columns": "driver_id",
    "hoodie.clustering.plan.strategy.target.file.max.bytes": str(1 << 20),
}


def opened(path: str, *, is_plain: bool = False) -> drawstring.Table:
    return drawstring.open(path, options={"hoodie.metadata.enable": not is_plain})


def many_files(path: str) -> None:
    """Take a table of many small file groups through the steps."""
    rows = few_columns()
    buckets = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": str(BUCKETS)}
    drawstring.create(
        path,
        rows.schema,
        name="many",
        record_key="id",
        partition_by="place",
        ordering="ts",
        properties=buckets,
    )
    step("make_many", lambda: opened(path).insert(rows) and None)
    again("plan_listed", lambda: len(opened(path, is_plain=True).scan().tasks()))
    step("plan_first", lambda: len(opened(path).scan().tasks()))
    again("plan_named", lambda: len(opened(path).scan().tasks()))
    again("tasks_named", lambda: sum(1 for _ in opened(path).scan().tasks()))
    again("point_named", lambda: opened(path).scan(["ts"], where=WHERE).to_arrow().num_rows)
    from_afar(Path(path))
    shutil.rmtree(path)


def from_afar(path: Path) -> None:
    """Plan and look up in an object store that answers late; tell how many requests that takes."""
    with slow_store(path.parent) as store:

        def asked(action: Callable[[drawstring.Table], int], is_plain: bool = False) -> str:
            before = store.requests
            uses = {"hoodie.metadata.enable": not is_plain}
            address = f"s3://{BUCKET}/{path.name}"
            found = action(drawstring.open(address, storage_options=store.options, options=uses))
            return f"{found}, {store.requests - before} requests"

        again("s3_named", asked, lambda table: len(table.scan().tasks()))
        again("s3_point", asked, lambda table: table.scan(["ts"], where=WHERE).to_arrow().num_rows)
        if GROUPS // BUCKETS <= PARTITIONS_LISTED_MAX:
            step("s3_listed", asked, lambda table: len(table.scan().tasks()), True)


def again(name: str, action: Callable[..., Any], *args: Any) -> None:
    for _ in range(REPEATS):
        step(name, action, *args)


def bulk_insert(table: drawstring.Table, rows: pa.Table) -> None:
    table.bulk_insert(rows, options=SMALL_FILES)


def upsert(table: drawstring.Table, rows: pa.Table, options: dict[str, str]) -> None:
    table.upsert(rows, options=options)


class Rides:
    """Tables of the rides of the data."""

    def __init__(self, data: Path, path: str) -> None:
        facts = json.loads((data / "facts.json").read_text())
        self._path = path
        self._base = pq.read_table(data / "base.parquet")
        self._batches = [data / f"batch_{number + 1}.parquet" for number in range(facts["size"]["batches"])]
        self._key = facts["point"]

    def cost(self) -> None:
        """Load and change tables with more and more in their metadata table."""
        for name, is_plain, indexes in (
            ("plain", True, ()),
            ("files", False, ()),
            ("indexes", False, INDEXED),
        ):
            table = self._new("simple", is_plain=is_plain, indexes=indexes)
            step(f"load_{name}", bulk_insert, table, self._base)
            for batch in self._batches:
                step(f"change_{name}", upsert, table, pq.read_table(batch), {})
            if name != "files":
                again(f"find_{name}", self._found, is_plain)

    def keys(self) -> None:
        """Upsert few rides by each index."""
        rng = np.random.default_rng(7)
        by_record_index = {"hoodie.index.type": "RECORD_INDEX"}
        for name, options in (
            ("simple", {}),
            ("bloom", INDEXES["bloom"]),
            ("record_index", by_record_index),
            ("bucket", {}),
        ):
            indexes = ("record_index",) if options is by_record_index else ()
            table = self._new(name, indexes=indexes)
            bulk_insert(table, self._base)
            few = self._base.take(pa.array(np.sort(rng.choice(self._base.num_rows, 1000, replace=False))))
            again(f"keys_{name}", upsert, table, few, options)

    def narrow(self) -> None:
        """Read few rides that a condition on no key selects."""
        table = self._new("simple", indexes=("column_stats",))
        bulk_insert(table, self._base)
        again("narrow_unsorted", self._skipped)
        table.services.cluster(options=CLUSTERED)
        again("narrow_clustered", self._skipped)

    def calls(self) -> None:
        """Upsert and read few rides, many times."""
        city = self._base.column("city")[0]
        rides = self._base.filter(pc.equal(self._base.column("city"), city))
        for name, is_plain in (("plain", True), ("files", False)):
            table = self._new("bucket", "mor", is_plain=is_plain)
            bulk_insert(table, self._base)
            step(f"calls_{name}", self._small_upserts, table, rides)
            step(f"points_{name}", self._point_reads, rides.slice(0, CALLS), is_plain)

    def _small_upserts(self, table: drawstring.Table, rides: pa.Table) -> None:
        for number in range(CALLS):
            start = number * ROWS_OF_A_CALL % max(1, rides.num_rows - ROWS_OF_A_CALL)
            upsert(table, rides.slice(start, ROWS_OF_A_CALL), {})

    def _point_reads(self, rides: pa.Table, is_plain: bool) -> int:
        pairs = zip(rides.column("ride_id").to_pylist(), rides.column("city").to_pylist(), strict=True)
        wheres = [f"ride_id = '{key}' and city = '{city}'" for key, city in pairs]
        tables = (self._open(is_plain) for _ in wheres)
        return sum(
            each.scan(["ts"], where=where).to_arrow().num_rows
            for each, where in zip(tables, wheres, strict=True)
        )

    def _found(self, is_plain: bool) -> int:
        where = f"ride_id = '{self._key}'"
        return self._open(is_plain).scan(["ts"], where=where).to_arrow().num_rows

    def _skipped(self) -> str:
        scan = self._open(is_plain=False).scan(["ride_id"], where=f"driver_id < {DRIVERS // 1000}")
        rows, read = scan.to_arrow().num_rows, len(scan.tasks())
        return f"{rows} rows, {read} of {len(opened(self._path).scan().tasks())} files"

    def _new(
        self, index: str, kind: str = "cow", *, is_plain: bool = False, indexes: tuple[str, ...] = ()
    ) -> drawstring.Table:
        shutil.rmtree(self._path, ignore_errors=True)
        properties = INDEXES[index] if index == "bucket" else {}
        create_rides(self._path, self._base.schema, KINDS[kind], properties)
        table = self._open(is_plain)
        for name in indexes:
            table.indexes.create(name)
        return table

    def _open(self, is_plain: bool) -> drawstring.Table:
        return opened(self._path, is_plain=is_plain)


def main(data: str, path: str) -> None:
    """Do all steps."""
    shutil.rmtree(path, ignore_errors=True)
    if "many" in PARTS:
        many_files(path)
    rides = Rides(Path(data), path)
    for part in PARTS:
        getattr(rides, part, bool)()
    shutil.rmtree(path, ignore_errors=True)


if __name__ == "__main__":
    drawstring.use_allocator()
    main(*sys.argv[1:3])
