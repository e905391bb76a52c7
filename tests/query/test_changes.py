"""Change queries: every change once, with the record before and after it, whatever the files look like."""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import drawstring
from drawstring.base.errors import CorruptTableError, DrawstringError, InvalidError, UnsupportedError
from drawstring.filegroups import log_scanner
from drawstring.filegroups.file_slice_reader import read_task
from drawstring.model.instant import time_of
from tests.support.golden import golden_table
from tests.support.limits import SetLimits
from tests.support.tables import WITHOUT_COMPACTION, listing
from tests.support.timelines import archive

SCHEMA = pa.schema(
    [("id", pa.int64()), ("ts", pa.int64()), ("value", pa.string()), ("_hoodie_is_deleted", pa.bool_())]
)
Told = tuple[str, Any, Any]


def created(path: Path, version: int, table_type: str, ordering: str | None = "ts") -> drawstring.Table:
    return drawstring.create(
        path, SCHEMA, record_key="id", ordering=ordering or (), table_type=table_type, version=version
    )


def write(
    table: drawstring.Table, *rows: tuple[int, int, str], deleted: bool = False, verb: str = "upsert"
) -> str:
    """Write rows; return the time of the commit in ranges."""
    content = [dict(zip(SCHEMA.names, (*row, deleted), strict=True)) for row in rows]
    getattr(table, verb)(pa.Table.from_pylist(content, SCHEMA), options=WITHOUT_COMPACTION)
    newest = table.timeline.writes()[-1]
    return time_of(newest)


def told(table: drawstring.Table, *bounds: str) -> list[Told]:
    """Return operation, value before and value after of each change."""
    found = [
        (change["op"], value_of(change["before"]), value_of(change["after"]))
        for change in table.changes(*bounds).to_arrow().to_pylist()
    ]
    return sorted(found, key=str)


def value_of(text: str | None) -> Any:
    return None if text is None else json.loads(text)["value"]


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_what_loses_is_no_change(version: int, table_type: str, tmp_path: Path) -> None:
    table = created(tmp_path / "t", version, table_type)
    start = write(table, (1, 5, "a"), (2, 5, "b"), (3, 5, "c"))
    write(table, (1, 4, "late"), (2, 6, "newer"), (4, 1, "new"))
    assert told(table, start) == [("i", None, "new"), ("u", "b", "newer")]
    start = write(table, (1, 4, "late"), deleted=True)
    assert told(table, start) == []
    write(table, (3, 6, ""), deleted=True)
    write(table, (9, 6, ""), verb="delete")
    assert told(table, start) == [("d", "c", None)]


@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_compaction_between_changes_is_none_itself(version: int, tmp_path: Path) -> None:
    table = created(tmp_path / "t", version, "MERGE_ON_READ")
    start = write(table, (1, 1, "a"), (2, 1, "b"))
    write(table, (1, 2, "a2"))
    write(table, (1, 3, "a3"), (2, 3, "b3"))
    table.services.compact()
    write(table, (2, 4, "b4"))
    write(table, (1, 4, "x"), verb="delete")
    assert told(table, start) == sorted(
        [("u", "a", "a2"), ("u", "a2", "a3"), ("u", "b", "b3"), ("u", "b3", "b4"), ("d", "a3", None)], key=str
    )


@pytest.mark.parametrize("version", [6, 9])
def test_an_overwrite_deletes_what_was_there(version: int, tmp_path: Path) -> None:
    table = created(tmp_path / "t", version, "MERGE_ON_READ", ordering=None)
    write(table, (1, 1, "a"), (2, 1, "b"))
    start = write(table, (1, 1, "a2"))
    write(table, (1, 1, "a3"), verb="insert_overwrite_table")
    assert told(table, start) == [("d", "a2", None), ("d", "b", None), ("i", None, "a3")]


def test_a_table_without_commit_times_has_no_changes_to_tell(
    golden: Callable[[str], drawstring.Table],
) -> None:
    with pytest.raises(UnsupportedError, match="commit times"):
        golden("v9_cow_no_meta_fields").changes("earliest")


