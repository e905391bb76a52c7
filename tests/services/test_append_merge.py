"""Appends merge the small files that they leave, once enough came together, and never much more than that."""

from __future__ import annotations

import logging
from dataclasses import replace
from hashlib import md5
from typing import Any

import pytest

from drawstring.base.clock import SeededIds, SystemClock
from drawstring.base.errors import ConflictError, CorruptTableError
from drawstring.config.options.write_options import WriteOptions
from drawstring.filegroups.file_system_view import SliceLookup
from drawstring.formats.metadata.plans import decode_clustering_plan, encode_clustering_plan
from drawstring.model.commit import WriteStat
from drawstring.model.instant import Action
from drawstring.services import small_files
from drawstring.services.small_files import partitions_to_look_at
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.txn.table_context import TableContext
from tests.support.faults import leftovers, orphans
from tests.support.interrupted import in_no_time
from tests.support.rows import held, rides
from tests.support.tables import COW, MOR, WITHOUT_SERVICES, create, file_groups, store_of

FILES = "drawstring.append.merge.min.files"
OFF = {"drawstring.append.merge": "false"}
SHORT = {
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
}

kinds = pytest.mark.parametrize("table_type", [COW, MOR])


def append(table: Table, numbers: range, city: str = "oslo", **options: Any) -> None:
    for number in numbers:
        table.append(rides((f"{city}{number}", city, number, 1.0)), options={**WITHOUT_SERVICES, **options})


def seeded(table: Table) -> Table:
    return Table(replace(context_of(table), ids=SeededIds(7)))


def merges(table: Table) -> int:
    return len(table.timeline.completed_of(Action.REPLACE_COMMIT))


@kinds
@pytest.mark.parametrize("version", (6, 8, 9))
def test_small_files_are_merged_once_enough_came_together(table_type: str, version: int) -> None:
    table = create(table_type=table_type, version=version)
    append(table, range(3), **{FILES: 4})
    assert (file_groups(table), merges(table)) == (3, 0)
    append(table, range(3, 4), **{FILES: 4})
    assert (file_groups(table), merges(table)) == (1, 1)
    assert held(table) == sorted((f"oslo{number}", "oslo", number, 1.0) for number in range(4))
    assert (orphans(table), leftovers(table), table.timeline.pending()) == ([], [], ())
    assert table.services.validate().is_sound


def test_by_default_that_is_ten_files_or_a_few_more() -> None:
    table = seeded(create())
    counts = []
    for number in range(45):
        append(table, range(number, number + 1))
        counts.append(file_groups(table))
    assert counts[:9] == list(range(1, 10))
    assert merges(table) >= 2
    assert max(counts) <= 20
    assert len(held(table)) == 45


def test_files_are_merged_however_many_partitions_take_turns() -> None:
    table, cities = create(), [f"city{number}" for number in range(12)]
    for number in range(36):
        append(table, range(number, number + 1), cities[number % 12], **{FILES: 3})
    assert file_groups(table) == 12


def test_files_are_merged_though_other_partitions_are_overwritten_in_between() -> None:
    table = create()
    for number in range(8):
        append(table, range(number, number + 1), **{FILES: 4})
        table.insert_overwrite(rides(("a", "rome", number, 1.0)), options=WITHOUT_SERVICES)
    assert file_groups(table) == 3, "one in rome; four in oslo became one, and one more each time until seven"


def test_looking_is_a_fixed_share_of_appending_and_takes_no_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    table = seeded(create())
    looked: list[str] = []
    locked: list[Any] = []
    slices = SliceLookup.slices
    monkeypatch.setattr(SliceLookup, "slices", lambda self, path: looked.append(path) or slices(self, path))
    monkeypatch.setattr(small_files, "schedule_clustering", lambda *_: locked.append(1))
    for number in range(60):
        append(table, range(number, number + 1), f"city{number % 30}")
    assert 10 <= len(looked) <= 30, "of three files one has its partition looked at"
    assert locked == []


def test_an_append_looks_where_it_wrote_small_files_and_nowhere_else() -> None:
    def written(partition: str, count: int, size_bytes: int = 1) -> list[WriteStat]:
        names = (f"{partition}{number}" for number in range(count))
        return [WriteStat(partition, name, f"{partition}/{name}", size_bytes=size_bytes) for name in names]

    ten = WriteOptions.parse({})
    assert partitions_to_look_at(written("oslo", 10), ten) == ["oslo"]
    assert partitions_to_look_at(written("oslo", 99, 1 << 30), ten) == []
    drawn = [path for number in range(999) for path in partitions_to_look_at(written(f"c{number}-", 1), ten)]
    assert 250 <= len(drawn) <= 420


