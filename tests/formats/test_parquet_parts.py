"""Parquet files within files: the data blocks of log files."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from drawstring.formats.parquet import ParquetQuery, reader
from drawstring.storage import streams


class Counted(io.BytesIO):
    """Counts the bytes that are read."""

    count = 0

    def read(self, size: int | None = -1) -> bytes:
        found = super().read(size)
        self.count += len(found)
        return found


def test_of_a_large_part_only_the_columns_asked_for_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "PART_WHOLE_BYTES_MAX", 1 << 16)
    monkeypatch.setattr(streams, "READ_AHEAD_BYTES", 1)
    count = 20_000
    rows = pa.table(
        [[f"k{n}" for n in range(count)], ["x" * 90 + str(n) for n in range(count)]], ["id", "note"]
    )
    target = pa.BufferOutputStream()
    pq.write_table(rows, target, compression="none", use_dictionary=False)
    content = target.getvalue().to_pybytes()
    counted = Counted(b"before" + content + b"after")
    file = pa.PythonFile(counted, mode="r")
    batches = reader.read_parquet_part(file, len(b"before"), len(content), ParquetQuery(["id"]))
    assert pa.Table.from_batches(batches).equals(rows.select(["id"]))
    assert counted.count < len(content) / 4