def test_commits_whose_slices_are_gone_are_named(tmp_path: Path) -> None:
    table = listing(created(tmp_path / "t", 9, "COPY_ON_WRITE"))
    write(table, (1, 1, "a"))
    second = write(table, (1, 2, "b"))
    third = write(table, (1, 3, "c"))
    next((tmp_path / "t").glob(f"*_{table.timeline.writes()[0].requested}.parquet")).unlink()
    with pytest.raises(InvalidError, match=f"Start at {second}") as caught:
        told(table, table.timeline.writes()[0].completed or "")
    assert caught.value.instant == table.timeline.writes()[1].requested
    assert told(table, second, third) == [("u", "b", "c")]


@pytest.fixture
def golden(tmp_path: Path) -> Callable[[str], drawstring.Table]:
    def unpacked(name: str) -> drawstring.Table:
        return golden_table(name, tmp_path)

    return unpacked


@pytest.mark.parametrize("mode", ["data_before_after", "data_before", "op_key_only"])
def test_a_damaged_change_log_is_an_error_that_names_it(
    mode: str, golden: Callable[[str], drawstring.Table]
) -> None:
    table = golden(f"v9_cdc_cow_{mode}")
    log = sorted(Path(table.uri).rglob("*.cdc"))[0]
    whole = log.read_bytes()
    answer = table.changes("earliest").to_arrow()
    log.write_bytes(whole[:-7])
    with pytest.raises(CorruptTableError, match=log.name):
        table.changes("earliest").to_arrow()
    for place in range(0, len(whole), 17):
        log.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        try:
            assert table.changes("earliest").to_arrow().schema == answer.schema
        except DrawstringError as error:
            assert error.message
    shutil.rmtree(table.uri)


REPLAYED = (
    "v9_cow_insert_overwrite_table",
    "v9_mdt_replace",
    "v9_cdc_mor_compaction_replace",
    "v9_idx_global_simple",
    "v8_idx_consistent_dual_write",
    "v9_idx_consistent_dual_write",
)


@pytest.mark.parametrize("name", REPLAYED)
def test_changes_in_their_order_make_the_table(name: str, golden: Callable[[str], drawstring.Table]) -> None:
    """A record that moves to another file group is deleted before it is inserted, and told once."""
    table = golden(name)
    keys = table.config.record_key_fields
    held: dict[tuple[Any, ...], Any] = {}
    for change in table.changes("earliest").to_arrow().to_pylist():
        image = json.loads(change["after"] or change["before"])
        key = tuple(str(image[field]) for field in keys)
        assert (key in held) == (change["op"] != "i")
        held.pop(key, None)
        if change["op"] != "d":
            held[key] = image
    expected = table.scan(list(keys)).to_arrow().to_pylist()
    assert sorted(held) == sorted(tuple(str(each[field]) for field in keys) for each in expected)


def test_the_logs_of_a_slice_are_read_once_for_all_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = created(tmp_path / "t", 9, "MERGE_ON_READ")
    start = write(table, *((number, 1, "a") for number in range(40)))
    for number in range(25):
        write(table, (number % 7, number + 2, f"b{number}"))
    read: list[int] = []
    once = log_scanner.block_rows
    monkeypatch.setattr(log_scanner, "block_rows", lambda *of: read.append(1) or once(*of))
    changes = table.changes(start)
    assert {op for op, *_ in told_of(changes)} == {"u"}
    assert len(read) == 25
    assert told_of(changes) == told_of(table.changes(start))


def told_of(changes: drawstring.Scan) -> list[Told]:
    return [
        (change["op"], value_of(change["before"]), value_of(change["after"]))
        for change in changes.to_arrow().to_pylist()
    ]


