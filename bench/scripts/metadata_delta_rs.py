"""delta-rs (the package deltalake) in the suite of the metadata table. usage: metadata_delta_rs.py DATA TABLE

Its log has the names of files and their statistics, so each step has the name of drawstring's that needs as
much of the metadata table: `plan_named`, `load_files`. The table of many files gets a commit for each of the
ten files in a partition, and a checkpoint. Its merge is told which partitions a batch touches.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from deltalake import DeltaTable, QueryBuilder, write_deltalake
from many_files import BUCKETS, WHERE, few_columns
from ride import step
from scaling_delta_rs import merge_into

REPEATS = 3
CALLS = 100
ROWS_OF_A_CALL = 100
NARROW = pc.field("driver_id") < 50
FILE_BYTES = 1 << 20


def many_files(path: str) -> None:
    """Take a table of many small files through the steps."""
    rows = few_columns()
    for start in range(0, rows.num_rows, rows.num_rows // BUCKETS):
        part = rows.slice(start, rows.num_rows // BUCKETS)
        write_deltalake(path, part, partition_by=["place"], mode="append")
    DeltaTable(path).create_checkpoint()
    for _ in range(REPEATS):
        step("plan_named", lambda: len(DeltaTable(path).file_uris()))
    for _ in range(REPEATS):
        step("point_named", found, path, WHERE)
    shutil.rmtree(path)


def found(path: str, where: str) -> int:
    """Return how many rows fulfil a condition, asked in SQL: pyarrow cannot compare the views of texts."""
    query = f"select ts from rows where {where}"
    return pa.table(QueryBuilder().register("rows", DeltaTable(path)).execute(query)).num_rows


class Rides:
    """Tables of the rides of the data."""

    def __init__(self, data: Path, path: str) -> None:
        facts = json.loads((data / "facts.json").read_text())
        self._path = path
        self._base = pq.read_table(data / "base.parquet")
        self._batches = [data / f"batch_{number + 1}.parquet" for number in range(facts["size"]["batches"])]
        self._key = facts["point"]

    def cost(self) -> None:
        """Load and change a table."""
        step("load_files", self._load)
        for batch in self._batches:
            step("change_files", self._upsert, pq.read_table(batch))
        for _ in range(REPEATS):
            step("find_plain", self._found, f"ride_id = '{self._key}'")

    def keys(self) -> None:
        """Upsert few rides."""
        self._load()
        picked = np.random.default_rng(7).choice(self._base.num_rows, 1000, replace=False)
        few = self._base.take(pa.array(np.sort(picked)))
        for _ in range(REPEATS):
            step("keys_simple", self._upsert, few)

    def narrow(self) -> None:
        """Read few rides that a condition on no key selects, as they came and in order of the drivers."""
        self._load()
        for _ in range(REPEATS):
            step("narrow_unsorted", self._skipped)
        DeltaTable(self._path).optimize.z_order(["driver_id"], target_size=FILE_BYTES)
        for _ in range(REPEATS):
            step("narrow_clustered", self._skipped)

    def calls(self) -> None:
        """Upsert and read few rides, many times."""
        self._load()
        rides = self._base.filter(pc.equal(self._base.column("city"), self._base.column("city")[0]))
        step("calls_files", self._small_upserts, rides)
        step("points_files", self._point_reads, rides.slice(0, CALLS))

    def _small_upserts(self, rides: pa.Table) -> None:
        for number in range(CALLS):
            start = number * ROWS_OF_A_CALL % max(1, rides.num_rows - ROWS_OF_A_CALL)
            self._upsert(rides.slice(start, ROWS_OF_A_CALL))

    def _point_reads(self, rides: pa.Table) -> int:
        pairs = zip(rides.column("ride_id").to_pylist(), rides.column("city").to_pylist(), strict=True)
        return sum(self._found(f"city = '{city}' and ride_id = '{key}'") for key, city in pairs)

    def _load(self) -> None:
        shutil.rmtree(self._path, ignore_errors=True)
        write_deltalake(self._path, self._base, partition_by=["city"], target_file_size=FILE_BYTES)

    def _upsert(self, rows: pa.Table) -> None:
        merge_into(self._path, rows, "ride_id", "city")

    def _found(self, where: str) -> int:
        return found(self._path, where)

    def _skipped(self) -> str:
        files: ds.Dataset = DeltaTable(self._path).to_pyarrow_dataset()
        rows = files.to_table(columns=["ride_id"], filter=NARROW).num_rows
        read, all_files = len([*files.get_fragments(NARROW)]), len([*files.get_fragments()])
        return f"{rows} rows, {read} of {all_files} files"


def main(data: str, path: str) -> None:
    """Do all steps."""
    shutil.rmtree(path, ignore_errors=True)
    many_files(path)
    rides = Rides(Path(data), path)
    for part in (rides.cost, rides.keys, rides.narrow, rides.calls):
        part()
    shutil.rmtree(path)


if __name__ == "__main__":
    main(*sys.argv[1:3])
