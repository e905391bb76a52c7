"""Damage on disk: the file is named, what is whole stays readable, and what the error advises helps."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from drawstring.base.errors import CorruptTableError
from drawstring.model.result import CommitResult
from drawstring.table import Table
from tests.support.combinations import pairwise
from tests.support.rows import held, rides
from tests.support.tables import COW, MOR, OLD, listing, table_at


def data_file(table: Table, suffix: str) -> Path:
    (path,) = [path for path in Path(table.uri).glob("rome/*") if suffix in path.name]
    return path


DAMAGES: dict[str, Callable[[Path], object]] = {
    "missing": Path.unlink,
    "empty": lambda path: path.write_bytes(b""),
    "cut off": lambda path: path.write_bytes(path.read_bytes()[:-200]),
    "overwritten": lambda path: path.write_bytes(b"x" * path.stat().st_size),
}


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("suffix", [".log.", ".parquet"])
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=list(DAMAGES))
def test_a_damaged_data_file_is_named_and_nothing_is_lost(
    tmp_path: Path, version: int, suffix: str, damage: Callable[[Path], object]
) -> None:
    table = table_at(tmp_path / "rides", MOR, version)
    path = data_file(table, suffix)
    shutil.copy(path, tmp_path / "kept")
    damage(path)
    calls = {
        "scan": lambda: table.scan().to_arrow(),
        "upsert": lambda: table.upsert(rides(*OLD)),
        "compact": lambda: table.services.compact(),
    }
    for name, call in calls.items():
        try:
            result = call()
        except CorruptTableError as error:
            assert error.path == f"rome/{path.name}"
            assert error.table == table.uri
            assert error.instant
            assert error.instant in {each.requested for each in table.timeline.writes()}
        else:
            pytest.fail(f"{name} went on: {result}")
    shutil.copy(tmp_path / "kept", path)
    assert held(table) == OLD
    table.upsert(rides(("c", "rome", 1, 1.0)))
    assert held(table) == [*OLD, ("c", "rome", 1, 1.0)]


@pytest.mark.parametrize("damage", [name for name in DAMAGES if name != "missing"])
@pytest.mark.parametrize(("table_type", "suffix"), [(COW, ".parquet"), (MOR, ".parquet"), (MOR, ".log.")])
def test_what_the_error_advises_repairs_a_damaged_file(
    tmp_path: Path, table_type: str, suffix: str, damage: str
) -> None:
    table = table_at(tmp_path / "rides", table_type)
    newest = table.timeline.writes()[-1].requested
    (path,) = [
        path
        for path in (tmp_path / "rides/rome").iterdir()
        if suffix in path.name and (table_type == MOR or newest in path.name)
    ]
    DAMAGES[damage](path)
    with pytest.raises(CorruptTableError, match=r"from a backup, or .* with insert_overwrite"):
        held(table)
    table.insert_overwrite(rides(*OLD))
    assert held(table) == OLD
    table.upsert(rides(("c", "rome", 1, 1.0)))
    assert held(table) == [*OLD, ("c", "rome", 1, 1.0)]


@pytest.mark.parametrize("version", [6, 9])
def test_a_missing_base_file_of_a_copy_on_write_table_is_named(tmp_path: Path, version: int) -> None:
    table = table_at(tmp_path / "rides", COW, version)
    first, newest = table.timeline.writes()
    (path,) = (tmp_path / "rides/rome").glob(f"*_{newest.requested}.parquet")
    planned = table.scan()
    assert planned.tasks()
    shutil.move(path, tmp_path / "kept")
    for call in (
        lambda: planned.to_arrow(),
        lambda: table.scan().to_arrow(),
        lambda: table.upsert(rides(*OLD)),
    ):
        with pytest.raises(CorruptTableError, match="missing") as caught:
            call()
        assert (caught.value.table, caught.value.path) == (table.uri, f"rome/{path.name}")
    assert held(table, as_of=first.requested) == [("a", "rome", 0, 0.0), OLD[1]]
    shutil.move(tmp_path / "kept", path)
    assert held(table) == OLD


NEW, OSLO = ("n", "rome", 5, 5.0), ("c", "oslo", 1, 1.0)
REPAIRS: dict[str, tuple[Callable[[Table], CommitResult], list[tuple[Any, ...]]]] = {
    "insert_overwrite": (lambda table: table.insert_overwrite(rides(NEW)), [OSLO, NEW]),
    "insert_overwrite_table": (lambda table: table.insert_overwrite_table(rides(NEW)), [NEW]),
    "insert_overwrite_table elsewhere": (
        lambda table: table.insert_overwrite_table(rides(("o", "oslo", 1, 1.0))), [("o", "oslo", 1, 1.0)],
    ),
    "delete_partition": (lambda table: table.delete_partition("rome"), [OSLO]),
}  # fmt: skip


@pytest.mark.parametrize("lost", ["newest base file", "all files", "folder"])
@pytest.mark.parametrize(
    ("table_type", "version", "repair"),
    pairwise(list(itertools.product((COW, MOR), (6, 9), REPAIRS))),
)
def test_a_partition_with_missing_files_can_be_replaced(
    tmp_path: Path, table_type: str, version: int, repair: str, lost: str
) -> None:
    table = table_at(tmp_path / "rides", table_type, version)
    table.upsert(rides(OSLO))
    rome = tmp_path / "rides/rome"
    bases = sorted(rome.glob("*.parquet"), key=lambda path: path.name.rpartition("_")[2])
    if lost == "folder":
        shutil.rmtree(rome)
    for path in bases[-1:] if lost == "newest base file" else rome.glob("*.*"):
        path.unlink()
    with pytest.raises(CorruptTableError, match=r"from a backup, or .* with insert_overwrite"):
        held(table)
    missing = [each.what for each in table.services.validate().findings if each.check == "missing"]
    assert missing
    assert all("with insert_overwrite" in what for what in missing)
    call, left = REPAIRS[repair]
    result = call(table)
    assert held(table) == left
    assert {each.check for each in table.services.validate().findings} <= {"metadata"}
    table.services.repair(apply=True)
    assert table.services.validate().findings == ()
    if repair == "delete_partition":
        assert (result.partitions_dropped, result.groups_dropped) == (1, 1)
    table.upsert(rides(("z", "rome", 1, 1.0)))
    assert held(table) == [*left, ("z", "rome", 1, 1.0)]


@pytest.mark.parametrize("table_type", [COW, MOR])
@pytest.mark.parametrize("version", [6, 9])
def test_a_partition_without_its_metadata_file_is_named(
    tmp_path: Path, version: int, table_type: str
) -> None:
    table = listing(table_at(tmp_path / "rides", table_type, version))
    table.upsert(rides(("c", "oslo", 1, 1.0)))
    lost = tmp_path / "rides/oslo/.hoodie_partition_metadata"
    shutil.move(lost, tmp_path / "kept")
    for call in (
        lambda: table.scan().to_arrow(),
        lambda: table.insert_overwrite_table(rides(*OLD)),
        lambda: table.inspect.files(),
    ):
        with pytest.raises(CorruptTableError, match="metadata file of a partition is missing") as caught:
            call()
        assert caught.value.path == "oslo/.hoodie_partition_metadata"
    shutil.copy(tmp_path / "rides/rome/.hoodie_partition_metadata", lost)
    assert held(table) == [*OLD, ("c", "oslo", 1, 1.0)]


def test_a_partition_with_old_files_alone_is_replaced_once_it_is_one_again(tmp_path: Path) -> None:
    table = listing(table_at(tmp_path / "rides", COW))
    table.upsert(rides(OSLO))
    rome = tmp_path / "rides/rome"
    max(rome.glob("*.parquet"), key=lambda path: path.name.rpartition("_")[2]).unlink()
    shutil.move(rome / ".hoodie_partition_metadata", tmp_path / "kept")
    with pytest.raises(CorruptTableError, match="metadata file of a partition is missing"):
        table.delete_partition("rome")
    shutil.move(tmp_path / "kept", rome / ".hoodie_partition_metadata")
    table.delete_partition("rome")
    table.services.repair(apply=True)
    assert (held(table), table.services.validate().findings) == ([OSLO], ())


def test_a_partition_whose_folder_is_gone_is_named(tmp_path: Path) -> None:
    table = table_at(tmp_path / "rides")
    table.upsert(rides(("c", "oslo", 1, 1.0)))
    (data,) = (tmp_path / "rides/oslo").glob("*.parquet")
    shutil.rmtree(tmp_path / "rides/oslo")
    with pytest.raises(CorruptTableError, match="missing") as caught:
        table.scan().to_arrow()
    assert (caught.value.table, caught.value.path) == (table.uri, f"oslo/{data.name}")


def test_a_replaced_partition_may_go(tmp_path: Path) -> None:
    table = table_at(tmp_path / "rides")
    table.insert_overwrite_table(rides(("c", "oslo", 1, 1.0)))
    shutil.rmtree(tmp_path / "rides/rome")
    assert held(table) == [("c", "oslo", 1, 1.0)]


@pytest.mark.parametrize("content", [b"", b"\0garbage"])
def test_a_damaged_overwrite_is_named(tmp_path: Path, content: bytes) -> None:
    table = table_at(tmp_path)
    table.insert_overwrite(rides(*OLD))
    (path,) = (tmp_path / ".hoodie/timeline").glob("*_*.replacecommit")
    path.write_bytes(content)
    with pytest.raises(CorruptTableError) as caught:
        table.scan().to_arrow()
    assert caught.value.path == f".hoodie/timeline/{path.name}"
    with pytest.raises(CorruptTableError):
        table.upsert(rides(*OLD))


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("kind", ["replacecommit", "deltacommit"])
def test_a_completed_write_that_was_emptied_is_named(tmp_path: Path, kind: str, version: int) -> None:
    table = listing(table_at(tmp_path / "rides", MOR, version))
    table.insert_overwrite(rides(("c", "rome", 1, 1.0)))
    found = tmp_path.glob(f"rides/.hoodie/**/*.{kind}")
    emptied = max(path for path in found if "metadata" not in path.parts)
    emptied.write_bytes(b"")
    for read in (lambda: held(table), lambda: table.upsert(rides(OLD[0]))):
        with pytest.raises(CorruptTableError, match="empty") as caught:
            read()
        assert emptied.name in str(caught.value)
