"""The metadata table that drawstring keeps: always equal to the table, whichever step a writer dies at."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from drawstring.base.clock import SteppingClock
from drawstring.storage.protocol import Storage
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.txn.table_context import TableContext
from tests.support.copies import copied
from tests.support.faults import FIRST, HOUR_MS, NEWER, START_MS, STEPS_MAX, leftovers, orphans, stride
from tests.support.faulty_storage import FaultyStorage, InjectedFault
from tests.support.metadata_tables import listed
from tests.support.rows import held, rides
from tests.support.storages import LongAgo, data_files, files_of, stored
from tests.support.tables import COW, MOR, NEW_FILE_GROUPS, create

QUIET = {"hoodie.clean.automatic": "false", "hoodie.compact.inline": "false"}
WITHOUT = {"hoodie.metadata.enable": "false"}
WRITTEN = 12
"""Number of the change of storage at which a write dies after it wrote files."""
CLEAN_ALL = {"hoodie.clean.commits.retained": "1"}
OPERATIONS: dict[str, Callable[[Table], Any]] = {
    "upsert": lambda table: table.upsert(NEWER, options=QUIET),
    "upsert_and_clean": lambda table: table.upsert(NEWER),
    "insert_overwrite": lambda table: table.insert_overwrite(NEWER, options=QUIET),
    "delete_partition": lambda table: table.delete_partition("rome"),
    "compact": lambda table: table.services.compact(),
    "cluster": lambda table: table.services.cluster(),
    "clean": lambda table: table.services.clean(options=CLEAN_ALL),
}


def restored(table: Table) -> None:
    """Make a savepoint, change the table, and go back."""
    instant = table.savepoints.create()
    table.upsert(NEWER, options=QUIET)
    assert table.savepoints.restore(instant)


def rolled_back(table: Table) -> None:
    """Let a write die before its commit, and take it back."""
    faulty = FaultyStorage(context_of(table).storage, WRITTEN)
    with suppress(InjectedFault):
        opened(faulty, START_MS + HOUR_MS).upsert(NEWER, options=QUIET)
    assert opened(LongAgo(context_of(table).storage), START_MS + 2 * HOUR_MS).services.rollback()


def reversioned(table: Table) -> None:
    """Change the version, with which the metadata table goes until the next write."""
    assert table.versions.downgrade(6) if table.config.version > 6 else table.versions.upgrade(9)
    assert not table.config.metadata_partitions
    opened(context_of(table).storage, START_MS + HOUR_MS).upsert(NEWER, options=QUIET)


OTHERS: dict[str, Callable[[Table], Any]] = {
    "log_compact": lambda table: table.services.log_compact(min_blocks=2, options=QUIET),
    "compact_base_files": lambda table: table.services.compact_base_files(),
    "savepoint": lambda table: table.savepoints.create(),
    "restore": restored,
    "rollback": rolled_back,
    "change_version": reversioned,
}
"""Actions that write no rows."""


def opened(storage: Storage, start_ms: int = START_MS, *, by_metadata: bool = True) -> Table:
    """Open a table whose queries list files by the metadata table, and whose writes build one."""
    return Table(TableContext(storage, clock=SteppingClock(start_ms), uses_metadata=by_metadata))


def own_compactions(table: Table) -> list[str]:
    """Return the completed compactions of a metadata table of version 6."""
    names = [status.name for status in context_of(table).storage.list_files(".hoodie/metadata/.hoodie")]
    return [name for name in names if name.endswith("001.commit")]


@copied
def made(table_type: str, version: int = 9, commits: int = 3) -> Table:
    """Create a table with a metadata table."""
    storage = context_of(create(table_type=table_type, version=version)).storage
    table = opened(storage, START_MS - HOUR_MS)
    table.upsert(FIRST, options=QUIET)
    for number in range(1, commits):
        table.upsert(rides(("c", "rome", number + 2, 3.0), ("d", "oslo", number + 2, 3.0)), options=QUIET)
    return table


@pytest.mark.parametrize("version", [6, 8, 9, 10])
@pytest.mark.parametrize(
    ("table_type", "operation"),
    [
        (kind, name)
        for name in (*OPERATIONS, *OTHERS)
        for kind in (COW, MOR)
        if kind == MOR or name not in ("compact", "log_compact")
    ],
)
def test_the_metadata_table_names_the_files_of_the_table_after_each_action(
    table_type: str, operation: str, version: int
) -> None:
    table = made(table_type, version)
    assert listed(table) == data_files(context_of(table).storage)
    (OPERATIONS | OTHERS)[operation](table)
    files = data_files(context_of(table).storage)
    if (table_type, operation, version) == (MOR, "rollback", 6):  # whose log files stay, and do not count
        files = {each for each in files if each in listed(table) or ".log.3_" not in each}
    assert listed(table) == files
    assert not table.services.validate().findings
    assert held(table) == held(opened(context_of(table).storage, by_metadata=False))


DELTA, COMPACTION = 3, 10
"""Number of commits after which the next one adds to the metadata table, and compacts it."""


@pytest.mark.parametrize(
    ("table_type", "operation", "commits", "version"),
    [
        (COW, "upsert", COMPACTION, 9),
        (MOR, "compact", DELTA, 10),
        (COW, "clean", DELTA, 9),
        (COW, "upsert", COMPACTION, 6),
        (MOR, "upsert", DELTA, 6),
        *(
            pytest.param(*case, marks=pytest.mark.long)
            for case in (
                (COW, "delete_partition", DELTA, 9),
                (COW, "upsert", DELTA, 10),
                (MOR, "compact", COMPACTION, 10),
                (COW, "clean", COMPACTION, 9),
                (MOR, "insert_overwrite", DELTA, 9),
                (MOR, "insert_overwrite", COMPACTION, 10),
                (COW, "delete_partition", COMPACTION, 9),
                (MOR, "compact", DELTA, 6),
                (MOR, "compact", COMPACTION, 6),
                (COW, "clean", COMPACTION, 6),
                (MOR, "upsert", COMPACTION, 6),
                (MOR, "insert_overwrite", COMPACTION, 6),
            )
        ),
    ],
)
@pytest.mark.scaled
def test_whatever_step_a_writer_dies_at_readers_by_the_metadata_table_see_a_commit_or_none(
    table_type: str, operation: str, commits: int, version: int, caplog: pytest.LogCaptureFixture
) -> None:
    table = made(table_type, version, commits)
    files, before = files_of(context_of(table).storage), held(table)
    OPERATIONS[operation](table)
    after = held(table)
    for steps in range(0, STEPS_MAX, stride()):
        storage = stored(files)
        faulty = FaultyStorage(storage, steps)
        with suppress(InjectedFault):
            OPERATIONS[operation](opened(faulty))
        step = f"after {steps} changes"
        caplog.clear()
        check_survivors(storage, before, after, step)
        assert "storage is listed" not in caplog.text, step
        if faulty.changes < steps:
            assert steps > 12
            return
    raise AssertionError(f"still failing after {STEPS_MAX} changes")


def check_survivors(storage: Storage, before: list[Any], after: list[Any], step: str) -> None:
    table = opened(LongAgo(storage), START_MS + HOUR_MS)
    seen = held(table)
    assert seen == held(opened(storage, by_metadata=False)), step
    assert seen in (before, after), step
    table.upsert(rides(("next", "rome", 99, 9.0)))
    for service in (
        (table.services.compact,) if table.timeline.pending() and table.config.is_merge_on_read else ()
    ):
        service()
    table.services.clean()
    assert orphans_are_gone(table), step
    unlisted = data_files(storage) - listed(table)
    # In version 6 log files of failed writes stay, with the name of a slice; nothing in them counts.
    assert listed(table) <= data_files(storage), step
    assert not unlisted or table.config.version == 6, step
    assert all(".log." in path for path in unlisted), step
    assert held(table) == held(opened(storage, by_metadata=False)), step
    assert not table.services.validate().findings, step


def orphans_are_gone(table: Table) -> bool:
    return not orphans(table) and not leftovers(table)


@pytest.mark.scaled
def test_a_write_that_one_failure_stops_leaves_nothing_in_the_metadata_table() -> None:
    table = made(MOR)
    files, before = files_of(context_of(table).storage), held(table)
    stopped = 0
    for steps in range(0, STEPS_MAX, stride()):
        storage = stored(files)
        faulty = FaultyStorage(storage, steps, failures=1)
        table = opened(faulty)
        try:
            OPERATIONS["upsert"](table)
        except InjectedFault:
            stopped += 1
            assert held(table) == before, steps
        assert listed(opened(storage)) == data_files(storage), steps
        if faulty.changes < steps:
            assert stopped * stride() > 20
            return
    raise AssertionError(f"still failing after {STEPS_MAX} changes")


@pytest.mark.parametrize("version", [6, 8, 9, 10])
def test_a_table_gets_a_metadata_table_with_its_first_write(version: int) -> None:
    table = create(table_type=MOR, version=version)
    table.upsert(FIRST)
    assert table.config.metadata_partitions == ("files",)
    assert listed(table) == data_files(context_of(table).storage)


def test_a_table_gets_none_where_the_open_table_or_the_write_does_without() -> None:
    table = create(table_type=MOR)
    table.upsert(FIRST, options=WITHOUT)
    table.services.compact(options=WITHOUT)
    storage = context_of(table).storage
    opened(storage, by_metadata=False).upsert(NEWER)
    assert not storage.list_folders(".hoodie/metadata")
    assert table.config.metadata_partitions == ()
    opened(storage, by_metadata=False).delete(NEWER, options={"hoodie.metadata.enable": "true"})
    assert listed(table) == data_files(storage)


def test_a_table_of_version_6_gets_one_once_nothing_is_pending() -> None:
    table = create(table_type=MOR, version=6)
    for rows in (FIRST, NEWER):
        table.upsert(rows, options=QUIET | WITHOUT)
    assert table.services.schedule_compaction(options=WITHOUT) is not None
    table.upsert(NEWER, options=QUIET)  # into log files that are named by the compaction
    assert not table.config.metadata_partitions
    assert table.services.compact()
    table.upsert(NEWER, options=QUIET)
    assert table.config.metadata_partitions == ("files",)
    assert listed(table) == data_files(context_of(table).storage)


def test_a_compaction_of_version_6_waits_for_what_is_pending() -> None:
    table = made(MOR, version=6)
    assert table.services.schedule_compaction() is not None
    for number in range(12):
        table.upsert(rides(("c", "rome", number + 20, 3.0)), options=QUIET)
    assert not own_compactions(table)
    assert listed(table) == data_files(context_of(table).storage)
    assert table.services.compact()
    table.upsert(rides(("c", "rome", 40, 3.0)), options=QUIET)
    assert own_compactions(table)
    assert listed(table) == data_files(context_of(table).storage)
    assert held(table) == held(opened(context_of(table).storage, by_metadata=False))


def test_a_metadata_table_that_lacks_a_write_of_another_engine_is_built_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    table = made(COW)
    storage = context_of(table).storage
    before = {path: data for path, data in files_of(storage).items() if path.startswith(".hoodie/metadata/")}
    table.upsert(rides(("e", "bern", 5, 5.0)), options=QUIET)
    storage.delete_tree(".hoodie/metadata")
    for path, data in before.items():
        storage.put(path, data)
    table.upsert(rides(("f", "bern", 6, 6.0)), options=QUIET)
    assert "it lacks the commit" in caplog.text
    assert table.config.metadata_partitions == ()
    table.upsert(rides(("g", "bern", 7, 7.0)), options=QUIET)
    assert listed(table) == data_files(storage)
    assert [row[0] for row in held(table) if row[1] == "bern"] == ["e", "f", "g"]


def test_a_metadata_table_that_cannot_be_read_is_switched_off(caplog: pytest.LogCaptureFixture) -> None:
    table = made(COW)
    storage = context_of(table).storage
    storage.delete([".hoodie/metadata/.hoodie/hoodie.properties"])
    plain = opened(storage, START_MS, by_metadata=False)
    with caplog.at_level(logging.WARNING):
        plain.upsert(NEWER)
    assert "Switched off the metadata table" in caplog.text
    assert not plain.config.metadata_partitions
    assert not storage.list_folders(".hoodie/metadata")
    assert held(opened(storage)) == held(plain)


SHORT = {"hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4", "hoodie.clean.commits.retained": "1"}


@pytest.mark.parametrize("table_type", [COW, MOR])
def test_both_timelines_stay_short(table_type: str) -> None:
    table = opened(context_of(create(table_type=table_type)).storage)
    lengths = []
    for number in range(45):
        table.upsert(rides(("a", "rome", number, 1.0), (f"k{number}", "oslo", number, 1.0)), options=SHORT)
        lengths.append(len(context_of(table).storage.list_files(".hoodie/metadata/.hoodie/timeline")))
    assert max(lengths) <= 110
    assert max(lengths[30:]) <= max(lengths[:30])
    assert len(table.timeline.instants) < 40
    assert listed(table) == data_files(context_of(table).storage)
    assert not table.services.validate().findings
    assert len(context_of(table).storage.list_files(".hoodie/metadata/files")) < 40
    assert len(held(table)) == 46


def test_an_index_that_was_built_again_is_whole_when_its_build_is_archived() -> None:
    table = create(table_type=MOR)
    options = {
        "hoodie.metadata.index.column.stats.enable": "true",
        "hoodie.clean.commits.retained": "2",
        "hoodie.compact.inline.max.delta.commits": "50",
        "hoodie.keep.min.commits": "6",
        "hoodie.keep.max.commits": "8",
        **NEW_FILE_GROUPS,
    }
    rows = [rides(*((f"{key}", "rome", number, 1.0) for key in range(number + 2))) for number in range(12)]
    for number, each in enumerate(rows):
        if number == 7:
            table.indexes.drop("partition_stats")
        table.upsert(each, options=options)
        if number == 2:
            table.services.cluster(options=options)
        if number == 4:
            table.services.clean(retain_commits=1)
            table.services.schedule_compaction(options=options)
        assert table.services.validate().is_sound, number
