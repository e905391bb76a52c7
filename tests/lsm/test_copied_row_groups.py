"""A compaction of sorted files copies row groups in whose range of keys nothing changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drawstring.filegroups.base_file_writer import FileSettings
from drawstring.formats.parquet import RowGroups
from drawstring.formats.parquet.row_group_copy import PatchedSink
from drawstring.services import compaction_task
from drawstring.table import Table
from drawstring.testing import context_of, with_limits
from tests.support.rows import held, rides
from tests.support.sorted_tables import check_sorted, sorted_table
from tests.support.tables import WITHOUT_SERVICES

BUCKET = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
KEYS = range(0, 200, 2)
GROUP_ROWS = 10
EXAMPLES = max(5, settings.get_profile(settings.get_current_profile_name()).max_examples // 10)


@pytest.fixture(autouse=True)
def row_groups_of_ten_rows() -> Iterator[None]:
    with patch.object(FileSettings, "row_groups", property(lambda _: RowGroups(GROUP_ROWS))):
        yield


@contextmanager
def copies() -> Iterator[list[int]]:
    """Note the numbers of the row groups that are copied; whatever the sizes of the files."""
    copied: list[int] = []
    original = PatchedSink.copy

    def copy(self: PatchedSink, file: Any, group: int, changed: Any = None) -> None:
        copied.append(group)
        original(self, file, group, changed)

    with patch.object(PatchedSink, "copy", copy), with_limits(copied_logs_share_max=1_000):
        yield copied


def loaded() -> Table:
    """A table with one base file of ten row groups."""
    table = sorted_table(properties=BUCKET)
    table.bulk_insert(rides(*((f"{key:03}", "rome", 1, 0.0) for key in KEYS)), options=WITHOUT_SERVICES)
    return table


def change(table: Table, ts: int, keys: list[int], deleted: Sequence[int] = ()) -> None:
    table.upsert(rides(*((f"{key:03}", "rome", ts, float(ts)) for key in keys)), options=WITHOUT_SERVICES)
    if deleted:
        gone = rides(*((f"{key:03}", "rome", ts, 0.0) for key in deleted))
        table.delete(gone, options=WITHOUT_SERVICES)


def base_file(table: Table) -> pq.ParquetFile:
    (file_slice,) = table.inspect.files()
    assert not file_slice.logs
    return pq.ParquetFile(context_of(table).storage.open(file_slice.base.status.path))


def test_changes_of_the_newest_keys_leave_the_other_row_groups_as_they_are() -> None:
    table = loaded()
    change(table, 2, [197, 198, 199, 200, 201], deleted=[180])
    before = held(table)
    with copies() as copied:
        assert table.services.compact().records_written == len(before)
    assert copied == list(range(9))
    assert held(table) == before
    check_sorted(table)
    file = base_file(table)
    names = {row.as_py() for row in file.read(["_hoodie_file_name"]).column(0)}
    assert len(names) == 1
    assert table.services.validate().findings == ()
    for key in ("000", "198", "201"):
        assert table.scan(where=f"id = '{key}'").to_arrow().num_rows == 1
    assert table.scan(where="id = '180'").to_arrow().num_rows == 0


def test_changes_of_all_row_groups_are_encoded_as_by_any_compaction() -> None:
    table = loaded()
    change(table, 2, list(range(0, 200, 10)))
    before = held(table)
    with copies() as copied:
        assert table.services.compact()
    assert not copied
    assert held(table) == before


def test_one_log_file_with_keys_of_all_row_groups_is_enough_to_encode_them() -> None:
    table = loaded()
    for ts in range(2, 6):
        change(table, ts, list(range(ts, 200, 10)))
    before = held(table)
    seen: list[int] = []
    original = compaction_task._groups_of

    def groups_of(*given: Any) -> Any:
        seen.append(1)
        return original(*given)

    with (
        copies() as copied,
        patch.object(compaction_task, "_groups_of", groups_of),
        patch.object(compaction_task, "patch_source") as taken_apart,
    ):
        assert table.services.compact()
    assert len(seen) == 1
    assert not copied
    taken_apart.assert_not_called()
    assert held(table) == before


def test_row_groups_that_get_small_are_merged_with_the_next_ones() -> None:
    table = loaded()
    for ts in range(2, 8):
        change(table, ts, [ts], deleted=[2 * key + 100 for key in range((ts - 2) * 8, (ts - 1) * 8)])
        with copies():
            table.services.compact()
    metadata = base_file(table).metadata
    sizes = [metadata.row_group(at).num_rows for at in range(metadata.num_row_groups)]
    assert sum(sizes) == len(held(table))
    assert sum(size < GROUP_ROWS // 4 for size in sizes) <= 1, sizes
    check_sorted(table)


@settings(max_examples=EXAMPLES)
@given(
    st.lists(
        st.tuples(
            st.lists(st.integers(0, 230), min_size=1, max_size=6),
            st.lists(st.integers(0, 230), max_size=12),
            st.booleans(),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_any_changes_give_what_encoding_gives(steps: list[tuple[list[int], list[int], bool]]) -> None:
    table = loaded()
    for ts, (keys, deleted, compacts) in enumerate(steps, start=2):
        change(table, ts, sorted({*keys}), deleted)
        before = held(table)
        if compacts:
            with copies():
                assert table.services.compact().records_written == len(before)
            assert held(table) == before
            check_sorted(table)
    assert table.services.validate().findings == ()
    lowest = np.min([int(row[0]) for row in held(table)])
    assert table.scan(where=f"id = '{lowest:03}'").to_arrow().num_rows == 1
