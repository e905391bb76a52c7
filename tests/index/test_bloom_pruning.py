"""Which file slices the bloom indexes leave out before keys are read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import drawstring
from drawstring.engine.grouping import KeyRange, KeySet
from drawstring.filegroups.file_slice_reader import ReadKeys
from drawstring.formats.bloom_footer import StoredSummary
from drawstring.index.bloom_pruning import SortedKeys
from drawstring.model.files import FileSlice
from tests.support.index_reference import Kind, Row, content, table_of
from tests.support.tables import COW, MOR

NEW_FILES = {"hoodie.parquet.small.file.limit": "0"}
NO_FILTER = {"hoodie.parquet.bloom.filter.enabled": "false"}


class Reads(list[str]):
    """Smallest key of every slice whose keys were read."""


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    seen, real = Reads(), ReadKeys.__call__

    def recorded(self: ReadKeys, file_slice: FileSlice) -> Iterator[pa.RecordBatch]:
        found = list(real(self, file_slice))
        seen.append(min(key for batch in found for key in batch.column(0).to_pylist()))
        yield from found

    monkeypatch.setattr(ReadKeys, "__call__", recorded)
    return seen


def rides(group: int, numbers: range, fare: int = 1) -> list[Row]:
    return [(f"g{group}-{number:04}", ("rome", "lima")[group % 2], 1, fare) for number in numbers]


def filled(path: Path, kind: Kind) -> drawstring.Table:
    """Write four file groups of 500 even keys each, two in each of two partitions."""
    table = kind.create(str(path / "rides"))
    for group in range(4):
        table.insert(table_of(rides(group, range(0, 1000, 2))), options=NEW_FILES)
    return table


def test_only_slices_that_may_have_a_key_are_read(tmp_path: Path, reads: Reads) -> None:
    table = filled(tmp_path, Kind("BLOOM", COW))
    table.upsert(table_of(rides(2, range(500, 510, 2), fare=9)))
    assert reads == ["g2-0000"]
    assert len(content(table)) == 2000


def test_a_new_key_between_those_of_a_file_is_told_by_its_filter(tmp_path: Path, reads: Reads) -> None:
    table = filled(tmp_path, Kind("BLOOM", COW))
    table.upsert(table_of(rides(2, range(501, 511, 2))))
    assert reads == []
    assert len(content(table)) == 2005


def test_files_without_filters_are_read(tmp_path: Path, reads: Reads) -> None:
    table = Kind("BLOOM", COW).create(str(tmp_path / "rides"))
    for group in (0, 2):
        table.insert(table_of(rides(group, range(9))), options={**NEW_FILES, **NO_FILTER})
    table.upsert(table_of(rides(2, range(3, 6))))
    assert sorted(reads) == ["g0-0000", "g2-0000"]
    assert len(content(table)) == 18


def test_ranges_are_not_looked_at_when_the_option_says_so(tmp_path: Path, reads: Reads) -> None:
    table = filled(tmp_path, Kind("BLOOM", COW))
    options = {"hoodie.bloom.index.prune.by.ranges": "false"}
    table.upsert(table_of(rides(2, range(500, 510))), options=options)
    assert reads == ["g2-0000"]
    assert len(content(table)) == 2005


def test_a_global_index_asks_the_files_of_all_partitions(tmp_path: Path, reads: Reads) -> None:
    table = filled(tmp_path, Kind("GLOBAL_BLOOM", COW))
    moved = [(key, "berlin", 2, fare) for key, _, _, fare in rides(1, range(0, 4, 2))]
    table.upsert(table_of(moved))
    assert reads == ["g1-0000"]
    assert [row for row in content(table) if row[1] == "berlin"] == [
        ("g1-0000", "berlin", 2, 1),
        ("g1-0002", "berlin", 2, 1),
    ]


def test_a_key_that_only_a_log_file_has_is_found(tmp_path: Path) -> None:
    table = Kind("BUCKET", MOR, more=(("hoodie.bucket.index.num.buckets", "1"),)).create(str(tmp_path / "r"))
    table.upsert(table_of([("b", "rome", 1, 1), ("c", "rome", 1, 1)]))
    table.upsert(table_of([("a", "rome", 1, 1)]))
    properties = tmp_path / "r" / ".hoodie" / "hoodie.properties"
    properties.write_text(properties.read_text().replace("type=BUCKET", "type=BLOOM"))

    reopened = drawstring.open(str(tmp_path / "r"))
    reopened.upsert(table_of([("a", "rome", 2, 5)]))
    assert content(reopened) == [("a", "rome", 2, 5), ("b", "rome", 1, 1), ("c", "rome", 1, 1)]


@pytest.mark.parametrize(
    ("smallest", "largest", "found"),
    [
        ("b", "c", ["b", "c"]),
        ("bb", "cc", ["c"]),
        ("d", "z", None),
        (None, None, ["a", "b", "c"]),
        ("", "\U0001f600", ["a", "b", "c"]),
    ],
)
def test_keys_are_cut_to_the_range_of_a_file(
    smallest: str | None, largest: str | None, found: list[str] | None
) -> None:
    wanted = SortedKeys.of(KeySet(pa.array(["c", "a", "b"])))
    cut = wanted.within(StoredSummary(3, smallest, largest))
    assert (None if cut is None or cut.keys is None else cut.keys.to_pylist()) == found


def test_keys_that_java_sorts_otherwise_are_never_out_of_range() -> None:
    wanted = SortedKeys.of(KeySet(pa.array(["\uffee"])))
    assert wanted.within(StoredSummary(1, "a", "\U0001f600")) is wanted


@pytest.mark.parametrize(
    ("smallest", "largest", "stays"), [("a", "c", True), ("e", "e", True), ("f", "z", False)]
)
def test_too_many_keys_are_told_from_a_file_by_their_ends(smallest: str, largest: str, stays: bool) -> None:
    wanted = SortedKeys.of(KeySet(KeyRange("b", "e", True)))
    assert wanted.within(StoredSummary(1, smallest, largest)) is (wanted if stays else None)
