"""Appends merge the small files that they leave, once enough came together, and never much more than that."""

from __future__ import annotations

import logging
from dataclasses import replace
from hashlib import md5
from typing import Any

import pytest

from drawstring.base.clock import SystemClock
from drawstring.base.errors import ConflictError, CorruptTableError
from drawstring.formats.clustering_plan import decode_clustering_plan, encode_clustering_plan
from drawstring.model.instant import Action
from drawstring.services import append_merge
from drawstring.table import Table
from drawstring.timeline.store import TimelineStore
from tests.histories import UNTENDED
from tests.write.test_faults import leftovers, orphans
from tests.write.test_operations import COW, MOR, create, held, rides

FILES = "drawstring.append.merge.min.files"
OFF = {"drawstring.append.merge": "false"}

kinds = pytest.mark.parametrize("table_type", [COW, MOR])


def append(table: Table, numbers: range, city: str = "oslo", **options: Any) -> None:
    for number in numbers:
        table.append(rides((f"{city}{number}", city, number, 1.0)), **UNTENDED, **options)


def groups(table: Table) -> int:
    return len(table.file_slices())


def merges(table: Table) -> int:
    return len(table.timeline.completed_of(Action.REPLACE_COMMIT))


@kinds
@pytest.mark.parametrize("version", (6, 8, 9))
def test_the_tenth_append_merges_ten_small_files(table_type: str, version: int) -> None:
    table = create(table_type=table_type, version=version)
    append(table, range(9))
    assert (groups(table), merges(table)) == (9, 0)
    append(table, range(9, 10))
    assert (groups(table), merges(table)) == (1, 1)
    assert held(table) == sorted((f"oslo{number}", "oslo", number, 1.0) for number in range(10))
    assert (orphans(table), leftovers(table), table.timeline.pending()) == ([], [], ())
    assert table.validate().is_sound


def test_a_switch_turns_it_off() -> None:
    table = create()
    append(table, range(12), **OFF)
    assert (groups(table), merges(table)) == (12, 0)


@pytest.mark.parametrize("verb", ["bulk_insert", "insert"])
def test_no_other_operation_does_it(verb: str) -> None:
    table = create()
    for number in range(12):
        options = {"hoodie.parquet.small.file.limit": "0"} if verb == "insert" else {}
        getattr(table, verb)(rides((f"a{number}", "oslo", number, 1.0)), **UNTENDED, **options)
    assert (groups(table), merges(table)) == (12, 0)


def test_where_clustering_is_asked_for_that_does_it() -> None:
    table = create()
    append(table, range(12), **{"hoodie.clustering.schedule.inline": "true"})
    assert merges(table) == 0


def test_files_of_many_appends_stay_few_and_rows_are_copied_a_few_times() -> None:
    table, appends, size = create(), 40, 1_000
    for number in range(appends):
        keys = (md5(f"{number} {row}".encode()).hexdigest() for row in range(size))
        table.append(rides(*((key, "oslo", number, 1.0) for key in keys)), **UNTENDED, **{FILES: 2})
    assert groups(table) <= 6
    assert table.scan().to_arrow().num_rows == appends * size
    store = TimelineStore(table.state.storage, table.config, SystemClock())
    copied = sum(
        stat.num_writes
        for each in table.timeline.completed_of(Action.REPLACE_COMMIT)
        for stat in store.commit_metadata(each).stats
    )
    assert copied <= 6 * appends * size, "each time a row is copied its file is twice as large as before"


def test_a_file_larger_than_all_others_waits_for_them() -> None:
    table = create()
    table.append(rides(*((f"a{number}", "oslo", number, 1.0) for number in range(20_000))), **UNTENDED)
    append(table, range(3), **{FILES: 3})
    sizes = sorted(each.size_bytes for each in table.file_slices())
    assert (len(sizes), merges(table)) == (2, 1)
    assert sizes[1] > 5 * sizes[0]


def test_nothing_is_listed_while_nothing_is_due(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[tuple[str, ...]] = []
    planned = append_merge.schedule_clustering

    def schedule(state: Any, options: Any, planner: Any) -> str | None:
        looked.append(options.clustering.partitions)
        return planned(state, options, planner)

    monkeypatch.setattr(append_merge, "schedule_clustering", schedule)
    table = create()
    append(table, range(7))
    append(table, range(1), "rome", **{"hoodie.parquet.small.file.limit": 0})
    assert looked == [], "neither too few nor large files"
    append(table, range(3))
    assert set(looked) == {("oslo",)}, "the partition that it wrote to, and no other"
    assert (groups(table), merges(table)) == (2, 1)


def test_what_a_dead_process_left_is_merged_by_the_next_append(monkeypatch: pytest.MonkeyPatch) -> None:
    table = create()
    append(table, range(3))
    with monkeypatch.context() as patch:
        patch.setattr(append_merge, "run_clustering", lambda *_: None)
        append(table, range(3, 4), **{FILES: 4})
    assert table.timeline.pending_of(Action.CLUSTERING)
    with pytest.raises(ConflictError, match="pending clustering"):
        table.upsert(rides(("oslo1", "oslo", 9, 9.0)), **UNTENDED)
    append(table, range(4, 5))
    assert table.timeline.pending() == ()
    assert (groups(table), len(held(table))) == (2, 5)


@pytest.mark.parametrize("error", [ConflictError("somebody else was there"), ValueError("unknown")])
def test_an_append_stands_when_merging_fails(
    error: Exception, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    table = create()

    def fail(*_: Any) -> None:
        raise error

    monkeypatch.setattr(append_merge, "schedule_clustering", fail)
    with caplog.at_level(logging.WARNING, "drawstring"):
        append(table, range(2), **{FILES: 2})
    assert len(held(table)) == 2
    assert "the write is committed, merging small files after it failed" in caplog.text
    assert str(error) in caplog.text


def test_a_plan_that_names_other_files_than_its_record_is_not_run() -> None:
    table = create()
    append(table, range(3))
    requested = table.schedule_base_file_compaction()
    assert requested is not None
    store = TimelineStore(table.state.storage, table.config, SystemClock())
    (pending,) = table.timeline.pending_of(Action.CLUSTERING)
    plan = decode_clustering_plan(store.read_requested(pending))
    group = plan.groups[0]
    fewer = replace(plan, groups=(replace(group, slices=group.slices[1:]),))
    (path,) = (
        each.path
        for each in table.state.storage.list_tree(".hoodie")
        if each.name == f"{requested}.clustering.requested"
    )
    table.state.storage.put(path, encode_clustering_plan(fewer, table.state.storage.full_uri("")))
    with pytest.raises(CorruptTableError, match="names other files"):
        table.cluster(instant=requested)
    assert groups(table) == 3