def test_each_task_of_changes_can_run_in_another_process(golden: Callable[[str], drawstring.Table]) -> None:
    changes = golden("v9_mor_avro").changes("earliest")
    travelled = [pickle.loads(pickle.dumps(task)) for task in changes.tasks()]
    rows = [row for task in travelled for batch in read_task(task) for row in batch.to_pylist()]
    assert rows == changes.to_arrow().to_pylist()


def test_changes_of_several_slices_are_right_when_little_is_held(
    golden: Callable[[str], drawstring.Table], limit: SetLimits
) -> None:
    table = golden("v9_mor_avro")
    held = told_of_all(table)
    limit(change_records_bytes_max=0)
    assert told_of_all(table) == held


def told_of_all(table: drawstring.Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = table.changes("earliest").to_arrow().to_pylist()
    return found


@pytest.mark.parametrize(
    ("name", "pattern", "damage"),
    [
        ("v9_cdc_mor_op_key_only", ".e3475ee9*.cdc", "empty"),
        ("v9_cdc_cow_data_before_after", ".*.cdc", "empty"),
        ("v9_cdc_mor_data_before_after", "3504c28a-*_20261121092743683.parquet", "gone"),
        ("v6_idx_consistent", "dad73638*.parquet", "gone"),
        ("v6_mor_log_compaction", ".9a1c843d-*.log.4_0-7984-15785", "gone"),
    ],
)
def test_changes_notice_what_is_lost(
    name: str, pattern: str, damage: str, golden: Callable[[str], drawstring.Table]
) -> None:
    table = golden(name)
    table.changes("earliest").to_arrow()
    path = next(Path(table.uri).rglob(pattern))
    path.unlink() if damage == "gone" else path.write_bytes(b"")
    with pytest.raises(CorruptTableError) as caught:
        table.changes("earliest").to_arrow()
    assert caught.value.path == str(path.relative_to(table.uri))


@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_commit_time_as_start_leaves_its_commit_out_and_as_end_takes_it_in(
    version: int, tmp_path: Path
) -> None:
    table = created(tmp_path / "t", version, "COPY_ON_WRITE")
    for number in (1, 2, 3):
        write(table, (number, 1, f"v{number}"))
    first, second, third = (write.requested for write in table.timeline.writes())
    assert told(table, first) == [("i", None, "v2"), ("i", None, "v3")]
    assert told(table, first, second) == [("i", None, "v2")]
    assert told(table, second, third) == [("i", None, "v3")]
    assert told(table, third) == []
    assert table.changes(end=second).to_arrow()["ts_ms"].to_pylist() == [second]
    assert table.changes(second, include_start=True).to_arrow()["ts_ms"].to_pylist() == [second, third]


def test_ranges_by_commit_times_lose_no_write_that_ran_beside_another(tmp_path: Path) -> None:
    table = created(tmp_path / "t", 9, "COPY_ON_WRITE")
    for number in (1, 2, 3):
        write(table, (number, 1, f"v{number}"))
    first, second, third = table.timeline.writes()
    # The first write ended after the third began, as writers at once do.
    folder = tmp_path / "t/.hoodie/timeline"
    late = str(int(third.completed or "") + 1)
    (folder / f"{first.requested}_{first.completed}.commit").rename(
        folder / f"{first.requested}_{late}.commit"
    )
    assert told(table, second.requested) == [("i", None, "v1"), ("i", None, "v3")]
    assert told(table, "earliest", second.requested) == [("i", None, "v2")]
    assert told(table, third.requested) == [("i", None, "v1")]


def test_a_commit_time_of_the_archive_bounds_changes_as_well(tmp_path: Path) -> None:
    table = created(tmp_path / "t", 9, "COPY_ON_WRITE")
    for number in (1, 2, 3, 4):
        write(table, (number, 1, f"v{number}"))
    first, second, _, last = (write.requested for write in table.timeline.writes())
    archive(table, 2)
    assert told(table, second, last) == [("i", None, "v3"), ("i", None, "v4")]
    with pytest.raises(InvalidError, match="archived"):
        told(table, first, second)
