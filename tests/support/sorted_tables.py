"""Tables with the storage layout `lsm_tree`, and what is true of their files."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from drawstring.base.clock import SteppingClock
from drawstring.filegroups import sorted_merge
from drawstring.filegroups.log_merge import base_rows
from drawstring.filegroups.read_task import ReadTask
from drawstring.table import Table
from drawstring.testing import context_of, with_limits
from drawstring.timeline.properties import save_properties
from tests.support.rows import SCHEMA, rides
from tests.support.tables import MOR, WITHOUT_SERVICES, create

LSM = {"hoodie.table.storage.layout": "lsm_tree"}
BUCKET = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
ALPHABET = "aZ09_éß￿\U00010437"
"""Characters whose order is another one in UTF-16: U+FFFF comes before U+10437 in UTF-8 alone."""


def drawn(seed: int, count: int = 40, ts: int = 1) -> pa.Table:
    """Return rows with keys in no order, some of them several times."""
    draw = random.Random(seed)
    keys = ["".join(draw.choices(ALPHABET, k=draw.randint(1, 2))) for _ in range(count)]
    return rides(*((key, "rome", ts, float(place)) for place, key in enumerate(keys)))


def sorted_table(schema: pa.Schema = SCHEMA, properties: dict[str, str] | None = None, **how: Any) -> Table:
    """Create an empty table of rides whose files are sorted by key."""
    return create(schema, table_type=MOR, version=10, properties={**LSM, **(properties or {})}, **how)


def keys_of_files(table: Table) -> dict[str, list[str]]:
    """Return the record keys of every base and log file on storage, in their order."""
    storage = context_of(table).storage
    found = {}
    for folder in ("", *(each for each in storage.list_folders("") if each != ".hoodie")):
        for status in storage.list_files(folder):
            if status.path.endswith(".parquet") and ".cdc." not in status.path:
                with storage.open(status.path) as file:
                    rows = pq.read_table(file, columns=["_hoodie_record_key"])
                found[status.path] = rows.column(0).to_pylist()
    return found


def check_sorted(table: Table) -> int:
    """Check that every file is sorted by the UTF-8 bytes of its keys and has each once; return how many."""
    files = keys_of_files(table)
    for path, keys in files.items():
        encoded = [key.encode() for key in keys]
        assert encoded == sorted(set(encoded)), path
    return len(files)


def unsorted_table(path: Path) -> Table:
    """Return a table that says its files are sorted, with a base file and a log file that are not."""
    table = create(path=path, table_type=MOR, version=10)
    rows = [("b", "rome", 1, 1.0), ("a", "rome", 1, 1.0)]
    for ts in (1, 2):
        table.upsert(rides(*((*row[:2], ts, 1.0) for row in rows)), options=WITHOUT_SERVICES)
    save_properties(context_of(table).storage, {**table.config.properties, **LSM}, SteppingClock())
    return table


def few_base_rows(task: ReadTask, among: pc.Expression | None) -> Iterator[pa.RecordBatch]:
    for batch in base_rows(task, among):
        for start in range(0, batch.num_rows, 2):
            yield batch.slice(start, 2)


@contextmanager
def small_windows() -> Iterator[None]:
    """Let windows have two rows, and no log files fit into memory."""
    with (
        with_limits(sorted_batch_rows=2, windows_bytes=0),
        patch.object(sorted_merge, "base_rows", few_base_rows),
    ):
        yield
