"""Parquet files within files: the data blocks of log files."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq

from drawstring.formats.parquet import ParquetQuery, reader
from tests.support.limits import SetLimits


class Counted(io.BytesIO):
    """Counts the bytes that are read."""

    count = 0

    def read(self, size: int | None = -1) -> bytes:
        found = super().read(size)
        self.count += len(found)
        return found


def test_of_a_large_part_only_the_columns_asked_for_are_read(limit: SetLimits) -> None:
    limit(part_whole_bytes_max=1 << 16, remote_read_bytes_min=1)
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
