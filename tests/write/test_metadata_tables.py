"""Metadata tables of real Hudi: left alone until a write is known to be right, then kept."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import drawstring
from drawstring.base.errors import InvalidError
from drawstring.metadata.maintenance import maintainers_of
from drawstring.model.instant import Action
from drawstring.model.result import CommitResult, Remedy
from drawstring.schema.fields import META_COLUMNS
from drawstring.storage.local import LocalStorage
from drawstring.table import Table
from drawstring.testing import context_of
from tests.support.faults import stride
from tests.support.faulty_storage import FaultyStorage, InjectedFault
from tests.support.golden import unpack
from tests.support.metadata_tables import listed
from tests.support.storages import data_files

NAMES = ("v6_mdt_cow", "v6_mdt_compacted", "v8_mdt_cow", "v9_mdt_cow", "v9_mdt_compacted")
NEVER = 10_000
EMPTY = {"hoodie.allow.empty.commit": "false"}
KEEP = {"hoodie.clean.automatic": "false", "hoodie.keep.max.commits": "90", "hoodie.keep.min.commits": "80"}


def kept(root: Path) -> dict[str, bytes]:
    """Return what must not change: the metadata table, and the properties that name it."""
    files = [*(root / ".hoodie/metadata").rglob("*"), root / ".hoodie/hoodie.properties"]
    return {str(path.relative_to(root)): path.read_bytes() for path in files if path.is_file()}


def rows(table: Table) -> pa.Table:
    found = table.scan().to_arrow()
    return found.drop_columns([name for name in META_COLUMNS if name in found.column_names])


def nothing(table: Table) -> CommitResult:
    """Carry out a write that finds nothing to do; it takes dead writes back."""
    return table.delete(rows(table).slice(0, 0), options=EMPTY)


def through(table: Table, fail_after: int, failures: int | None = None) -> tuple[Table, FaultyStorage]:
    faulty = FaultyStorage(context_of(table).storage, fail_after, failures)
    return Table(replace(context_of(table), storage=faulty)), faulty


def writes(table: Table) -> list[str]:
    return [each.requested for each in table.timeline.writes()]


def die_with_files(table: Table) -> str:
    """Leave a dead write that had begun files; return its requested time."""
    for changes in range(2, NEVER):
        dying, _ = through(table, changes)
        with suppress(InjectedFault):
            dying.upsert(rows(table), options=KEEP)
        dead = [each.requested for each in table.timeline.pending_writes()]
        if dead and context_of(table).storage.list_tree(f".hoodie/.temp/{dead[-1]}"):
            return dead[-1]
    raise AssertionError("no write died")


def null_keys(table: Table) -> pa.Table:
    found, key = rows(table), table.config.record_key_fields[0]
    at = found.column_names.index(key)
    nulls = pa.nulls(found.num_rows, found.schema.field(key).type)
    return found.set_column(at, pa.field(key, nulls.type), nulls)


@pytest.mark.parametrize("name", NAMES)
def test_a_write_that_is_refused_or_empty_leaves_a_metadata_table_alone(name: str, tmp_path: Path) -> None:
    root = unpack(name, tmp_path)
    table = drawstring.open(root)
    before = kept(root)
    assert len(before) > 5
    with pytest.raises(InvalidError):
        table.upsert(rows(table).drop_columns([table.config.record_key_fields[0]]))
    with pytest.raises(InvalidError):
        table.upsert(null_keys(table))
    assert table.upsert(rows(table).slice(0, 0), options=EMPTY).instant == ""
    assert nothing(table).instant == ""
    assert kept(root) == before
    assert table.config.metadata_partitions


def test_a_rollback_takes_back_what_the_metadata_table_of_version_6_was_told_of(tmp_path: Path) -> None:
    table = drawstring.open(unpack("v6_mdt_cow", tmp_path))
    dead, told = die_with_files(table), ".hoodie/metadata/.hoodie"
    storage = context_of(table).storage
    for name in (f"{dead}.deltacommit.requested", f"{dead}.deltacommit.inflight", f"{dead}.deltacommit"):
        storage.put(f"{told}/{name}", b"{}")
    log = next(
        iter(
            sorted(
                each.path for each in storage.list_files(".hoodie/metadata/files") if ".log.4" in each.name
            )
        )
    )
    last = max(each.requested for each in table.timeline.writes())
    copied = storage.read(log).replace(last.encode(), dead.encode())
    storage.put(log.replace(".log.4_0-0-0", ".log.5_0-0-9"), copied)
    assert nothing(table).instant == ""
    assert not table.timeline.pending_writes()
    assert table.config.metadata_partitions
    names = [status.name for status in storage.list_tree(".hoodie/metadata")]
    assert [name for name in names if dead in name or ".log.5" in name] == []
    assert any(name.endswith("006.rollback") for name in names)
    assert listed(table) == data_files(storage)


def test_a_rollback_of_what_the_metadata_table_was_told_of_takes_that_back(tmp_path: Path) -> None:
    table = drawstring.open(unpack("v9_mdt_compacted", tmp_path))
    dead, told = die_with_files(table), ".hoodie/metadata/.hoodie/timeline"
    storage = context_of(table).storage
    for name in (
        f"{dead}.deltacommit.requested",
        f"{dead}.deltacommit.inflight",
        f"{dead}_{dead}.deltacommit",
    ):
        storage.put(f"{told}/{name}", b"")
    storage.put(f".hoodie/metadata/files/.files-0000-0_{dead}.log.1_0-0-9", b"")
    assert nothing(table).instant == ""
    assert not table.timeline.pending_writes()
    assert table.config.metadata_partitions
    names = [status.name for status in storage.list_tree(".hoodie/metadata")]
    assert [name for name in names if dead in name] == []
    assert any(name.endswith(".rollback") for name in names)
    assert listed(table) == data_files(storage)


ACTIONS: dict[str, Callable[[Table], object]] = {
    "upsert": lambda table: table.upsert(rows(table)),
    "delete": lambda table: table.delete(rows(table).slice(0, 1)),
    "insert_overwrite": lambda table: table.insert_overwrite(rows(table).slice(0, 1)),
    "cluster": lambda table: table.services.cluster(),
    "restore": lambda table: table.savepoints.restore(writes(table)[-2]),
    "clean": lambda table: table.services.clean(options={"hoodie.clean.commits.retained": "1"}),
}


def known(table: Table) -> list[str]:
    """Return the partitions of a metadata table that this release knows how to keep."""
    return sorted(maintainers_of(table.config.metadata_partitions))


@pytest.mark.parametrize(
    "name",
    [
        "v6_mdt_cow",
        "v6_idx_record_level",
        "v8_mdt_cow",
        "v9_mdt_cow",
        "v9_idx_record_level",
        "v9_idx_secondary",
    ],
)
@pytest.mark.parametrize("action", ACTIONS)
def test_an_action_that_took_effect_keeps_the_partitions_that_this_release_knows(
    action: str, name: str, tmp_path: Path
) -> None:
    table = drawstring.open(unpack(name, tmp_path))
    kept = known(table)
    assert len(kept) > 1
    assert ACTIONS[action](table)
    assert sorted(table.config.metadata_partitions) == kept
    assert listed(table) == data_files(context_of(table).storage)
    assert [each for each in table.services.validate().findings if each.check == "metadata"] == []


def test_a_change_of_version_leaves_no_metadata_table(tmp_path: Path) -> None:
    root = unpack("v9_mdt_cow", tmp_path)
    table = drawstring.open(root)
    assert table.versions.downgrade(8)
    assert not table.config.metadata_partitions
    assert not (root / ".hoodie/metadata").exists()


@pytest.mark.parametrize("version", [6, 9])
def test_a_compaction_keeps_the_list_of_files(version: int, tmp_path: Path) -> None:
    table = drawstring.open(unpack(f"v{version}_mdt_compacted", tmp_path))
    assert table.services.schedule_compaction() is not None
    assert len(table.config.metadata_partitions) > 1
    assert table.services.compact()
    assert listed(table) == data_files(context_of(table).storage)


def test_a_repair_builds_a_damaged_metadata_table_again(tmp_path: Path) -> None:
    root = unpack("v9_mdt_cow", tmp_path)
    table = drawstring.open(root)
    for file in (root / ".hoodie/metadata/files").glob("*.hfile"):
        file.write_bytes(b"damaged")
    assert {each.remedy for each in table.services.validate().findings} == {Remedy.METADATA}
    assert table.services.repair(apply=True)
    assert not table.services.validate().findings
    assert listed(table) == data_files(context_of(table).storage)


@pytest.mark.parametrize("place", ["", "/.hoodie", "/.hoodie/timeline", "/files"])
def test_a_file_in_the_place_of_a_folder_is_a_damage_like_others(
    place: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    root = unpack("v9_mdt_cow", tmp_path)
    table = drawstring.open(root)
    before = rows(table).num_rows
    shutil.rmtree(root / f".hoodie/metadata{place}")
    (root / f".hoodie/metadata{place}").write_text("no folder")
    assert rows(table).num_rows == rows(drawstring.open(root)).num_rows == before
    assert caplog.text.count("The storage is listed instead") == 1
    assert "Run `drawstring services repair`" in caplog.text
    table.upsert(rows(table).slice(0, 1))
    assert not table.config.metadata_partitions
    table.upsert(rows(table).slice(0, 1))
    assert table.config.metadata_partitions == ("files",)
    assert listed(table) == data_files(context_of(table).storage)


def test_a_savepoint_leaves_the_metadata_table_alone(tmp_path: Path) -> None:
    root = unpack("v9_mdt_cow", tmp_path)
    table = drawstring.open(root)
    before = kept(root)
    table.savepoints.create()
    assert table.timeline.completed_of(Action.SAVEPOINT)
    assert kept(root) == before


@pytest.mark.scaled
def test_a_restore_that_dies_has_switched_the_metadata_table_off_before_a_write_goes(tmp_path: Path) -> None:
    root = unpack("v9_mdt_cow", tmp_path / "golden")
    before, partitions = writes(drawstring.open(root)), known(drawstring.open(root))
    for changes in range(1, NEVER, stride()):
        copy = tmp_path / "copy"
        shutil.copytree(root, copy)
        table = Table(replace(context_of(drawstring.open(copy)), storage=LocalStorage(copy)))
        dying, faulty = through(table, changes)
        with suppress(InjectedFault):
            dying.savepoints.restore(before[-2])
        if writes(table) != before and table.config.metadata_partitions:
            assert not table.timeline.pending()  # it is built again once the restore is complete
            assert listed(table) == data_files(context_of(table).storage)
        is_done = faulty.changes < changes
        assert not is_done or sorted(table.config.metadata_partitions) == partitions
        shutil.rmtree(copy)
        if is_done:
            return
