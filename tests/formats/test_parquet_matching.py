"""Conditions on large row groups: the rows that match, and what is decoded to find them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from drawstring.formats.parquet import ParquetQuery, read_parquet, reader
from drawstring.storage import open_storage
from tests.support.limits import SetLimits

ROWS = 150_000
FEW_ROWS = 20_000
NUMBER, KIND, NOTE = "number", "kind", "note"
COLUMNS = [NOTE, KIND, NUMBER]


@pytest.fixture(scope="module")
def table() -> pa.Table:
    numbers = np.arange(ROWS)
    kinds = pa.array([None, *(f"k{number % 7}" for number in range(1, ROWS))])
    return pa.table({NUMBER: numbers, KIND: kinds, NOTE: [f"note {number}" for number in range(ROWS)]})


@pytest.fixture(scope="module")
def folder(table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rows")
    pq.write_table(table, path / "a.parquet", row_group_size=40_000)
    pq.write_table(table, path / "one.parquet", row_group_size=ROWS)
    return path


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Count the rows that are decoded of each column."""
    seen: dict[str, int] = {}
    group_rows = reader.group_rows

    def noted(file: Any, parquet: Any, groups: Any, names: Any, *more: Any) -> Iterator[pa.RecordBatch]:
        for batch in group_rows(file, parquet, groups, names, *more):
            for name in names:
                seen[name] = seen.get(name, 0) + batch.num_rows
            yield batch

    monkeypatch.setattr(reader, "group_rows", noted)
    return seen


def found(folder: Path, where: pc.Expression, columns: list[str], name: str = "a.parquet") -> pa.Table:
    batches = list(read_parquet(open_storage(str(folder)), name, ParquetQuery(columns, where)))
    assert all(batch.num_rows for batch in batches)
    assert all(batch.schema.names == columns for batch in batches)
    return pa.Table.from_batches(batches) if batches else pa.table({name: [] for name in columns})


@pytest.mark.parametrize("file", ["a.parquet", "one.parquet"])
@pytest.mark.parametrize("columns", [COLUMNS, [NUMBER, NOTE], [NOTE]])
@pytest.mark.parametrize(
    "where",
    [
        pc.field(NUMBER) == 0,
        pc.field(NUMBER) == ROWS - 1,
        (pc.field(NUMBER) == 39_999) | (pc.field(NUMBER) == 40_000) | (pc.field(NUMBER) == 65_536),
        pc.field(NUMBER) >= 65_535,
        pc.field(NUMBER) >= 0,
        pc.field(KIND) == "k3",
        (pc.field(KIND) == "k3") & (pc.field(NUMBER) < 70_000),
        pc.field(KIND).is_null(),
    ],
    ids=str,
)
def test_rows_are_those_that_a_table_in_memory_has(
    where: pc.Expression, columns: list[str], file: str, folder: Path, table: pa.Table
) -> None:
    assert found(folder, where, columns, file).equals(table.filter(where).select(columns))


def test_columns_are_decoded_up_to_the_last_row_that_matches(folder: Path, decoded: dict[str, int]) -> None:
    where = (pc.field(NUMBER) == 10) | (pc.field(NUMBER) == 29)
    assert found(folder, where, [NOTE], "one.parquet").num_rows == 2
    assert decoded == {NUMBER: ROWS, NOTE: 30}


def test_columns_of_row_groups_without_a_match_are_not_decoded(folder: Path, decoded: dict[str, int]) -> None:
    assert found(folder, pc.field(KIND) == "k33", [NOTE], "one.parquet").num_rows == 0
    assert decoded == {KIND: ROWS}


@pytest.mark.parametrize("kept_bytes", [32 << 20, 10_000, 0], ids=["all", "some", "none"])
@pytest.mark.parametrize("requested", [("id", "note"), ("note",), ("note", "city", "id")], ids=str)
@pytest.mark.parametrize("least", [-1, FEW_ROWS // 3, FEW_ROWS - 1, FEW_ROWS])
def test_rows_of_a_condition_are_those_that_match(
    tmp_path: Path, limit: SetLimits, least: int, requested: tuple[str, ...], kept_bytes: int
) -> None:
    limit(matched_bytes_max=kept_bytes, local_copy_bytes_max=0)  # the file is read as a large one is
    schema = pa.schema([("id", pa.int64()), ("city", pa.string()), ("note", pa.string())])
    cities = [None if each % 7 == 0 else f"city {each % 3}" for each in range(FEW_ROWS)]
    rows = pa.table([[*range(FEW_ROWS)], cities, [f"note {each}" for each in range(FEW_ROWS)]], schema=schema)
    pq.write_table(rows, tmp_path / "rows.parquet", row_group_size=9_000)
    where = (pc.field("id") > least) & (pc.field("city") == "city 1")

    batches = [*read_parquet(open_storage(tmp_path), "rows.parquet", ParquetQuery(requested, where=where))]
    expected = rows.filter(where).select(list(requested))
    assert pa.Table.from_batches(batches, expected.schema).equals(expected)


def test_of_few_rows_with_many_columns_the_others_are_decoded_only_if_one_matches(
    tmp_path: Path, decoded: dict[str, int]
) -> None:
    names = [f"v{number}" for number in range(40)]
    rows = pa.table({KIND: ["a", "b", "c"], **{name: [1, 2, 3] for name in names}})
    pq.write_table(rows, tmp_path / "wide.parquet")
    pq.write_table(rows.select([KIND, *names[:2]]), tmp_path / "narrow.parquet")
    columns = [KIND, *names]
    assert found(tmp_path, pc.field(KIND) == "x", columns, "wide.parquet").num_rows == 0
    assert decoded == {KIND: 3}
    decoded.clear()
    assert found(tmp_path, pc.field(KIND) == "b", columns, "wide.parquet").equals(rows.slice(1, 1))
    assert decoded == dict.fromkeys(names, 2) | {KIND: 3}
    decoded.clear()
    found(tmp_path, pc.field(KIND) == "x", columns[:3], "narrow.parquet")
    assert decoded == dict.fromkeys(columns[:3], 3)
