"""Files of a write that was rolled back which come late, from tasks that outlived its driver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from drawstring.engine.local import LocalEngine
from drawstring.model.files import FileStatus, parse_data_file
from drawstring.model.instant import time_of
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.timeline.archive.reader import open_archive
from tests.support.lingering import until
from tests.support.rows import held, rides
from tests.support.storages import data_files
from tests.support.tables import COW, listing
from tests.support.validation import problems

CITIES = tuple(f"city{number:02}" for number in range(8))
FIRST = [(f"k{city}", city, 1, 1.0) for city in CITIES]
LATE = [(key, city, 2, 2.0) for key, city, *_ in FIRST] + [(f"new{city}", city, 2, 2.0) for city in CITIES]
"""The rows of a write whose driver is killed."""

BEATS = {
    "hoodie.client.heartbeat.interval_in_ms": "1000",
    "hoodie.client.heartbeat.tolerable.misses": "3",
}
KEEP_FEW = {
    "hoodie.keep.min.commits": "3",
    "hoodie.keep.max.commits": "4",
    "hoodie.clean.commits.retained": "1",
    "hoodie.compact.inline.max.delta.commits": "2",
    "hoodie.metadata.compact.max.delta.commits": "2",
}
"""Options with which instants and files go soon."""


class DetachedEngine(LocalEngine):
    """Runs tasks that nobody waits for when a call has failed, or another attempt was quicker."""

    @property
    def tasks_may_outlive(self) -> bool:
        return True


def dead_write(table: Table) -> str:
    """Return the requested time of the one pending write."""
    (pending,) = table.timeline.pending_writes()
    return pending.requested


def write_until_rolled_back(table: Table, requested: str) -> list[Any]:
    """Upsert a row until a write is rolled back; return the rows that the table holds then."""
    ts = 10

    def is_gone() -> bool:
        nonlocal ts
        ts += 1
        table.upsert(rides(("own", CITIES[0], ts, 1.0)), options=BEATS)
        return table.timeline.find(requested) is None

    until(is_gone)
    return sorted([*FIRST, ("own", CITIES[0], ts, 1.0)])


def files_of(table: Table, requested: str) -> list[str]:
    """Return the data files that are named by a write."""
    stored = (parse_data_file(FileStatus(path, 0)) for path in data_files(context_of(table).storage))
    return [file.status.path for file in stored if file is not None and file.instant == requested]


def assert_never_counts(table: Table, requested: str, rows: list[Any]) -> None:
    """Make sure that no reader has the rows of a write, which is in no timeline."""
    assert held(table) == rows
    assert held(listing(table)) == rows
    changes = table.incremental("0", columns=rides(FIRST[0]).column_names).to_arrow()
    assert pa.compute.max(changes.filter(pa.compute.equal(changes["ts"], 2))["ts"]).as_py() is None
    assert requested not in {each.requested for each in table.timeline.instants}
    archived = open_archive(context_of(table).storage, table.config).completed("")
    assert requested not in {each.requested for each in archived}


def judge(table: Table, requested: str, rows: list[Any], ends: Sequence[str]) -> None:
    """Make sure that late files of a write which was rolled back never count, and go.

    Args:
        table: as it is when the late files are there.
        requested: of the write.
        rows: what the table holds.
        ends: what became of the late files.
    """
    late = files_of(table, requested)
    assert len(late) >= sum(each != "refused" for each in ends), (late, ends)
    assert_never_counts(table, requested, rows)
    assert {(each.check, each.path) for each in problems(table)} == {("orphan", path) for path in late}
    for ts in range(100, 108):
        table.upsert(rides(("own", CITIES[0], ts, 1.0)), options={**BEATS, **KEEP_FEW})
    rows = sorted([row for row in rows if row[0] != "own"] + [("own", CITIES[0], 107, 1.0)])
    assert time_of(table.timeline.writes()[0]) > requested
    assert len(files_of(table, requested)) == ends.count("died"), "a marker tells the next writer of the rest"
    assert_never_counts(table, requested, rows)
    table.services.repair(apply=True)
    assert files_of(table, requested) == []
    assert problems(table) == []
    assert_never_counts(table, requested, rows)


def table_options(table_type: str) -> dict[str, Any]:
    """Return how a table is created in which every city gets files of its own."""
    return {"table_type": table_type, "version": 9 if table_type == COW else 10}
