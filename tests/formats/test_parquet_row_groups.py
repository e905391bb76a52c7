"""How many rows a row group gets, and a batch that is read."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from drawstring.formats.parquet import ParquetQuery, ParquetSink, RowGroups, read_parquet
from drawstring.storage.local import LocalStorage
from tests.support.limits import SetLimits

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("text", pa.string())])
AVRO = '{"type":"record","name":"r","fields":[{"name":"id","type":"long"}]}'
FILE = "f.parquet"


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path)


def rows(start: int, stop: int) -> pa.RecordBatch:
    texts = [f"{number:>100}" for number in range(start, stop)]
    return pa.record_batch([list(range(start, stop)), texts], schema=SCHEMA)


def write(storage: LocalStorage, groups: RowGroups, *batches: pa.RecordBatch) -> list[int]:
    """Write a file; return the numbers of rows in its row groups."""
    sink = ParquetSink(
        storage, FILE, SCHEMA, table_avro_schema=AVRO, compression="snappy", bloom=False, row_groups=groups
    )
    for batch in batches:
        sink.write(batch)
    sink.close()
    with storage.open(FILE) as file:
        footer = pq.read_metadata(file)
    return [footer.row_group(at).num_rows for at in range(footer.num_row_groups)]


def read(storage: LocalStorage, columns: list[str] | None = None) -> list[pa.RecordBatch]:
    return list(read_parquet(storage, FILE, ParquetQuery(columns)))


def ids(batches: list[pa.RecordBatch]) -> list[int]:
    return [number for batch in batches for number in batch.column("id").to_pylist()]


def test_row_groups_are_cut_at_their_size_whatever_the_batches(storage: LocalStorage) -> None:
    found = write(storage, RowGroups(10), rows(0, 7), rows(7, 30), rows(30, 31))
    assert found == [10, 10, 10, 1]
    assert ids(read(storage)) == list(range(31))


def test_row_groups_of_wide_rows_have_fewer_of_about_the_same_number(storage: LocalStorage) -> None:
    row_bytes = rows(0, 100).nbytes // 100
    found = write(storage, RowGroups(1000, 20 * row_bytes), rows(0, 37), rows(37, 90))
    assert len(found) == 5
    assert all(18 <= count <= 22 for count in found[:-1])
    assert ids(read(storage)) == list(range(90))


def test_a_batch_of_wide_rows_has_fewer(storage: LocalStorage, limit: SetLimits) -> None:
    write(storage, RowGroups(), rows(0, 3000))
    with storage.open(FILE) as file:
        row_bytes = pq.read_metadata(file).row_group(0).total_byte_size / 3000
    limit(batch_bytes=int(500 * row_bytes))
    whole = read(storage)
    assert all(450 <= batch.num_rows <= 500 for batch in whole[:-1])
    assert ids(whole) == list(range(3000))
    some = read(storage, ["id"])
    assert len(some) < len(whole), "only the columns that are read count"
    assert ids(some) == list(range(3000))
