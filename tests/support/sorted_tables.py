"""Tables with the storage layout `lsm_tree`, and what is true of their files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from drawstring.base.clock import SteppingClock
from drawstring.table import Table
from drawstring.timeline.properties_store import save_properties
from tests.support.rows import SCHEMA, rides
from tests.support.tables import MOR, WITHOUT_SERVICES, create

LSM = {"hoodie.table.storage.layout": "lsm_tree"}


def sorted_table(schema: pa.Schema = SCHEMA, properties: dict[str, str] | None = None, **how: Any) -> Table:
    """Create an empty table of rides whose files are sorted by key."""
    return create(schema, table_type=MOR, version=10, properties={**LSM, **(properties or {})}, **how)


def keys_of_files(table: Table) -> dict[str, list[str]]:
    """Return the record keys of every base and log file on storage, in their order."""
    storage = table._context.storage
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
    save_properties(table._context.storage, {**table.config.properties, **LSM}, SteppingClock())
    return table
