"""Parquet files put together without decoding: readers find all rows, and the new file's name in them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from drawstring.base.errors import CorruptTableError
from drawstring.formats.bloom import BloomFilter
from drawstring.formats.bloom_footer import FILTER, FILTER_TYPE, LARGEST_KEY, SMALLEST_KEY
from drawstring.formats.parquet import parquet_footer
from drawstring.formats.parquet.footer import ChunkSource, chunk_source, decode_struct, encode_struct
from drawstring.formats.parquet.row_group_copy import can_concat, concat_files
from drawstring.schema.fields import FILE_NAME
from drawstring.storage import open_storage
from drawstring.storage.protocol import Storage
from tests.support.tables import new_address

ENTRIES = {"parquet.avro.schema": "{}", "writer.model.name": "avro"}


def rows_of(start: int, count: int) -> pa.Table:
    numbers = list(range(start, start + count))
    return pa.table(
        {
            "_hoodie_record_key": [f"k{each:05}" for each in numbers],
            FILE_NAME: [f"old-{start}"] * count,
            "name": pa.array([None if each % 5 == 0 else f"n{each % 7}" for each in numbers]),
            "fare": [each / 3 for each in numbers],
            "stops": pa.array([[each, each + 1][: each % 3] for each in numbers], pa.list_(pa.int64())),
            "driver": pa.array([{"age": each, "who": str(each)} for each in numbers]),
        }
    )


def put(storage: Storage, path: str, rows: pa.Table, **how: Any) -> None:
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, rows.schema, store_schema=False, **{"compression": "zstd", **how}) as writer:
        writer.write_table(rows, row_group_size=40)
        writer.add_key_value_metadata(ENTRIES)
    storage.put(path, sink.getvalue().to_pybytes())


def memory() -> Storage:
    return open_storage(new_address())


def sources_of(storage: Storage, *paths: str) -> list[ChunkSource]:
    found = [chunk_source(storage, path) for path in paths]
    assert all(found)
    return [each for each in found if each]


def read(storage: Storage, path: str) -> pa.Table:
    return pq.read_table(pa.BufferReader(storage.read(path)))


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"compression": "snappy", "write_page_index": True, "use_dictionary": False},
        {"compression": "none", "data_page_version": "2.0"},
        {"compression": "gzip", "data_page_size": 64},
    ],
    ids=["zstd", "page index", "data pages v2", "many pages"],
)
def test_all_rows_are_in_the_new_file_under_its_name(how: dict[str, Any]) -> None:
    storage = memory()
    put(storage, "a.parquet", rows_of(0, 100), **how)
    put(storage, "b.parquet", rows_of(100, 7), **how)
    put(storage, "c.parquet", rows_of(200, 81), compression="brotli")
    sources = sources_of(storage, "a.parquet", "b.parquet", "c.parquet")
    assert can_concat(sources)
    size = concat_files(storage, sources, "new.parquet", "new.parquet", bloom=BloomFilter.DEFAULT_RATE)
    assert size == len(storage.read("new.parquet"))
    expected = pa.concat_tables([rows_of(0, 100), rows_of(100, 7), rows_of(200, 81)])
    found = read(storage, "new.parquet")
    assert set(found.column(FILE_NAME).to_pylist()) == {"new.parquet"}
    assert found.drop_columns([FILE_NAME]).equals(expected.drop_columns([FILE_NAME]))
    metadata = pq.read_metadata(pa.BufferReader(storage.read("new.parquet")))
    assert (metadata.num_rows, metadata.num_row_groups) == (188, 3 + 1 + 3)
    assert metadata.row_group(6).column(3).statistics.max == 280 / 3
    footer = parquet_footer(storage, "new.parquet")
    assert {key: footer[key] for key in ENTRIES} == ENTRIES
    assert (footer[SMALLEST_KEY], footer[LARGEST_KEY]) == ("k00000", "k00280")
    bloom = BloomFilter.decode(footer[FILTER], footer[FILTER_TYPE])
    assert bloom.contains(expected.column(0).combine_chunks()).all()


def test_a_new_file_can_be_put_together_with_others_again() -> None:
    storage = memory()
    for number in range(3):
        put(storage, f"{number}.parquet", rows_of(10 * number, 10))
    concat_files(
        storage,
        sources_of(storage, "0.parquet", "1.parquet"),
        "x.parquet",
        "x",
        bloom=BloomFilter.DEFAULT_RATE,
    )
    concat_files(storage, sources_of(storage, "x.parquet", "2.parquet"), "y.parquet", "y", bloom=False)
    found = read(storage, "y.parquet")
    assert found.column(0).to_pylist() == [f"k{each:05}" for each in range(30)]
    assert set(found.column(FILE_NAME).to_pylist()) == {"y"}
    assert FILTER not in parquet_footer(storage, "y.parquet")


def test_the_column_of_names_stays_where_tables_have_none() -> None:
    storage = memory()
    nothing = pa.nulls(4, pa.string())
    put(storage, "a.parquet", rows_of(0, 4).set_column(1, FILE_NAME, nothing))
    concat_files(storage, sources_of(storage, "a.parquet"), "b.parquet", None, bloom=False)
    assert read(storage, "b.parquet").column(FILE_NAME).null_count == 4


def test_files_of_different_schemas_are_not_put_together() -> None:
    storage = memory()
    put(storage, "a.parquet", rows_of(0, 4))
    put(storage, "b.parquet", rows_of(4, 4).append_column("more", pa.array([1, 2, 3, 4])))
    assert not can_concat(sources_of(storage, "a.parquet", "b.parquet"))


@pytest.mark.parametrize("cut", [0, 3, 7, 8, 9, 40])
def test_a_file_that_ends_too_early_is_called_damaged(cut: int) -> None:
    storage = memory()
    put(storage, "a.parquet", rows_of(0, 10))
    data = storage.read("a.parquet")
    storage.put("b.parquet", data[:cut] if cut < 10 else data[:-cut])
    with pytest.raises(CorruptTableError):
        chunk_source(storage, "b.parquet")


def test_a_damaged_footer_is_told_or_read_but_never_a_crash() -> None:
    storage = memory()
    put(storage, "a.parquet", rows_of(0, 10))
    data = bytearray(storage.read("a.parquet"))
    length = int.from_bytes(data[-8:-4], "little")
    for at in range(len(data) - 8 - length, len(data) - 8, 7):
        broken = bytes(data[:at]) + bytes([data[at] ^ 0xA5]) + bytes(data[at + 1 :])
        storage.put("b.parquet", broken)
        try:
            source = chunk_source(storage, "b.parquet")
            if source is not None:
                concat_files(storage, [source], "c.parquet", "c", bloom=False)
        except CorruptTableError:
            continue


def test_a_footer_is_written_as_it_was_read() -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(rows_of(0, 100), sink, row_group_size=3, write_page_index=True)
    data = sink.getvalue().to_pybytes()
    footer = data[-8 - int.from_bytes(data[-8:-4], "little") : -8]
    assert encode_struct(decode_struct(footer)) == footer
