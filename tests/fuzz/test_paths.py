"""Metadata and links that lead out of the table are refused, and the files there stay unread."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from drawstring.base.clock import SteppingClock
from drawstring.base.errors import CorruptTableError, InvalidError
from drawstring.formats.metadata.commit import decode_compaction_plan
from drawstring.query.incremental import RangeSpec, incremental_scan
from drawstring.query.planner import snapshot_scan
from drawstring.query.table_state import load_facts
from drawstring.storage import open_storage
from tests.support.golden import unpack

OUTSIDE = ("../../outside.parquet", "/etc/passwd", "a/../../b.parquet", "./x.parquet")


def read(root: Path) -> int:
    """Read the table in every way; return how many rows it has."""
    facts = load_facts(open_storage(root), SteppingClock())
    incremental_scan(facts, RangeSpec("earliest")).to_arrow()
    return snapshot_scan(facts).to_arrow().num_rows


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Unpack a small table of version 6, whose commits are JSON."""
    root = unpack("v6_mor_soft_delete", tmp_path)
    for path in root.rglob("*.crc"):
        path.unlink()
    return root


def newest_commit(table: Path) -> Path:
    return max(table.glob(".hoodie/*.deltacommit"))


def changed(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


@pytest.mark.parametrize("outside", OUTSIDE)
@pytest.mark.parametrize("field", ["path", "baseFile", "logFiles"])
def test_a_commit_that_names_a_file_outside_is_corrupt(table: Path, outside: str, field: str) -> None:
    commit = newest_commit(table)
    value = [outside] if field == "logFiles" else outside
    changed(
        commit,
        lambda content: (
            [
                stat.update({field: value})
                for stats in content["partitionToWriteStats"].values()
                for stat in stats
            ]
            and None
        ),
    )

    with pytest.raises(CorruptTableError, match="leads out of the table") as caught:
        read(table)
    assert caught.value.path == f".hoodie/{commit.name}"


@pytest.mark.parametrize("outside", ["../..", "/etc", "a/.."])
def test_a_commit_of_a_partition_outside_is_corrupt(table: Path, outside: str) -> None:
    changed(
        newest_commit(table),
        lambda content: content.update(
            {"partitionToWriteStats": {outside: next(iter(content["partitionToWriteStats"].values()))}}
        ),
    )

    with pytest.raises(CorruptTableError, match="leads out of the table"):
        read(table)


def test_a_plan_to_compact_a_partition_outside_is_corrupt(tmp_path: Path) -> None:
    root = unpack("v8_mor_compaction_pending", tmp_path)
    (plan,) = root.rglob("*.compaction.requested")
    data = plan.read_bytes()
    partition = decode_compaction_plan(data).operations[0].partition.encode()
    outside = (b"../" * len(partition))[: len(partition)]

    with pytest.raises(CorruptTableError, match="leads out of the table"):
        decode_compaction_plan(data.replace(partition, outside))


def linked_file(table: Path) -> Path:
    path = next(path for path in sorted(table.rglob("*.parquet")))
    shutil.move(path, table.parent / "outside.parquet")
    path.symlink_to(table.parent / "outside.parquet")
    return path


def linked_log(table: Path) -> Path:
    path = next(path for path in sorted(table.rglob("*.log.*")))
    shutil.move(path, table.parent / "outside.log")
    path.symlink_to(table.parent / "outside.log")
    return path


def linked_partition(table: Path) -> Path:
    path = next(path for path in sorted(table.rglob(".hoodie_partition_metadata"))).parent
    shutil.move(path, table.parent / "outside")
    path.symlink_to(table.parent / "outside")
    return path


def linked_commit(table: Path) -> Path:
    path = newest_commit(table)
    shutil.move(path, table.parent / "outside.commit")
    path.symlink_to(table.parent / "outside.commit")
    return path


def endless_folder(table: Path) -> Path:
    for name in ("one", "two"):
        (table / name).symlink_to(table)
    return table / "one"


@pytest.mark.parametrize("link", [linked_file, linked_log, linked_partition, linked_commit, endless_folder])
def test_a_link_inside_a_table_is_refused(table: Path, link: Callable[[Path], Path]) -> None:
    assert read(table) > 0
    path = link(table)

    with pytest.raises(CorruptTableError, match="link") as caught:
        read(table)
    assert caught.value.path == str(path.relative_to(table))


def test_linked_properties_are_refused(table: Path) -> None:
    path = table / ".hoodie/hoodie.properties"
    shutil.move(path, table.parent / "outside.properties")
    path.symlink_to(table.parent / "outside.properties")

    with pytest.raises(CorruptTableError, match="link"):
        read(table)


def test_a_linked_folder_is_not_written_or_deleted_through(table: Path) -> None:
    (table.parent / "outside").mkdir()
    (table.parent / "outside/kept").write_text("kept")
    (table / "link").symlink_to(table.parent / "outside")
    storage = open_storage(table)

    for action in (
        lambda: storage.put("link/new", b"x"),
        lambda: storage.delete(["link/kept"]),
        lambda: storage.delete_tree("link"),
        lambda: storage.read("link/kept"),
        lambda: storage.open("link/kept"),
    ):
        with pytest.raises(CorruptTableError, match="link"):
            action()
    assert [path.name for path in (table.parent / "outside").iterdir()] == ["kept"]


def test_the_root_of_a_table_may_be_a_link(table: Path) -> None:
    (table.parent / "here").symlink_to(table)

    assert read(table.parent / "here") == read(table)


def test_paths_with_dots_are_refused_by_the_storage(table: Path) -> None:
    storage = open_storage(table)

    for path in ("../x", "/etc/passwd", "a//b", "a/./b", "x\0"):
        with pytest.raises(InvalidError):
            storage.read(path)


def gone_link(path: Path) -> None:
    path.symlink_to("/nowhere/at/all")


def own_link(path: Path) -> None:
    path.symlink_to(path.name)


def folder(path: Path) -> None:
    path.mkdir()


def socket_of(path: Path) -> None:
    os.mknod(path, 0o600 | stat.S_IFSOCK)


IN_PLACE = (gone_link, own_link, os.mkfifo, folder, socket_of)


@pytest.mark.parametrize("put", IN_PLACE)
@pytest.mark.parametrize("name", ["v6_mor_soft_delete", "v9_cow_ops"])
def test_what_stands_in_the_place_of_a_commit_is_no_absent_commit(
    name: str, put: Callable[[Path], None], tmp_path: Path
) -> None:
    root = unpack(name, tmp_path)
    assert read(root) > 0
    commit = max([*root.glob(".hoodie/*commit"), *root.glob(".hoodie/timeline/*commit")])
    commit.unlink()
    put(commit)

    with pytest.raises(CorruptTableError) as caught:
        read(root)
    assert caught.value.path == str(commit.relative_to(root))


@pytest.mark.parametrize("put", IN_PLACE)
def test_what_stands_in_the_place_of_a_data_file_is_an_error_that_names_it(
    table: Path, put: Callable[[Path], None]
) -> None:
    path = next(path for path in sorted(table.rglob("*.log.*")))
    path.unlink()
    put(path)

    with pytest.raises(CorruptTableError) as caught:
        read(table)
    assert caught.value.path == str(path.relative_to(table))


def test_a_link_to_itself_beside_the_data_is_passed_over_as_a_foreign_file(table: Path) -> None:
    before = read(table)
    for place in (".", ".hoodie", next(table.rglob(".hoodie_partition_metadata")).parent):
        own_link(table / place / "loop")

    assert read(table) == before


def test_a_folder_that_was_replaced_by_a_link_is_refused_by_a_storage_that_read_from_it(table: Path) -> None:
    storage = open_storage(table)
    file = next(path for path in sorted(table.rglob("*.parquet")))
    path = str(file.relative_to(table))
    assert storage.read(path)
    shutil.move(file.parent, table.parent / "outside")
    file.parent.symlink_to(table.parent / "outside")

    with pytest.raises(CorruptTableError, match="link"):
        storage.read(path)
