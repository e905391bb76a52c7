"""A plan that another process completed or unscheduled between scheduling and running."""

from __future__ import annotations

from typing import Any

import pytest

from drawstring.base.errors import ConflictError, InvalidError
from drawstring.config.options.write_options import WriteOptions
from drawstring.services.clustering import run_clustering
from drawstring.services.compaction import run_compaction
from drawstring.table import Table
from drawstring.testing import context_of
from tests.support.methods import method
from tests.support.rows import held, rides
from tests.support.tables import COW, MOR, create

LEAVE: dict[str, Any] = {
    "hoodie.compact.inline": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
}
SHORT = {
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.compact.inline.max.delta.commits": "1",
}
versions = pytest.mark.parametrize("version", [6, 8, 9])
services = pytest.mark.parametrize("service", ["compact", "cluster"])


def planned(service: str, version: int) -> tuple[Table, str]:
    table = create(table_type=MOR if service == "compact" else COW, version=version)
    table.insert(rides(("a", "rome", 1, 1.0)), options=LEAVE)
    table.upsert(rides(("a", "rome", 2, 2.0)), options=LEAVE)
    schedule = (
        table.services.schedule_compaction if service == "compact" else table.services.schedule_clustering
    )
    instant = schedule()
    assert instant is not None
    return table, instant


def run_own(service: str, table: Table, instant: str) -> Any:
    run = run_compaction if service == "compact" else run_clustering
    return run(context_of(table), instant, WriteOptions.parse({}), is_own=True)


@services
@versions
def test_a_plan_that_another_process_ran_and_archived_is_done(version: int, service: str) -> None:
    table, instant = planned(service, version)
    assert method(table, service)(instant=instant)
    for number in range(3, 9):
        table.upsert(rides(("a", "rome", number, 1.0 * number)), options=LEAVE)
        if service == "compact":
            table.services.compact(options=LEAVE)
    table.services.clean(options=SHORT)
    table.services.archive(options=SHORT)
    assert instant not in {each.requested for each in table.timeline.instants}
    assert not method(table, service)(instant=instant)
    assert run_own(service, table, instant) is None
    assert held(table) == [("a", "rome", 8, 8.0)]


@services
@versions
def test_a_plan_that_another_process_unscheduled_is_to_be_made_again(version: int, service: str) -> None:
    table, instant = planned(service, version)
    table.services.rollback(instant)
    with pytest.raises(ConflictError, match=r"Another process unscheduled this .* Run the service again"):
        run_own(service, table, instant)
    with pytest.raises((ConflictError, InvalidError), match=r"unscheduled|was unscheduled or never planned"):
        method(table, service)(instant=instant)
    assert method(table, service)()


@services
def test_a_write_of_the_archive_is_no_plan(service: str) -> None:
    table, _ = planned(service, 9)
    method(table, service)()
    first = table.timeline.writes()[0].requested
    for number in range(3, 9):
        table.upsert(rides(("a", "rome", number, 1.0 * number)), options=LEAVE)
        if service == "compact":
            table.services.compact(options=LEAVE)
    table.services.clean(options=SHORT)
    table.services.archive(options=SHORT)
    assert table.timeline.write_at(first) is None
    with pytest.raises(InvalidError, match="unscheduled or never planned"):
        method(table, service)(instant=first)
