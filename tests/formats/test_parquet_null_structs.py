"""Null structs are written whatever stands below them in memory."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from drawstring.formats.parquet import ParquetSink
from drawstring.storage.memory import MemoryStorage


def test_values_behind_null_structs_reach_neither_rows_nor_statistics() -> None:
    pair = pa.struct([pa.field("n", pa.int32(), nullable=False), pa.field("t", pa.string(), nullable=False)])
    both = pa.array([{"n": 5, "t": "e"}, {"n": 6, "t": "f"}], pair)
    taken = both.take(pa.array([None, 1, None, 0], pa.int32()))
    rows = pa.record_batch([taken], schema=pa.schema([("pair", pair)]))
    storage = MemoryStorage("memory://null-structs")
    avro = '{"type":"record","name":"t_record","fields":[]}'
    sink = ParquetSink(storage, "f", rows.schema, table_avro_schema=avro, compression="zstd", bloom=False)
    sink.write(rows)
    sink.close()
    with storage.open("f") as file:
        read = pq.ParquetFile(file)
        assert read.read().column("pair").to_pylist() == rows.column(0).to_pylist()
        statistics = [read.metadata.row_group(0).column(at).statistics for at in range(2)]
    assert [(found.min, found.max) for found in statistics if found] == [(5, 6), ("e", "f")]
