"""Tables that others write to, clean and archive while they are read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from drawstring.model.instant import Instant, time_of
from drawstring.query.scan import Scan
from drawstring.storage.protocol import Storage
from drawstring.table import Table
from drawstring.testing import context_of
from tests.support.concurrent_changes import Change, recorded
from tests.support.rows import SCHEMA, rides, sorted_rows
from tests.support.storages import Files, files_of
from tests.support.tables import NEW_FILE_GROUPS, WITHOUT_SERVICES, create

ONLY_THE_WRITE = {**WITHOUT_SERVICES, **NEW_FILE_GROUPS}
KEEP_1 = {
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
}
ALL = 1 << 30
"""A pace: all changes at once."""

HELD = -2
"""The write after which a reader follows: later than one that replaced file groups."""

Rows = tuple[tuple[Any, ...], ...]


@dataclass
class ChangedTable:
    """A table, what others do to it next, and the rows after each of their commits and those before.

    Attributes:
        files: of the table as a reader finds it.
        changes: what others do then.
        states: rows after each commit.
        optimized: the rows that base files alone have.
        writes: the commits that the reader finds.
        after: number of the last of them.
    """

    files: Files
    changes: list[Change]
    states: list[Rows]
    optimized: list[Rows]
    writes: tuple[Instant, ...]
    after: int


def rows_of(scan: Scan) -> Rows:
    """Return what a query finds, sorted."""
    return tuple(sorted_rows(scan.to_arrow()))


class WrittenRows:
    """Writes, with the rows after each."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.states: list[Rows] = []
        self.optimized: list[Rows] = []

    def then(self, table: Table, verb: str, *rows: tuple[Any, ...]) -> None:
        getattr(table, verb)(rides(*rows), options=ONLY_THE_WRITE)
        self.note()

    def compact(self, table: Table) -> None:
        if table.config.is_merge_on_read:
            table.services.compact(options=ONLY_THE_WRITE)
            self.note()

    def note(self) -> None:
        self.states.append(rows_of(self.table.scan(SCHEMA.names)))
        self.optimized.append(rows_of(self.table.scan(SCHEMA.names, read_optimized=True)))


def first_writes(written: WrittenRows) -> None:
    """Write to three partitions, and replace one."""
    table = written.table
    keys = [("a", "rome"), ("b", "rome"), ("c", "rome"), ("d", "oslo"), ("e", "oslo"), ("f", "lima")]
    written.then(table, "insert", *((key, city, 0, 0.0) for key, city in keys))
    written.then(table, "insert_overwrite", ("g", "lima", 1, 1.0), ("i", "lima", 1, 1.0))
    written.then(table, "upsert", ("a", "rome", 2, 2.0), ("d", "oslo", 2, 2.0))
    written.compact(table)
    written.then(table, "upsert", ("b", "rome", 3, 3.0), ("g", "lima", 3, 3.0))
    written.then(table, "upsert", ("a", "rome", 4, 4.0))
    written.then(table, "upsert", ("d", "oslo", 4, 4.0))


def later_writes(written: WrittenRows, options: dict[str, str]) -> Callable[[Table], None]:
    """Write to all partitions, clean up to the newest commits and archive."""

    def act(table: Table) -> None:
        for number in (5, 6):
            written.then(table, "upsert", *((key, "rome", number, 1.0 * number) for key in "ab"))
            written.compact(table)
            written.then(table, "insert_overwrite", ("d", "oslo", number, 1.0 * number))
        written.then(table, "upsert", ("g", "lima", 7, 7.0), ("h", "rome", 7, 7.0))
        written.compact(table)
        assert table.services.clean(options=options)
        assert table.services.archive(options=options)

    return act


@cache
def changed_table(
    table_type: str, version: int, hold: bool = False, policy: str = "KEEP_LATEST_COMMITS"
) -> ChangedTable:
    table = create(table_type=table_type, version=version)
    written = WrittenRows(table)
    first_writes(written)
    writes = table.timeline.writes()
    if hold:
        table.holds.add("reader", time_of(writes[HELD]), hours=10_000)
    first, length = files_of(context_of(table).storage), len(written.states)
    options = {
        **ONLY_THE_WRITE,
        **KEEP_1,
        "hoodie.clean.policy": policy,
        "hoodie.clean.fileversions.retained": "1",
    }
    changes = recorded(context_of(table).storage, table, later_writes(written, options))
    return ChangedTable(first, changes, written.states, written.optimized, writes, length - 1)


def table_on(storage: Storage) -> Table:
    """Return a table of rides in a storage."""
    return Table(replace(context_of(create()), storage=storage))
