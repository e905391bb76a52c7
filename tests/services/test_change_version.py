"""Tables change their version and read as before, also when the process dies at any step of it."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import drawstring
from drawstring.base.errors import ConflictError, InvalidError, UnsupportedError
from drawstring.config.options.write_options import WriteOptions
from drawstring.model.instant import Action
from drawstring.table import Table
from drawstring.testing import context_of
from drawstring.timeline.archive.reader import open_archive
from drawstring.timeline.archive.writer import archive_instants
from drawstring.timeline.properties import save_properties
from drawstring.timeline.timeline import instant_time
from drawstring.txn.locks.table_lock import table_lock
from tests.support.faults import HOUR_MS, START_MS, opened
from tests.support.faulty_storage import FaultyStorage
from tests.support.rows import SCHEMA, held, rides
from tests.support.storages import files_of, paths
from tests.support.tables import AVRO_LOGS, BUCKETS, COW, MOR, WITHOUT_SERVICES, create
from tests.support.version_changes import (
    SHORT_HISTORY,
    change_version,
    files_of_other_layout,
    table_with_history,
)

PAIRS = [(6, 8), (6, 9), (8, 9), (8, 6), (9, 6), (9, 8), (9, 10), (10, 9), (6, 10), (10, 8)]

pairs = pytest.mark.parametrize(("old", "new"), PAIRS)
kinds = pytest.mark.parametrize("table_type", [COW, MOR])


def looks(table: Table, instants: list[Any]) -> dict[str, Any]:
    """Ask all that can be asked about some writes."""
    now = {write.requested: write for write in table.timeline.writes()}
    times = [now[each.requested].completed or each.requested for each in instants]
    spans = [(times[0], times[-1]), (times[-2], times[-1]), ("earliest", times[1])]
    found: dict[str, Any] = {"now": held(table)}
    for each in instants[-3:]:
        found[f"as of {each.requested}"] = held(table, as_of=each.requested)
    for number, (start, end) in enumerate(spans):
        rows = table.incremental(start, end, columns=["id", "ts"]).to_arrow().to_pylist()
        found[f"range {number}"] = sorted(map(repr, rows))
    changes = table.changes(times[-3], times[-1]).to_arrow().to_pylist()
    found["changes"] = sorted(
        (row["op"], row["ts_ms"], *map(image, (row["before"], row["after"]))) for row in changes
    )
    return found


def image(text: str | None) -> str:
    """Return a record of a change without where it was stored."""
    return repr({name: value for name, value in json.loads(text or "{}").items() if name in SCHEMA.names})


@kinds
@pairs
def test_a_table_reads_in_its_new_version_as_before(table_type: str, old: int, new: int) -> None:
    table = table_with_history(table_type, old)
    writes = list(table.timeline.writes())
    before = looks(table, writes)
    archived = {
        each.requested for each in open_archive(context_of(table).storage, table.config).completed("")
    }
    assert archived
    others = [each for each in table.timeline.instants if not each.is_write]
    result = (table.versions.upgrade if new > old else table.versions.downgrade)(new)
    assert (result.old, result.new, table.config.version) == (old, new, new)
    assert (result.compacted is not None) == (table_type == MOR and (old, new) != (9, 10))
    assert looks(table, writes) == before
    after = open_archive(context_of(table).storage, table.config)
    assert {each.requested for each in after.completed("")} == archived
    first = next(each for each in after.completed("") if each.is_write)
    assert after.commit_metadata(first).stats
    kept = {(each.requested, each.action) for each in table.timeline.instants}
    assert {(each.requested, each.action) for each in others} <= kept
    assert [each for each in table.services.validate().findings if each.check != "pending"] == []
    if (old == 6) != (new == 6):
        assert files_of_other_layout(context_of(table).storage, 1 if old == 6 else 2) == []
    goes_on(table)


def goes_on(table: Table) -> None:
    """Go on in the new version: write, compact, clean, archive, and back to the savepoint."""
    saved = next(each for each in table.timeline.instants if each.action is Action.SAVEPOINT).requested
    then = held(table, as_of=saved)
    rows = {row[0]: row for row in held(table)}
    for number in range(20, 25):
        table.upsert(rides(("c", "rome", number, 2.0), ("n", "bern", number, 2.0)), options=SHORT_HISTORY)
    if table.config.is_merge_on_read:
        table.services.compact(options=SHORT_HISTORY)
    rows |= {"c": ("c", "rome", 24, 2.0), "n": ("n", "bern", 24, 2.0)}
    assert held(table) == sorted(rows.values())
    assert table.savepoints.restore(saved)
    assert held(table) == then
    table.upsert(rides(("z", "rome", 30, 3.0)))
    assert ("z", "rome", 30, 3.0) in held(table)


@kinds
def test_there_and_back_again_every_version_reads_the_same(table_type: str) -> None:
    table = table_with_history(table_type, 6)
    writes = list(table.timeline.writes())
    before = looks(table, writes)
    for version in (8, 9, 6, 9, 8, 6):
        (table.versions.upgrade if version > table.config.version else table.versions.downgrade)(version)
        assert looks(table, writes) == before, version


def test_downgrading_keeps_when_writes_completed() -> None:
    table = table_with_history(COW, 9)
    times = {each.requested: each.completed for each in table.timeline.writes()}
    table.versions.downgrade(6)
    assert all(each.completed is None for each in table.timeline.writes())
    table.versions.upgrade(9)
    assert {each.requested: each.completed for each in table.timeline.writes()} == times


def test_a_table_that_stayed_where_it_was_has_the_times_of_its_files(tmp_path: Path) -> None:
    table = drawstring.create(tmp_path / "rides", SCHEMA, record_key="id", version=6)
    table.insert(rides(("a", "rome", 1, 1.0)))
    table.insert(rides(("b", "rome", 1, 1.0)))
    last = table.timeline.writes()[-1].requested
    file = tmp_path / f"rides/.hoodie/{last}.commit"
    changed = instant_time(file.stat().st_mtime_ns // 1_000_000, "UTC")
    table.versions.upgrade(8)
    assert table.timeline.writes()[-1].completed == changed
    table.versions.downgrade(6)
    assert instant_time(file.stat().st_mtime_ns // 1_000_000, "UTC") == changed


def test_a_copied_table_has_no_log_file_on_a_later_base_file() -> None:
    table = create(table_type=MOR, version=6, properties=BUCKETS)
    table.upsert(rides(("a", "rome", 1, 1.0), ("b", "rome", 1, 1.0)), options=WITHOUT_SERVICES)
    table.delete(rides(("a", "rome", 2, 2.0)), options=WITHOUT_SERVICES)
    table.services.compact(options=WITHOUT_SERVICES)
    table.upsert(rides(("a", "rome", 1, 9.0)), options=WITHOUT_SERVICES)
    before = looks(table, list(table.timeline.writes()))
    storage = context_of(table).storage
    later = 1_850_000_000_000
    for status in storage.list_tree(".hoodie"):
        storage.set_modified(status.path, later)
    writes = list(table.timeline.writes())
    table.versions.upgrade(8)
    assert looks(table, writes) == before


def test_changes_of_writes_that_share_a_log_file_are_told_apart_after_the_upgrade() -> None:
    table = create(version=6, table_type=MOR, properties=BUCKETS)
    for number in range(1, 5):
        options = {**WITHOUT_SERVICES, **AVRO_LOGS, "hoodie.metadata.enable": "false"}
        table.upsert(rides(("a", "rome", number, float(number))), options=options)
    append_second_log_to_first(table)
    writes = list(table.timeline.writes())
    before = looks(table, writes)
    assert len(before["changes"]) == 2
    table.versions.upgrade(9)
    assert looks(table, writes) == before
    assert [each for each in table.services.validate().findings if each.check != "pending"] == []


def append_second_log_to_first(table: Table) -> None:
    """Do as Hudi does where files can grow: the block of the third write goes into the first log file."""
    storage = context_of(table).storage
    first, second = (s for s in storage.list_files("rome") if ".log.1_" in s.name or ".log.2_" in s.name)
    storage.put(first.path, storage.read(first.path) + storage.read(second.path))
    storage.delete([second.path])
    commit = f".hoodie/{table.timeline.writes()[2].requested}.deltacommit"
    told = json.loads(storage.read(commit))
    for stat in told["partitionToWriteStats"]["rome"]:
        stat.update(path=first.path, fileSizeInBytes=0, totalWriteBytes=0)
    modified_ms = next(s.modified_ms for s in storage.list_files(".hoodie") if s.path == commit)
    storage.put(commit, json.dumps(told).encode())
    storage.set_modified(commit, modified_ms)


def test_asking_for_the_version_it_has_changes_nothing() -> None:
    table = table_with_history(COW, 9)
    storage = context_of(table).storage
    before = files_of(storage)
    result = table.versions.upgrade(9)
    assert (result.old, result.new, result.instants) == (9, 9, 0)
    after = files_of(storage)
    assert {path for path in after if ".locks" not in path} == {
        path for path in before if ".locks" not in path
    }
    assert table_with_history(COW, 8).versions.downgrade(8).new == 8


def test_wrong_versions_and_directions_are_refused_before_anything_is_written() -> None:
    table = table_with_history(MOR, 8)
    storage = context_of(table).storage
    before = paths(storage)
    for verb, version, error, text in [
        (table.versions.upgrade, 7, UnsupportedError, "Choose one of 6, 8, 9, 10"),
        (table.versions.upgrade, 11, UnsupportedError, "Choose one of 6, 8, 9, 10"),
        (table.versions.upgrade, 6, InvalidError, "Use downgrade"),
        (table.versions.downgrade, 9, InvalidError, "Use upgrade"),
        (table_with_history(COW, 10).versions.downgrade, 10, InvalidError, "Use upgrade"),
        (table_with_history(COW, 6).versions.upgrade, 6, InvalidError, "Use downgrade"),
    ]:
        with pytest.raises(error, match=text):
            verb(version)
    assert paths(storage) == before


def test_what_a_lower_version_cannot_hold_is_named_and_nothing_changes() -> None:
    table = create(version=9, table_type=MOR)
    table.upsert(rides(("a", "rome", 1, 1.0)))
    stored = {**table.config.properties, "hoodie.table.partial.update.mode": "IGNORE_DEFAULTS"}
    save_properties(context_of(table).storage, stored, context_of(table).clock)
    table.upsert(rides(("a", "rome", 2, None)))
    with pytest.raises(UnsupportedError, match=r"hoodie\.table\.partial\.update\.mode=IGNORE_DEFAULTS"):
        table.versions.downgrade(6)
    assert table.config.version == 9
    assert len(table.timeline.writes()) == 2


def test_a_pending_clustering_goes_along_and_can_be_run_then() -> None:
    for old, new in ((6, 9), (9, 6)):
        table = create(version=old)
        table.insert(rides(("a", "rome", 1, 1.0)), options={"hoodie.parquet.small.file.limit": "0"})
        table.insert(rides(("b", "rome", 1, 1.0)), options={"hoodie.parquet.small.file.limit": "0"})
        planned = table.services.schedule_clustering()
        assert planned
        change_version(table, new)
        assert [each.requested for each in table.timeline.pending_of(Action.CLUSTERING)] == [planned]
        done = table.services.cluster(instant=planned)
        assert done and done.files == 1
        assert held(table) == [("a", "rome", 1, 1.0), ("b", "rome", 1, 1.0)]


def test_log_files_that_wait_for_a_clustering_have_to_be_clustered_first() -> None:
    table = create(version=8, table_type=MOR)
    table.upsert(rides(("a", "rome", 1, 1.0), ("b", "rome", 1, 1.0)), options=WITHOUT_SERVICES)
    table.upsert(rides(("a", "rome", 2, 2.0)), options=WITHOUT_SERVICES)
    planned = table.services.schedule_clustering()
    assert planned
    with pytest.raises(InvalidError, match="drawstring services cluster") as caught:
        table.versions.downgrade(6)
    assert caught.value.instant == planned
    table.services.cluster()
    table.versions.downgrade(6)
    assert held(table) == [("a", "rome", 2, 2.0), ("b", "rome", 1, 1.0)]


def test_pending_compactions_are_run_and_dead_writes_taken_back_first() -> None:
    table = create(version=6, table_type=MOR, properties=BUCKETS)
    table.upsert(rides(("a", "rome", 1, 1.0)), options=WITHOUT_SERVICES)
    table.upsert(rides(("a", "rome", 2, 2.0)), options=WITHOUT_SERVICES)
    planned = table.services.schedule_compaction()
    table.upsert(rides(("a", "rome", 3, 3.0)), options=WITHOUT_SERVICES)
    storage = context_of(table).storage
    with suppress(drawstring.UnavailableError):
        opened(FaultyStorage(storage, 6), START_MS + HOUR_MS).upsert(
            rides(("x", "rome", 3, 3.0)), options=WITHOUT_SERVICES
        )
    late = opened(storage, START_MS + 2 * HOUR_MS)
    assert late.timeline.pending()
    late.versions.upgrade(9)
    assert not late.timeline.pending()
    assert planned in {each.requested for each in late.timeline.writes()}
    assert held(late) == [("a", "rome", 3, 3.0)]


def test_cleans_that_hudi_left_behind_when_it_archived_later_writes_are_archived_with_them() -> None:
    table = create(version=6, properties=BUCKETS)
    how = {**WITHOUT_SERVICES, "hoodie.clean.automatic": "true", "hoodie.clean.commits.retained": "1"}
    for number in range(6):
        table.upsert(rides(("a", "rome", number, 1.0)), options=how)
    cleans = [each.requested for each in table.timeline.completed_of(Action.CLEAN)]
    archived = [write for write in table.timeline.writes() if write.requested < cleans[-2]]
    assert cleans[0] < archived[-1].requested
    archive_instants(
        context_of(table).storage, table.config, WriteOptions.parse({}).archiving, archived, lambda: None
    )

    table.versions.upgrade(9)
    assert [each.requested for each in table.timeline.completed_of(Action.CLEAN)] == cleans[-2:]
    assert min(table.timeline.instants).requested > archived[-1].requested
    kept = {each.requested for each in open_archive(context_of(table).storage, table.config).completed("")}
    assert kept == {*cleans[:-2], *(each.requested for each in archived)}
    assert held(table) == [("a", "rome", 5, 1.0)]


def test_another_writer_is_waited_for_no_longer_than_asked() -> None:
    table = table_with_history(COW, 6)
    with (
        table_lock(context_of(table).storage, context_of(table).clock, context_of(table).ids, 0),
        pytest.raises(ConflictError, match="holds the table"),
    ):
        table.versions.upgrade(9, progress=None, options={"hoodie.write.lock.wait_time_ms": "10"})
    assert table.config.version == 6


def test_the_plan_tells_what_would_change() -> None:
    table = create(version=6, schema=SCHEMA)
    plan = table.versions.plan(9)
    assert (plan.old, plan.new, plan.moves_timeline) == (6, 9, True)
    assert plan.properties["hoodie.table.version"] == ("6", "9")
    assert plan.properties["hoodie.record.merge.mode"] == (None, "EVENT_TIME_ORDERING")
    assert table.config.version == 6
    assert not table.versions.plan(6).properties


def test_keys_without_the_name_of_their_column_are_found_in_the_files() -> None:
    told = {
        "hoodie.table.keygenerator.type": "COMPLEX",
        "hoodie.write.complex.keygen.new.encoding": "true",
    }
    table = create(version=8, properties=told)
    table.upsert(rides(("a", "rome", 1, 1.0)))
    silent = {key: value for key, value in table.config.properties.items() if "new.encoding" not in key}
    with pytest.raises(UnsupportedError, match=r"new\.encoding"):
        table.versions.upgrade(9)
    save_properties(context_of(table).storage, silent, context_of(table).clock)
    with pytest.raises(UnsupportedError, match="lack the name of their column id"):
        table.versions.upgrade(9)
    assert table.config.version == 8
    named = create(version=8, properties={"hoodie.table.keygenerator.type": "COMPLEX"})
    named.upsert(rides(("a", "rome", 1, 1.0)))
    named.versions.upgrade(9)
    named.upsert(rides(("a", "rome", 2, 2.0)))
    assert held(named) == [("a", "rome", 2, 2.0)]


@pairs
def test_an_empty_table_is_ready_for_other_engines(old: int, new: int, tmp_path: Path) -> None:
    table = drawstring.create(tmp_path / "rides", SCHEMA, record_key="id", version=old)
    change_version(table, new)
    for folder in (table.config.timeline_folder, table.config.history_folder):
        assert (tmp_path / "rides" / folder).is_dir()
    table.upsert(rides(("a", "rome", 1, 1.0)))
    assert held(table) == [("a", "rome", 1, 1.0)]
