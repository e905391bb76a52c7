"""Writes that change nothing: a commit by default, as in Hudi, and no trace where that is not allowed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from drawstring.model.result import CommitResult
from drawstring.table import Table
from tests.support.faults import leftovers, orphans
from tests.support.rows import held, rides
from tests.support.tables import BUCKETS, COW, MOR, WITHOUT_SERVICES, create

NONE = {"hoodie.allow.empty.commit": "false"}
ROW = ("a", "rome", 1, 1.0)

Write = Callable[[Table, dict[str, Any]], CommitResult]

NOTHING: dict[str, Write] = {
    "upsert of no rows": lambda table, how: table.upsert(rides(), options=how),
    "append of no rows": lambda table, how: table.append(rides(), options=how),
    "delete of keys that are not there": lambda table, how: table.delete(
        rides(("z", "rome", 9, 9.0)), options=how
    ),
    "delete where nothing is": lambda table, how: table.delete(where="ts > 99", options=how),
    "update where nothing is": lambda table, how: table.update("ts > 99", {"fare": "0"}, options=how),
    "overwrite with no rows": lambda table, how: table.insert_overwrite(rides(), options=how),
    "delete_partition that is not there": lambda table, how: table.delete_partition("q*", options=how),
}
each = pytest.mark.parametrize("write", NOTHING.values(), ids=list(NOTHING))
kinds = pytest.mark.parametrize("table_type", [COW, MOR])


@each
@kinds
def test_a_write_that_changes_nothing_leaves_no_trace_where_that_is_not_allowed(
    table_type: str, write: Write
) -> None:
    table = create(table_type=table_type)
    table.upsert(rides(ROW), options=WITHOUT_SERVICES)
    before = table.timeline.instants
    result = write(table, {**WITHOUT_SERVICES, **NONE})
    assert (result.instant, result.completed, result.records_written, result.files) == ("", None, 0, 0)
    assert table.timeline.instants == before
    assert (orphans(table), leftovers(table), held(table)) == ([], [], [ROW])


@each
def test_it_is_a_commit_by_default(write: Write) -> None:
    table = create()
    table.upsert(rides(ROW), options=WITHOUT_SERVICES)
    result = write(table, WITHOUT_SERVICES)
    assert table.timeline.writes()[-1].requested == result.instant
    assert held(table) == [ROW]


@kinds
def test_a_write_that_changes_something_is_committed(table_type: str) -> None:
    table = create(table_type=table_type, properties=BUCKETS)
    table.upsert(rides(ROW), options={**WITHOUT_SERVICES, **NONE})
    table.delete(rides(ROW), options={**WITHOUT_SERVICES, **NONE})
    table.upsert(rides(ROW), options={**WITHOUT_SERVICES, **NONE})
    table.delete_partition("rome", options={**WITHOUT_SERVICES, **NONE})
    table.upsert(rides(ROW), options={**WITHOUT_SERVICES, **NONE})
    table.insert_overwrite_table(rides(), options={**WITHOUT_SERVICES, **NONE})
    assert (len(table.timeline.writes()), held(table)) == (6, [])
