"""A plan that another process completed or unscheduled between scheduling and running."""

from __future__ import annotations

from pathlib import Path
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


def planned(service: str, version: int, path: Path | None = None) -> tuple[Table, str]:
    table = create(path=path, table_type=MOR if service == "compact" else COW, version=version)
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


@services
@pytest.mark.parametrize("instant", ["zzz", "a/b", "../x", "", "2024-01-01", "\u0663"])
def test_an_instant_of_another_form_is_refused_and_leaves_no_file(
    tmp_path: Path, service: str, instant: str
) -> None:
    table, _ = planned(service, 9, tmp_path / "t")
    before = stored(table)
    with pytest.raises(InvalidError, match="is no requested time of a plan"):
        method(table, service)(instant=instant)
    assert stored(table) == before


@services
def test_an_instant_without_a_plan_lists_the_pending_plans_and_leaves_no_file(
    tmp_path: Path, service: str
) -> None:
    table, instant = planned(service, 9, tmp_path / "t")
    run = rf"Pending: {instant}. Run one of them with table.services.{service}\(instant\)"
    for other in ("20200101000000000", table.timeline.writes()[0].requested):
        with pytest.raises(InvalidError, match=run):
            method(table, service)(instant=other)
    method(table, service)(instant=instant)
    with pytest.raises(InvalidError, match=r"None is pending: table.services.schedule_\w+\(\) plans one"):
        method(table, service)(instant="20200101000000000")
    assert {path for path in stored(table) if "20200101000000000" in path} == set()


def test_a_base_file_compaction_that_is_not_there_names_the_next_call() -> None:
    table, _ = planned("cluster", 9)
    with pytest.raises(InvalidError, match=r"no base-file compaction with this time.* Pending: "):
        table.services.compact_base_files(instant="20200101000000000")
    with pytest.raises(InvalidError, match=r"table.services.compact_base_files\(\)"):
        table.services.compact()


def stored(table: Table) -> set[str]:
    """Return the paths of all files of a table."""
    root = Path(table.uri)
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