@pytest.mark.parametrize("version", (6, 9))
def test_an_append_that_archives_merges_as_well(version: int, caplog: pytest.LogCaptureFixture) -> None:
    table, archived = create(version=version), 0
    for number in range(14):
        before = table.timeline.start
        table.append(rides((f"k{number}", "oslo", number, 1.0)), options={FILES: 2, **SHORT})
        archived += table.timeline.start != before
    assert archived > 3
    assert "merging small files" not in caplog.text
    assert file_groups(table) <= 4
    assert len(held(table)) == 14


def test_a_switch_turns_it_off() -> None:
    table = create()
    append(table, range(12), **OFF)
    assert (file_groups(table), merges(table)) == (12, 0)


@pytest.mark.parametrize("verb", ["bulk_insert", "insert"])
def test_no_other_operation_does_it(verb: str) -> None:
    table = create()
    for number in range(12):
        options = {"hoodie.parquet.small.file.limit": "0"} if verb == "insert" else {}
        getattr(table, verb)(
            rides((f"a{number}", "oslo", number, 1.0)), options={**WITHOUT_SERVICES, **options}
        )
    assert (file_groups(table), merges(table)) == (12, 0)


def test_where_clustering_is_asked_for_that_does_it() -> None:
    table = create()
    append(table, range(12), **{"hoodie.clustering.schedule.inline": "true"})
    assert merges(table) == 0


def test_files_of_many_appends_stay_few_and_rows_are_copied_a_few_times() -> None:
    table, appends, size = create(), 40, 1_000
    for number in range(appends):
        keys = (md5(f"{number} {row}".encode()).hexdigest() for row in range(size))
        table.append(
            rides(*((key, "oslo", number, 1.0) for key in keys)), options={**WITHOUT_SERVICES, FILES: 2}
        )
    assert file_groups(table) <= 6
    assert table.scan().to_arrow().num_rows == appends * size
    store = store_of(table, SystemClock())
    copied = sum(
        stat.num_writes
        for each in table.timeline.completed_of(Action.REPLACE_COMMIT)
        for stat in store.commit_metadata(each).stats
    )
    assert copied <= 6 * appends * size, "each time a row is copied its file is twice as large as before"


def test_a_file_larger_than_all_others_waits_for_them() -> None:
    table = create()
    table.append(
        rides(*((f"a{number}", "oslo", number, 1.0) for number in range(20_000))), options=WITHOUT_SERVICES
    )
    append(table, range(3), **{FILES: 3})
    sizes = sorted(each.size_bytes for each in table.inspect.files())
    assert (len(sizes), merges(table)) == (2, 1)
    assert sizes[1] > 5 * sizes[0]


def test_what_a_dead_process_left_is_merged_by_the_next_append(monkeypatch: pytest.MonkeyPatch) -> None:
    table = create()
    append(table, range(3))
    with monkeypatch.context() as patch:
        patch.setattr(small_files, "run_clustering", lambda *_: None)
        append(table, range(3, 4), **{FILES: 4})
    assert table.timeline.pending_of(Action.CLUSTERING)
    table.upsert(rides(("rome1", "rome", 9, 9.0)), options=WITHOUT_SERVICES)
    assert table.timeline.pending_of(Action.CLUSTERING), "it is in nobody's way there"
    append(table, range(4, 5))
    assert table.timeline.pending() == ()
    assert (file_groups(table), len(held(table))) == (3, 6)


