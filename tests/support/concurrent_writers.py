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
from tests.support.concurrent_changes import Change, recorded
from tests.support.rows import SCHEMA, rides
from tests.support.storages import Files, files_of
from tests.support.tables import create

NEVER = {
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.compact.inline": "false",
    "hoodie.parquet.small.file.limit": "0",
}
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
class Past:
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
    return tuple(sorted(tuple(row.values()) for row in scan.to_arrow().to_pylist()))


class Story:
    """Writes, with the rows after each."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.states: list[Rows] = []
        self.optimized: list[Rows] = []

    def then(self, table: Table, verb: str, *rows: tuple[Any, ...]) -> None:
        getattr(table, verb)(rides(*rows), **NEVER)
        self.note()

    def compact(self, table: Table) -> None:
        if table.config.is_merge_on_read:
            table.compact(**NEVER)
            self.note()

    def note(self) -> None:
        self.states.append(rows_of(self.table.scan(SCHEMA.names)))
        self.optimized.append(rows_of(self.table.scan(SCHEMA.names, read_optimized=True)))


def before(story: Story) -> None:
    """Write to three partitions, and replace one."""
    table = story.table
    keys = [("a", "rome"), ("b", "rome"), ("c", "rome"), ("d", "oslo"), ("e", "oslo"), ("f", "lima")]
    story.then(table, "insert", *((key, city, 0, 0.0) for key, city in keys))
    story.then(table, "insert_overwrite", ("g", "lima", 1, 1.0), ("i", "lima", 1, 1.0))
    story.then(table, "upsert", ("a", "rome", 2, 2.0), ("d", "oslo", 2, 2.0))
    story.compact(table)
    story.then(table, "upsert", ("b", "rome", 3, 3.0), ("g", "lima", 3, 3.0))
    story.then(table, "upsert", ("a", "rome", 4, 4.0))
    story.then(table, "upsert", ("d", "oslo", 4, 4.0))


def meanwhile(story: Story, options: dict[str, str]) -> Callable[[Table], None]:
    """Write to all partitions, clean up to the newest commits and archive."""

    def act(table: Table) -> None:
        for number in (5, 6):
            story.then(table, "upsert", *((key, "rome", number, 1.0 * number) for key in "ab"))
            story.compact(table)
            story.then(table, "insert_overwrite", ("d", "oslo", number, 1.0 * number))
        story.then(table, "upsert", ("g", "lima", 7, 7.0), ("h", "rome", 7, 7.0))
        story.compact(table)
        assert table.clean(**options) is not None
        assert table.archive(**options) is not None

    return act


@cache
def past(table_type: str, version: int, hold: bool = False, policy: str = "KEEP_LATEST_COMMITS") -> Past:
    table = create(table_type=table_type, version=version)
    story = Story(table)
    before(story)
    writes = table.timeline.writes()
    if hold:
        table.hold("reader", time_of(writes[HELD]), hours=10_000)
    first, length = files_of(table.state.storage), len(story.states)
    options = {**NEVER, **KEEP_1, "hoodie.clean.policy": policy, "hoodie.clean.fileversions.retained": "1"}
    changes = recorded(table.state.storage, table, meanwhile(story, options))
    return Past(first, changes, story.states, story.optimized, writes, length - 1)


def table_on(storage: Storage) -> Table:
    return Table(replace(create().state, storage=storage))
