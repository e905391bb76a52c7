"""Tables with consistent hashing, their rings and their resizing."""

from __future__ import annotations

from typing import Any

from drawstring.index.consistent_bucket import Ring, key_hashes, load_ring
from drawstring.model.files import LogFile
from drawstring.table import Table
from drawstring.testing import context_of
from tests.support.copies import copied
from tests.support.rows import held, rides
from tests.support.tables import MOR, create

Row = tuple[Any, ...]
Rows = dict[str, Row]
CONSISTENT = {
    "hoodie.index.type": "BUCKET",
    "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
    "hoodie.bucket.index.num.buckets": "2",
}
SPLIT = {"hoodie.parquet.max.file.size": "1000", "hoodie.bucket.index.split.threshold": "1.0"}
MORE = {**SPLIT, "hoodie.bucket.index.max.num.buckets": "8"}
FEWER = {"hoodie.bucket.index.min.num.buckets": "1", "hoodie.bucket.index.max.num.buckets": "8"}
ROWS = [(f"k{number:03}", "rome", number, number / 4) for number in range(40)]
ALLOW = {"hoodie.clustering.updates.strategy": "SparkAllowUpdateStrategy"}
ROMANS = [(f"k{number}", "rome", 1, 1.0) for number in range(9)]
PISA, NEWER_PISA = ("p", "pisa", 1, 1.0), ("p", "pisa", 2, 2.0)


def row(number: int, ts: int) -> Row:
    """Return a ride by the number of its key."""
    return (f"k{number:03}", "rome", ts, float(ts))


def rows_of(table: Table) -> Rows:
    """Return the rows of a table by key, each of which is there once."""
    found = held(table)
    rows = {each[0]: each for each in found}
    assert len(found) == len(rows)
    return rows


def dual_write_logs(table: Table, resizing: str) -> list[LogFile]:
    """Log files in buckets that a resizing makes, by what is listed."""
    listed = (LogFile.parse(status) for status in context_of(table).storage.list_files("rome"))
    return [log for log in listed if log is not None and log.instant == resizing]


def written_during_resizing(version: int) -> tuple[Table, str, Rows]:
    """A table whose resizing is pending, written twice to already."""
    table = resizable_table(version)
    resizing = table.services.schedule_clustering(options=MORE)
    assert resizing is not None
    table.upsert(rides(row(3, 500), row(90, 500)))
    return table, resizing, rows_of(table)


@copied
def resizable_table(version: int = 9, **how: Any) -> Table:
    """Create a table of one partition with two buckets and no log files."""
    table = create(table_type=MOR, version=version, properties=CONSISTENT, **how)
    table.upsert(rides(*ROWS))
    table.upsert(rides(("k003", "rome", 99, 99.0)))
    table.services.compact()
    return table


def ring_of(table: Table, partition: str = "rome") -> Ring:
    """Return the ring of a partition as the timeline has it."""
    timeline = table.timeline
    ring = load_ring(context_of(table).storage, partition, timeline.has_completed)
    assert ring is not None
    return ring


def check_places(table: Table) -> None:
    """Make sure that every record is in the file group that its ring says, and is there once."""
    rows = table.scan(columns=["_hoodie_record_key", "_hoodie_file_name"]).to_arrow()
    keys = rows.column(0).combine_chunks()
    prefixes = ring_of(table).prefixes_of(key_hashes(keys, ("id",))).to_pylist()
    assert all(
        name.startswith(f"{prefix}-0")
        for name, prefix in zip(rows.column(1).to_pylist(), prefixes, strict=True)
    )
    assert len(set(keys.to_pylist())) == len(keys)


def table_with_two_rings(version: int) -> Table:
    """Create a table of two partitions, rome and pisa."""
    table = create(table_type=MOR, version=version, properties=CONSISTENT)
    table.upsert(rides(*ROMANS, PISA))
    return table


def prefixes(table: Table, partition: str) -> tuple[str, ...]:
    """Return the prefixes of the file ids of a partition's buckets."""
    return ring_of(table, partition).prefixes
