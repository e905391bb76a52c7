"""Of sorted log files none of whose records survives, no more than the deciding columns are decoded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import drawstring
from drawstring.filegroups import large_log_scanner, sorted_merge
from drawstring.filegroups.large_log_scanner import MERGED_LOG_CACHE
from drawstring.table import Table
from tests.support.sorted_tables import BUCKET, sorted_table
from tests.support.tables import WITHOUT_SERVICES

VALUES = [f"v{number}" for number in range(10)]
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("ts", pa.int64()),
        *((name, pa.int64()) for name in VALUES),
        ("_hoodie_is_deleted", pa.bool_()),
    ]
)
KEYS = [f"{number:02}" for number in range(40)]
EXAMPLES = max(3, settings.get_profile(settings.get_current_profile_name()).max_examples // 10)
Upsert = tuple[Sequence[str], int, bool]


def table_of(upserts: Sequence[Upsert], **how: Any) -> Table:
    """A table with a base file of all keys, and upserts: keys, ordering value, whether they delete."""
    table = sorted_table(SCHEMA, BUCKET, partition_by=(), **how)
    table.bulk_insert(rows(KEYS, 1, 0), options=WITHOUT_SERVICES)
    for number, (keys, ts, is_delete) in enumerate(upserts, 1):
        table.upsert(rows(keys, ts, number, is_delete=is_delete), options=WITHOUT_SERVICES)
    return table


def rows(keys: Sequence[str], ts: int, value: int, *, is_delete: bool = False) -> pa.Table:
    count = len(keys)
    columns = [pa.array(keys), pa.array([ts] * count), *([pa.array([value] * count)] * len(VALUES))]
    return pa.table([*columns, pa.array([is_delete] * count)], schema=SCHEMA)


@contextmanager
def survivors() -> Iterator[list[tuple[int, int]]]:
    """Note how many blocks a merge has, and how many of them have survivors."""
    seen: list[tuple[int, int]] = []

    def noted(logs: Any, placed: Any) -> Any:
        found = large_log_scanner.blocks_with_survivors(logs, placed)
        seen.append((len(placed), len(found)))
        return found

    with patch.object(sorted_merge, "blocks_with_survivors", noted):
        yield seen


def everything(table: Table) -> list[dict[str, Any]]:
    MERGED_LOG_CACHE.forget()
    return sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"])


def as_without(table: Table) -> list[dict[str, Any]]:
    """Read all blocks, whether they have survivors or not."""
    with patch.object(sorted_merge, "blocks_with_survivors", lambda _, placed: placed):
        return everything(table)


def test_of_keys_that_come_again_the_newest_file_is_enough(tmp_path: Path) -> None:
    table = table_of([(KEYS[:20], ts, False) for ts in range(2, 14)], path=tmp_path / "t")
    with survivors() as seen:
        found = everything(table)
        assert table.services.compact().records_written == len(KEYS)
    assert seen == [(12, 1), (12, 1)]
    for each in (found, everything(table)):
        assert [row["v3"] for row in each] == [12] * 20 + [0] * 20


@pytest.mark.parametrize(
    "upserts",
    [
        [(KEYS[number : number + 3], number, False) for number in range(2, 14)],
        [(KEYS[:20], 2, False)] * 7,
        [*[(KEYS[:20], ts, False) for ts in range(2, 13)], (KEYS[:20], 13, True)],
    ],
    ids=["other keys", "few files", "deletes"],
)
def test_all_files_are_decoded_otherwise(tmp_path: Path, upserts: list[Upsert]) -> None:
    table = table_of(upserts, path=tmp_path / "t")
    with survivors() as seen:
        found = everything(table)
    ((blocks, decoded),) = seen
    assert blocks == decoded == len(upserts)
    assert found == as_without(table)


def test_an_older_file_with_the_greatest_ordering_value_counts(tmp_path: Path) -> None:
    upserts = [(KEYS[:20], 20 if number == 4 else number, False) for number in range(12)]
    table = table_of(upserts, path=tmp_path / "t")
    with survivors() as seen:
        found = everything(table)
    assert seen == [(12, 1)]
    assert [row["v0"] for row in found] == [5] * 20 + [0] * 20


def test_files_without_records_count_for_nothing(tmp_path: Path) -> None:
    table_of([(KEYS[:20], ts, False) for ts in range(2, 14)], path=tmp_path / "t")
    for file in (tmp_path / "t").glob("*.log.parquet"):
        stored = pq.read_table(file)
        pq.write_table(stored.slice(0, 0), file)
    assert [row["v0"] for row in everything(drawstring.open(tmp_path / "t"))] == [0] * len(KEYS)


@settings(max_examples=EXAMPLES)
@given(
    st.lists(
        st.tuples(
            st.lists(st.sampled_from(KEYS[:6]), min_size=2, max_size=6, unique=True),
            st.integers(0, 5),
            st.sampled_from([False] * 15 + [True]),
        ),
        min_size=8,
        max_size=16,
    )
)
def test_results_are_those_of_all_files(upserts: list[Upsert]) -> None:
    table = table_of(upserts)
    assert everything(table) == as_without(table)
