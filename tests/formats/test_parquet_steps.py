"""Conditions whose columns are decoded first: what is kept of these columns is bounded."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from drawstring.formats.parquet import matching, read
from drawstring.formats.parquet.read import ParquetQuery, read_parquet
from drawstring.storage import open_storage

ROWS = 20_000


@pytest.mark.parametrize("kept_bytes", [32 << 20, 10_000, 0], ids=["all", "some", "none"])
@pytest.mark.parametrize("requested", [("id", "note"), ("note",), ("note", "city", "id")], ids=str)
@pytest.mark.parametrize("least", [-1, ROWS // 3, ROWS - 1, ROWS])
def test_rows_of_a_condition_are_those_that_match(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, least: int, requested: tuple[str, ...], kept_bytes: int
) -> None:
    monkeypatch.setattr(matching, "KNOWN_BYTES_MAX", kept_bytes)
    monkeypatch.setattr(read, "_COPIED_BYTES", 0)  # the file is read as a large one is
    schema = pa.schema([("id", pa.int64()), ("city", pa.string()), ("note", pa.string())])
    cities = [None if each % 7 == 0 else f"city {each % 3}" for each in range(ROWS)]
    rows = pa.table([[*range(ROWS)], cities, [f"note {each}" for each in range(ROWS)]], schema=schema)
    pq.write_table(rows, tmp_path / "rows.parquet", row_group_size=9_000)
    where = (pc.field("id") > least) & (pc.field("city") == "city 1")

    found = [*read_parquet(open_storage(tmp_path), "rows.parquet", ParquetQuery(requested, where=where))]
    expected = rows.filter(where).select(list(requested))
    assert pa.Table.from_batches(found, expected.schema).equals(expected)