@kinds
@pytest.mark.parametrize("verb", ["upsert", "delete", "insert_overwrite", "delete_partition"])
def test_a_merge_that_a_dead_process_left_makes_way(
    table_type: str, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create(table_type=table_type)
    with monkeypatch.context() as patch:
        patch.setattr(small_files, "run_clustering", lambda *_: None)
        append(table, range(3), **{FILES: 3})
    assert table.timeline.pending_of(Action.CLUSTERING)
    write = table.delete_partition if verb == "delete_partition" else getattr(table, verb)
    write(
        "oslo" if verb == "delete_partition" else rides(("oslo1", "oslo", 9, 9.0)), options=WITHOUT_SERVICES
    )
    assert table.timeline.pending() == ()
    others = [("oslo0", "oslo", 0, 1.0), ("oslo2", "oslo", 2, 1.0)]
    changed = ("oslo1", "oslo", 9, 9.0)
    assert (
        held(table)
        == {
            "upsert": sorted([*others, changed]),
            "delete": others,
            "insert_overwrite": [changed],
            "delete_partition": [],
        }[verb]
    )
    assert table.services.validate().is_sound


@kinds
def test_an_update_beside_a_running_merge_goes_through_and_the_merge_makes_way(
    table_type: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    table, run = create(table_type=table_type), small_files.run_clustering

    def beside(context: TableContext, requested: str, options: WriteOptions) -> None:
        run(context, requested, options, lambda *_: update())

    def update() -> None:
        table.upsert(rides(("oslo1", "oslo", 9, 9.0)), options=WITHOUT_SERVICES)

    with monkeypatch.context() as patch:
        patch.setattr(small_files, "run_clustering", beside)
        append(table, range(3), **{FILES: 3})
    assert held(table) == [("oslo0", "oslo", 0, 1.0), ("oslo1", "oslo", 9, 9.0), ("oslo2", "oslo", 2, 1.0)]
    assert "the merge of small files after it failed" in caplog.text
    assert (merges(table), table.timeline.pending(), orphans(table), leftovers(table)) == (0, (), [], [])


def test_a_merge_that_somebody_planned_by_hand_is_theirs() -> None:
    table = create()
    append(table, range(3), **OFF)
    planned = table.services.schedule_base_file_compaction()
    append(table, range(3, 4))
    with pytest.raises(ConflictError, match="pending clustering"):
        in_no_time(table).upsert(rides(("oslo1", "oslo", 9, 9.0)), options=WITHOUT_SERVICES)
    assert [each.requested for each in table.timeline.pending()] == [planned]


def test_a_merge_of_a_damaged_file_is_unscheduled(caplog: pytest.LogCaptureFixture) -> None:
    table = create()
    append(table, range(2), **{FILES: 3})
    storage = context_of(table).storage
    (path, *_) = [each.path for each in storage.list_tree("oslo") if each.name.endswith(".parquet")]
    storage.put(path, b"PAR1 is damaged PAR1")
    append(table, range(2, 3), **{FILES: 3})
    assert "the merge of small files after it failed" in caplog.text
    assert (file_groups(table), table.timeline.pending()) == (3, ())


def test_sorted_files_are_not_merged_with_unsorted_ones() -> None:
    table = create()
    append(table, range(3), **OFF)
    table.services.cluster(options={"hoodie.clustering.plan.strategy.sort.columns": "ts"})
    (in_order,) = (each.file_id for each in table.inspect.files())
    append(table, range(3, 6), **{FILES: 3})
    assert (file_groups(table), merges(table)) == (2, 2)
    assert in_order in {each.file_id for each in table.inspect.files()}


@pytest.mark.parametrize("error", [ConflictError("somebody else was there"), ValueError("unknown")])
def test_an_append_stands_when_merging_fails(
    error: Exception, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    table = create()

    def fail(*_: Any) -> None:
        raise error

    monkeypatch.setattr(small_files, "schedule_clustering", fail)
    with caplog.at_level(logging.WARNING, "drawstring"):
        append(table, range(3), **{FILES: 3})
    assert len(held(table)) == 3
    assert "The write is committed, but the merge of small files after it failed" in caplog.text
    assert str(error) in caplog.text


def test_a_plan_that_names_other_files_than_its_record_is_not_run() -> None:
    table = create()
    append(table, range(3))
    requested = table.services.schedule_base_file_compaction()
    assert requested is not None
    store = store_of(table, SystemClock())
    (pending,) = table.timeline.pending_of(Action.CLUSTERING)
    plan = decode_clustering_plan(store.read_requested(pending))
    group = plan.groups[0]
    fewer = replace(plan, groups=(replace(group, slices=group.slices[1:]),))
    (path,) = (
        each.path
        for each in context_of(table).storage.list_tree(".hoodie")
        if each.name == f"{requested}.clustering.requested"
    )
    context_of(table).storage.put(path, encode_clustering_plan(fewer, context_of(table).storage.full_uri("")))
    with pytest.raises(CorruptTableError, match="lists other files"):
        table.services.cluster(instant=requested)
    assert file_groups(table) == 3
