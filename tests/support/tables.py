"""New tables of rides in memory, and the options that tests vary."""

from __future__ import annotations

import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import drawstring
from drawstring.base.clock import Clock
from drawstring.config.keys.concurrency import LockSettings
from drawstring.config.options.write_options import options_of
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.timeline.store import TimelineStore
from tests.support.copies import copied
from tests.support.rows import SCHEMA, rides

COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4"}
NEW_FILE_GROUPS = {"hoodie.parquet.small.file.limit": "0"}
AVRO_LOGS = {"hoodie.logfile.data.block.format": "avro"}
table_types = pytest.mark.parametrize("table_type", [COW, MOR])
WITHOUT_COMPACTION = {"hoodie.compact.inline": "false"}
"""Options of writes after which log files stay, however many there are."""

WITHOUT_SERVICES = {
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    **WITHOUT_COMPACTION,
}
"""Options of writes after which old files and instants stay."""

VERSIONS = (6, 8, 9, 10)
versions = pytest.mark.parametrize("version", VERSIONS)
A, B, C = ("a", "rome", 1, 1.0), ("b", "rome", 1, 2.0), ("c", "pisa", 1, 3.0)
OLD = [("a", "rome", 1, 1.0), ("b", "rome", 1, 1.0)]


def create(schema: pa.Schema = SCHEMA, path: str | Path | None = None, **how: Any) -> Table:
    """Create an empty table.

    Args:
        schema: of its columns.
        path: where it is; a new place in memory when not given.
        **how: other arguments of `drawstring.create` than those of a table of rides.
    """
    defaults = {"name": "rides", "record_key": "id", "partition_by": "city", "ordering": "ts"}
    return drawstring.create(path or new_address(), schema, **{**defaults, **how})


def listing(table: Table) -> Table:
    """Open a table whose queries, writes and services list the storage, and build no metadata table."""
    return Table(replace(context_of(table), uses_metadata=False))


def new_address() -> str:
    """Return the address of a table in memory that is not there yet."""
    return f"memory://{uuid.uuid4()}"


@copied
def filled(uses_metadata: bool = True, **how: Any) -> Table:
    """Create a table that holds the rows A, B and C."""
    table = create(**how) if uses_metadata else listing(create(**how))
    table.upsert(rides(A, B, C))
    return table


def table_at(path: Path, table_type: str = MOR, version: int = 9, **how: Any) -> Table:
    """Create a table on disk that holds the rows `OLD` after two writes."""
    table = create(path=path, table_type=table_type, version=version, **how)
    table.upsert(rides(("a", "rome", 0, 0.0), OLD[1]))
    table.upsert(rides(OLD[0]))
    return table


def file_groups(table: Table) -> int:
    """Return how many file groups a table has."""
    return len(table.inspect.files())


def logs(table: Table) -> int:
    """Return how many log files the newest slices of a table have."""
    return sum(len(each.logs) for each in table.inspect.files())


def store_of(table: Table, clock: Clock | None = None) -> TimelineStore:
    """Return what writes the timeline of a table, by the table's clock or another one."""
    return TimelineStore(context_of(table).storage, table.config, clock or context_of(table).clock)


def locking(wait_ms: int) -> LockSettings:
    """Return the options of the table's own lock, with a time to wait for it."""
    return options_of("upsert", {"hoodie.write.lock.wait_time_ms": str(wait_ms)}).locking
