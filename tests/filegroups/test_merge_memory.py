"""Queries keep what they learn of slices with log files: later ones have the right rows for less."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from drawstring.filegroups import file_slice_reader, large_log_scanner
from drawstring.filegroups.large_log_scanner import MergedLogCache
from drawstring.formats.parquet.staged import StagedFile
from drawstring.storage.local import LocalStorage
from drawstring.table import Table
from tests.support.limits import SetLimits
from tests.support.order_lines import (
    BY_COMMIT,
    CONDITIONS,
    NAMES,
    NO_META,
    NOTE,
    ONE_BUCKET,
    ORDER,
    PRICE,
    SCHEMA,
    SORTED,
    Model,
    base_rows,
    history,
    lineitem,
    made,
    read,
)
from tests.support.tables import MOR, WITHOUT_COMPACTION, create

pytestmark = pytest.mark.usefixtures("small_row_groups")


@pytest.fixture(autouse=True)
def memory(monkeypatch: pytest.MonkeyPatch) -> MergedLogCache:
    """What is kept, by this test alone."""
    kept = MergedLogCache()
    monkeypatch.setattr(file_slice_reader, "MERGED_LOG_CACHE", kept)
    return kept


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The log files that were opened, and the columns of base files that were decoded."""
    seen: list[str] = []
    open_file, rows = LocalStorage.open, StagedFile.rows

    def noted_file(storage: LocalStorage, path: str) -> pa.NativeFile:
        seen.extend(["log"] if ".log." in path else [])
        return open_file(storage, path)

    def noted_rows(file: StagedFile, groups: Any, names: Any, *how: Any) -> Any:
        seen.extend(names)
        return rows(file, groups, names, *how)

    monkeypatch.setattr(LocalStorage, "open", noted_file)
    monkeypatch.setattr(StagedFile, "rows", noted_rows)
    return seen


def changed(table: Table, *rows: Any) -> None:
    table.upsert(lineitem(rows), options=WITHOUT_COMPACTION)


KINDS = {
    "by event": {},
    "by commit": BY_COMMIT,
    "no meta": NO_META,
    "sorted": SORTED,
    "sorted, by commit": SORTED | BY_COMMIT,
}
layouts = pytest.mark.parametrize("properties", [{}, SORTED], ids=["default", "sorted"])


@pytest.mark.parametrize("properties", KINDS.values(), ids=KINDS.keys())
def test_queries_in_any_order_have_the_rows_of_a_dictionary(
    tmp_path: Path, properties: dict[str, str]
) -> None:
    for seed in range(2):
        chance = random.Random(seed)
        by_commit = BY_COMMIT.items() <= properties.items()
        model = Model(made(tmp_path / str(seed), **properties), by_commit=by_commit)
        history(model, chance)
        for round_ in range(3):
            for _ in range(12):
                where, is_match = chance.choice([(None, lambda row: True), *CONDITIONS.items()])
                names = chance.sample(NAMES, chance.randrange(1, 4))
                expected = [
                    tuple(row[NAMES.index(name)] for name in names) for row in model.matching(is_match)
                ]
                assert read(model.table, names, where) == sorted(expected), (seed, round_, names, where)
            model.upsert([(chance.randrange(80), 1, chance.choice((4, 9)), "b", 12.0, f"more {round_}")])
            model.delete([(chance.randrange(80), 2, 1, "", 0.0, "")])


@layouts
def test_a_second_query_opens_no_log_file_and_decodes_no_key(
    tmp_path: Path, opened: list[str], properties: dict[str, str]
) -> None:
    table = made(tmp_path / "t", **properties)
    changed(table, *base_rows(ts=5))
    changed(table, (5, 1, 4, "a", 1.0, "late"), (6, 1, 6, "a", 1.0, "new"))
    first = read(table, [NOTE])
    assert "log" in opened
    opened.clear()

    assert read(table, [NOTE]) == first
    assert read(table, [NOTE], f"{NOTE} = 'new'") == [("new",)]
    assert set(opened) == {NOTE}


@layouts
def test_columns_that_were_not_needed_before_are_read_and_kept(
    tmp_path: Path, opened: list[str], properties: dict[str, str]
) -> None:
    table = made(tmp_path / "t", **properties)
    changed(table, *base_rows())
    changed(table, (5, 1, 6, "a", 777.0, "new"))
    read(table, [NOTE])
    assert (777.0,) in read(table, [PRICE])
    opened.clear()

    assert ("new", 777.0) in read(table, [NOTE, PRICE])
    assert "log" not in opened


@layouts
def test_what_another_query_sees_is_not_taken_for_what_this_one_sees(
    tmp_path: Path, properties: dict[str, str]
) -> None:
    table = made(tmp_path / "t", **properties)
    changed(table, (1, 1, 5, "a", 1.0, "first"))
    second = table.upsert(lineitem([(1, 1, 6, "a", 1.0, "second")]), options=WITHOUT_COMPACTION)
    changed(table, (1, 1, 7, "a", 1.0, "third"))
    for _ in range(2):
        assert read(table, [NOTE]) == [("third",)]
        then = table.scan(columns=[NOTE], as_of=second.instant).to_arrow()
        assert then.to_pylist() == [{NOTE: "second"}]
    table.services.compact()
    assert read(table, [NOTE]) == [("third",)]


def test_no_more_is_kept_than_there_is_room_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: list[str]
) -> None:
    tables = [made(tmp_path / str(number)) for number in range(8)]
    for table in tables:
        changed(table, *base_rows())
        changed(table, *base_rows(ts=6))
        read(table, [NOTE])
    known = [each for each, _ in file_slice_reader.MERGED_LOG_CACHE._known.values()]
    assert len(known) == 8

    small = MergedLogCache(bytes_max=5 * max(each.size_bytes for each in known))
    monkeypatch.setattr(file_slice_reader, "MERGED_LOG_CACHE", small)
    for table in tables:
        read(table, [NOTE])
    opened.clear()
    read(tables[-1], [NOTE])
    assert "log" not in opened
    read(tables[0], [NOTE])
    assert "log" in opened
    assert small._size_bytes <= small._bytes_max


def test_sorted_log_files_that_do_not_fit_into_memory_are_not_kept(
    tmp_path: Path, memory: MergedLogCache, limit: SetLimits
) -> None:
    limit(windows_bytes=0)
    table = made(tmp_path / "t", **SORTED)
    changed(table, *base_rows())
    changed(table, *base_rows(60, ts=6))
    expected = sorted([*base_rows(60, ts=6), *base_rows()[60:]])
    assert [read(table), read(table)] == [expected, expected]
    assert not memory._known


def test_a_slice_that_takes_all_the_room_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = MergedLogCache(bytes_max=100)
    monkeypatch.setattr(file_slice_reader, "MERGED_LOG_CACHE", small)
    table = made(tmp_path / "t")
    changed(table, *base_rows())
    changed(table, *base_rows(ts=6))
    assert read(table, [NOTE]) == read(table, [NOTE])
    assert not small._known


def test_tables_in_memory_are_not_kept(memory: MergedLogCache) -> None:
    table = create(SCHEMA, table_type=MOR, record_key=ORDER, partition_by=[], properties=ONE_BUCKET)
    changed(table, *base_rows())
    changed(table, (5, 1, 6, "a", 777.0, "new"))
    read(table)
    assert not memory._known
    assert large_log_scanner.MERGED_LOG_CACHE is not memory
