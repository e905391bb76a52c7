"""A record index of many keys. usage: metadata_index.py DATA TABLE

make_keys      a table of ten times the rides' number of keys, with a time, in one partition
build_index    the record index of its keys: how many, and bytes a key in the files of the index
look_keys_up   1,000 of them, with all their columns
change_index   12 upserts of 1,000 new keys; one of them compacts the metadata table
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from ride import step

import drawstring

BATCH = 1 << 20
CHANGES = 12
KEYS = 1_000
SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64())])
WITH_INDEX = {"hoodie.index.type": "RECORD_INDEX", "hoodie.parquet.small.file.limit": "0"}
"""New keys get files of their own, so that what is timed is the index."""


def rows(start: int, count: int) -> pa.RecordBatch:
    """Return rows whose keys look like ids: fourteen digits and letters in no order."""
    numbers = np.arange(start, start + count, dtype=np.uint64) * np.uint64(11400714819323198485)
    keys = pc.binary_join_element_wise("ride", pa.array(numbers).cast(pa.string()), "-")
    return pa.record_batch([keys, pa.array(np.ones(count, np.int64))], schema=SCHEMA)


def batches(count: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, count, BATCH):
        yield rows(start, min(BATCH, count - start))


def size_of(path: str) -> int:
    files = Path(path, ".hoodie/metadata/record_index").rglob("*.hfile")
    return sum(each.stat().st_size for each in files)


def main(data: str, path: str) -> None:
    """Do all steps."""
    count = json.loads(Path(data, "keys.json").read_text())["keys"]
    shutil.rmtree(path, ignore_errors=True)
    table = drawstring.create(path, SCHEMA, name="keys", record_key="id", ordering="ts")

    def make() -> None:
        table.bulk_insert(pa.RecordBatchReader.from_batches(SCHEMA, batches(count)))

    def build() -> dict[str, float]:
        table.indexes.create("record_index")
        return {"keys": count, "bytes_a_key": round(size_of(path) / count, 1)}

    def look_up() -> int:
        keys = ", ".join(f"'{key}'" for key in rows(count // 2, KEYS).column("id").to_pylist())
        return drawstring.open(path).scan(where=f"id in ({keys})").to_arrow().num_rows

    def change() -> None:
        for number in range(CHANGES):
            new = pa.Table.from_batches([rows(count + number * KEYS, KEYS)])
            table.upsert(new, options=WITH_INDEX)

    for name, action in (("make_keys", make), ("build_index", build), ("look_keys_up", look_up)):
        step(name, action)
    step("change_index", change)
    shutil.rmtree(path)


if __name__ == "__main__":
    drawstring.use_allocator()
    main(*sys.argv[1:3])
