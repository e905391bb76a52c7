"""Of a log block only the row groups are decoded that have a key that is looked up."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from drawstring.base.errors import CorruptTableError
from drawstring.formats.parquet import ParquetQuery
from drawstring.formats.parquet.reader import read_part_of_keys

KEY = "_hoodie_record_key"
ROWS = pa.table({KEY: ["a", "b", "c", "d"], "fare": [1, 2, 3, 4], "note": ["w", "x", "y", "z"]})
BEFORE = b"head of the log block"


def block(rows: pa.Table) -> bytes:
    """Return a Parquet file of two rows a row group."""
    content = pa.BufferOutputStream()
    pq.write_table(rows, content, row_group_size=2)
    return bytes(content.getvalue())


def found(content: bytes, columns: list[str], *keys: str) -> list[dict[str, object]]:
    file = pa.BufferReader(BEFORE + content + b"tail")
    batches = read_part_of_keys(
        file, len(BEFORE), len(content), ParquetQuery(columns), pa.array(keys, pa.string())
    )
    return [row for batch in batches for row in batch.to_pylist()]


@pytest.mark.parametrize(
    ("keys", "fares"), [(["c"], [3, 4]), (["a", "d"], [1, 2, 3, 4]), (["e"], []), ([], [])]
)
def test_row_groups_without_the_keys_are_left_out(keys: list[str], fares: list[int]) -> None:
    rows = found(block(ROWS), ["fare", KEY, "city"], *keys)
    assert rows == [{"fare": fare, KEY: "abcd"[fare - 1]} for fare in fares]


def test_without_a_column_of_keys_all_rows_may_have_them() -> None:
    assert found(block(ROWS.select(["fare"])), ["fare", KEY], "c") == [
        {"fare": fare} for fare in (1, 2, 3, 4)
    ]


def test_a_damaged_block_is_reported() -> None:
    with pytest.raises(CorruptTableError):
        found(block(ROWS)[:-9] + b"?" * 9, [KEY], "c")
