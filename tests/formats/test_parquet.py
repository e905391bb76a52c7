"""Base files: what is written is read back, bounded, pruned and typed for other readers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from drawstring.base.errors import CorruptTableError, InternalError, InvalidError
from drawstring.formats.bloom import BloomFilter
from drawstring.formats.filter import where_columns
from drawstring.formats.parquet import (
    ParquetQuery,
    ParquetSink,
    RowGroups,
    encode_parquet_block,
    parquet_footer,
    parquet_schema,
    read_parquet,
    read_parquet_bytes,
)
from drawstring.storage.local import LocalStorage

META = [
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
]
SCHEMA = pa.schema(
    [
        *(pa.field(name, pa.string()) for name in META),
        pa.field("id", pa.int64(), nullable=False),
        pa.field("name", pa.string()),
        pa.field("price", pa.decimal128(10, 2)),
        pa.field("at", pa.timestamp("us", "UTC")),
        pa.field("local", pa.timestamp("us")),
        pa.field("day", pa.date32()),
        pa.field("tags", pa.list_(pa.string())),
        pa.field("props", pa.map_(pa.string(), pa.int64())),
        pa.field("place", pa.struct([("lat", pa.float64()), ("hops", pa.list_(pa.int32()))])),
    ]
)
AVRO = '{"type":"record","name":"t_record","fields":[{"name":"id","type":"long"}]}'
START = datetime(2024, 1, 31, 10, tzinfo=UTC)


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path)


def row(number: int, instant: str = "20240131100000000") -> dict[str, Any]:
    moment = START + timedelta(seconds=number)
    return dict(
        zip(META, [instant, f"{instant}_0_{number}", f"key-{number}", "p1", "f.parquet"], strict=True)
    ) | {
        "id": number,
        "name": None if number % 5 == 0 else f"name {number}",
        "price": Decimal(number) / 4,
        "at": moment,
        "local": moment.replace(tzinfo=None),
        "day": date(2024, 1, 1) + timedelta(days=number % 300),
        "tags": [None, "a", str(number)] if number % 3 else [],
        "props": [("n", number)] if number % 4 else None,
        "place": {"lat": number / 2, "hops": [number, None]} if number % 6 else None,
    }


def rows(start: int, stop: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([row(number) for number in range(start, stop)], SCHEMA)


def write(storage: LocalStorage, *batches: pa.RecordBatch, **options: Any) -> int:
    settings = {"table_avro_schema": AVRO, "compression": "snappy", "bloom": 1e-9} | options
    sink = ParquetSink(storage, "p1/f.parquet", SCHEMA, **settings)
    for batch in batches:
        sink.write(batch)
    return sink.close()


def read(storage: LocalStorage, **options: Any) -> list[pa.RecordBatch]:
    return list(read_parquet(storage, "p1/f.parquet", ParquetQuery(**options)))


def ids(batches: list[pa.RecordBatch]) -> list[int]:
    return [number for batch in batches for number in batch.column("id").to_pylist()]


def test_rows_of_all_types_come_back_as_written(storage: LocalStorage) -> None:
    size_bytes = write(storage, rows(0, 40), rows(40, 45))
    assert storage.list_files("p1")[0].size_bytes == size_bytes
    assert pa.Table.from_batches(read(storage)).equals(pa.Table.from_batches([rows(0, 45)]))
    assert parquet_schema(storage, "p1/f.parquet").equals(SCHEMA)


@pytest.mark.parametrize("codec", ["snappy", "gzip", "zstd", "lz4_raw", "uncompressed"])
def test_every_codec_is_written_under_its_own_name(storage: LocalStorage, codec: str) -> None:
    write(storage, rows(0, 10), compression=codec)
    with storage.open("p1/f.parquet") as file:
        group = pq.read_metadata(file).row_group(0)
    chunks = {group.column(at).path_in_schema: group.column(at) for at in range(group.num_columns)}
    assert chunks["_hoodie_record_key"].compression.lower() == {"lz4_raw": "lz4"}.get(codec, codec)
    assert ids(read(storage)) == list(range(10))


def test_parquet_types_are_those_that_other_readers_look_for(storage: LocalStorage) -> None:
    write(storage, rows(0, 10))
    with storage.open("p1/f.parquet") as file:
        metadata = pq.read_metadata(file)
    columns = {
        metadata.schema.column(at).path: metadata.schema.column(at) for at in range(len(metadata.schema))
    }
    logical = {path: json.loads(column.logical_type.to_json()) for path, column in columns.items()}
    assert columns["price"].physical_type == "FIXED_LEN_BYTE_ARRAY"
    assert columns["price"].length == 5
    assert (logical["at"]["timeUnit"], logical["at"]["isAdjustedToUTC"]) == ("microseconds", True)
    assert (logical["local"]["timeUnit"], logical["local"]["isAdjustedToUTC"]) == ("microseconds", False)
    assert (columns["day"].physical_type, logical["day"]["Type"]) == ("INT32", "Date")
    assert all(logical[name]["Type"] == "String" for name in [*META, "name", "tags.list.element"])
    assert {"props.key_value.key", "place.hops.list.element"} <= columns.keys()
    assert b"ARROW:schema" not in metadata.metadata


def test_footer_tells_schema_keys_and_bloom_filter(storage: LocalStorage) -> None:
    write(storage, rows(0, 12))
    footer = parquet_footer(storage, "p1/f.parquet")
    names = [field["name"] for field in json.loads(footer["parquet.avro.schema"])["fields"]]
    bloom = BloomFilter.decode(footer["org.apache.hudi.bloomfilter"], footer["hoodie_bloom_filter_type_code"])
    assert names == [*META, "id"]
    assert footer["writer.model.name"] == "avro"
    assert (footer["hoodie_min_record_key"], footer["hoodie_max_record_key"]) == ("key-0", "key-9")
    assert bloom.contains(rows(0, 12).column("_hoodie_record_key")).all()
    assert not bloom.contains(rows(12, 1000).column("_hoodie_record_key")).any()


def test_avro_schema_that_has_the_meta_columns_stays_as_given(storage: LocalStorage) -> None:
    fields = [{"name": name, "type": ["null", "string"]} for name in META]
    given = json.dumps({"type": "record", "name": "r", "fields": fields}, indent=1)
    write(storage, rows(0, 1), table_avro_schema=given)
    assert parquet_footer(storage, "p1/f.parquet")["parquet.avro.schema"] == given


def test_without_bloom_filter_the_footer_has_the_schema_only(storage: LocalStorage) -> None:
    write(storage, rows(0, 3), bloom=False)
    assert parquet_footer(storage, "p1/f.parquet").keys() == {"parquet.avro.schema", "writer.model.name"}


def test_many_keys_get_the_filter_of_the_default_size(storage: LocalStorage) -> None:
    schema = pa.schema([pa.field("_hoodie_record_key", pa.string())])
    keys = pa.array([f"k{number}" for number in range(70_000)])
    sink = ParquetSink(storage, "k.parquet", schema, table_avro_schema=AVRO, compression="snappy", bloom=1e-9)
    for start in range(0, len(keys), 9_000):
        sink.write(pa.record_batch([keys[start : start + 9_000]], schema=schema))
    sink.close()
    assert (
        parquet_footer(storage, "k.parquet")["org.apache.hudi.bloomfilter"]
        == BloomFilter.build(keys).encode()
    )


def test_file_without_rows_is_whole(storage: LocalStorage) -> None:
    write(storage)
    assert read(storage) == []
    assert parquet_schema(storage, "p1/f.parquet").equals(SCHEMA)
    assert "hoodie_min_record_key" not in parquet_footer(storage, "p1/f.parquet")


def test_repeating_meta_columns_come_plain_or_dictionary_encoded(storage: LocalStorage) -> None:
    old, new = rows(0, 10), rows(10, 20)
    constant = pa.DictionaryArray.from_arrays(pa.array([0] * 10, pa.int8()), ["20250101000000000"])
    write(storage, old, new.set_column(0, META[0], constant).select(SCHEMA.names[::-1]))
    times = [time for batch in read(storage) for time in batch.column(META[0]).to_pylist()]
    assert times == ["20240131100000000"] * 10 + ["20250101000000000"] * 10


def test_size_so_far_grows_to_the_size_in_the_end(storage: LocalStorage) -> None:
    sink = ParquetSink(
        storage,
        "p1/f.parquet",
        SCHEMA,
        table_avro_schema=AVRO,
        compression="snappy",
        bloom=False,
        row_groups=RowGroups(1000),
    )
    seen = []
    for start in range(0, 3500, 500):
        sink.write(rows(start, start + 500))
        seen.append(sink.bytes_written)
    size_bytes = sink.close()
    assert seen == sorted(seen)
    assert 0.5 * size_bytes < seen[-1] < 1.5 * size_bytes


def test_aborted_file_is_gone(storage: LocalStorage) -> None:
    sink = ParquetSink(
        storage, "p1/f.parquet", SCHEMA, table_avro_schema=AVRO, compression="zstd", bloom=1e-9
    )
    sink.write(rows(0, 10))
    sink.abort()
    assert not storage.exists("p1/f.parquet")


def test_null_in_a_required_column_is_the_users_mistake(storage: LocalStorage) -> None:
    broken = rows(0, 2).set_column(5, pa.field("id", pa.int64()), pa.array([1, None], pa.int64()))
    with pytest.raises(InvalidError, match="id"):
        write(storage, broken)


def test_batch_without_a_column_of_the_file_is_refused(storage: LocalStorage) -> None:
    with pytest.raises(InternalError, match="lacks column id"):
        write(storage, rows(0, 2).drop_columns(["id"]))


def test_unknown_codec_is_refused(storage: LocalStorage) -> None:
    with pytest.raises(InvalidError, match="bzip9"):
        write(storage, compression="bzip9")


def test_columns_come_in_the_order_asked_for_without_those_that_lack(storage: LocalStorage) -> None:
    write(storage, rows(0, 20))
    batches = read(storage, columns=["place", "later", "id"], batch_rows=8)
    assert [batch.schema.names for batch in batches] == [["place", "id"]] * 3
    assert [batch.num_rows for batch in batches] == [8, 8, 4]
    assert batches[0].column("place").equals(rows(0, 8).column("place"))
    assert all(batch.schema.metadata is None for batch in batches)


def test_no_columns_still_count_rows(storage: LocalStorage) -> None:
    write(storage, rows(0, 20))
    assert sum(batch.num_rows for batch in read(storage, columns=[])) == 20
    assert sum(batch.num_rows for batch in read(storage, columns=[], where=pc.field("id") < 7)) == 7


def test_condition_keeps_matching_rows_and_its_own_columns_stay_out(storage: LocalStorage) -> None:
    write(storage, rows(0, 50), row_groups=RowGroups(10))
    where = (pc.field("id") >= 17) & (pc.field("place", "lat") < 12)
    batches = read(storage, columns=["name"], where=where)
    assert {name for batch in batches for name in batch.schema.names} == {"name"}
    assert sum(batch.num_rows for batch in batches) == len([n for n in range(17, 24) if n % 6])


def test_row_groups_that_cannot_match_are_not_read(storage: LocalStorage) -> None:
    write(storage, rows(0, 50), row_groups=RowGroups(10), compression="uncompressed", bloom=False)
    with storage.open("p1/f.parquet") as file:
        start = pq.read_metadata(file).row_group(3).column(5).data_page_offset
    data = bytearray(storage.read("p1/f.parquet"))
    data[start : start + 40] = b"\xff" * 40
    storage.put("p1/f.parquet", bytes(data))
    assert ids(read(storage, columns=["id"], where=pc.field("id") < 30)) == list(range(30))
    with pytest.raises(CorruptTableError, match=r"damaged.*p1/f\.parquet"):
        read(storage, columns=["id"])


def test_a_condition_that_fails_on_a_row_is_the_users_mistake(storage: LocalStorage) -> None:
    write(storage, rows(0, 10))
    for where in (
        pc.divide(pc.scalar(5), pc.field("id")) > 1,
        pc.field("name").cast(pa.int64()) == 1,
        pc.field("id").cast(pa.int8(), safe=True) + 2**62 + 2**62 > 0,
    ):
        with pytest.raises(InvalidError, match="fails on a row"):
            read(storage, where=where)


@pytest.mark.parametrize(
    ("where", "count"),
    [
        (pc.field("later").is_null(), 10),
        (pc.field("later") > 5, 0),
        ((pc.field("later") == "x") | (pc.field("id") == 3), 1),
        (~pc.field("later").is_valid() & pc.field("id").isin([1, 2, 99]), 2),
    ],
    ids=str,
)
def test_column_that_the_file_lacks_is_null_in_a_condition(
    storage: LocalStorage, where: pc.Expression, count: int
) -> None:
    write(storage, rows(0, 10))
    assert len(ids(read(storage, columns=["id"], where=where))) == count


def test_condition_sees_the_tables_types(storage: LocalStorage) -> None:
    write(storage, rows(0, 10))
    types = pa.schema([pa.field("id", pa.string()), pa.field("later", pa.string())])
    assert ids(read(storage, where=pc.field("id") == "7", types=types)) == [7]
    assert ids(read(storage, where=pc.starts_with(pc.field("later"), "x"), types=types)) == []


def test_condition_that_does_not_fit_is_the_users_mistake(storage: LocalStorage) -> None:
    write(storage, rows(0, 10))
    for where in (pc.field("id") == "x", pc.field("place", "nowhere") == 1):
        with pytest.raises(InvalidError, match="does not fit"):
            read(storage, where=where)


def test_columns_of_a_condition_are_found() -> None:
    where = (pc.field("id") > 5) & (pc.field("place", "lat") > 1) | pc.field("later").is_null()
    assert sorted(where_columns(where, SCHEMA)) == ["id", "later", "place"]


def test_missing_file_is_named(storage: LocalStorage) -> None:
    for call in (parquet_schema, parquet_footer, lambda *at: list(read_parquet(*at))):
        with pytest.raises(CorruptTableError, match=r"missing.*p1/none\.parquet"):
            call(storage, "p1/none.parquet")


@pytest.mark.parametrize("cut", [0, 3, 200, -1])
def test_cut_file_is_called_damaged(storage: LocalStorage, cut: int) -> None:
    write(storage, rows(0, 10))
    storage.put("p1/f.parquet", storage.read("p1/f.parquet")[:cut])
    with pytest.raises(CorruptTableError, match=r"damaged.*p1/f\.parquet"):
        read(storage)


def test_reader_that_stops_early_lets_go_of_the_file(storage: LocalStorage) -> None:
    write(storage, rows(0, 50), row_groups=RowGroups(10))
    stream: Iterator[pa.RecordBatch] = iter(read_parquet(storage, "p1/f.parquet"))
    assert next(stream).num_rows > 0
    stream.close()  # type: ignore[attr-defined]


def test_memory_does_not_grow_with_the_file(storage: LocalStorage) -> None:
    schema = pa.schema([pa.field("id", pa.int64()), pa.field("text", pa.string())])
    sink = ParquetSink(
        storage,
        "big",
        schema,
        table_avro_schema=AVRO,
        compression="zstd",
        bloom=False,
        row_groups=RowGroups(20_000),
    )
    texts = pa.array([f"{number:0200d}" for number in range(20_000)])
    for start in range(0, 400_000, 20_000):
        sink.write(pa.record_batch([pa.array(range(start, start + 20_000)), texts], schema=schema))
    sink.close()
    before = pa.total_allocated_bytes()
    rows = read_parquet(storage, "big", ParquetQuery(batch_rows=5_000))
    highest = max(pa.total_allocated_bytes() - before for _ in rows)
    assert highest < 48 << 20  # the whole is 83 MB


def test_block_in_memory_comes_back_by_column_and_condition() -> None:
    content = encode_parquet_block([rows(0, 10), rows(10, 15)], SCHEMA, AVRO, "gzip")
    assert ids(list(read_parquet_bytes(content))) == list(range(15))
    batches = list(
        read_parquet_bytes(pa.py_buffer(content), ParquetQuery(["id"], pc.field("name").is_null()))
    )
    assert ids(batches) == [0, 5, 10]


@pytest.mark.parametrize(("count", "codecs"), [(3, {"UNCOMPRESSED"}), (500, {"UNCOMPRESSED", "ZSTD"})])
def test_a_log_block_of_few_rows_is_stored_as_it_is(count: int, codecs: set[str]) -> None:
    content = encode_parquet_block([rows(0, count)], SCHEMA, AVRO, "zstd")
    chunks = pq.read_metadata(pa.BufferReader(content)).row_group(0).to_dict()["columns"]
    assert {chunk["compression"] for chunk in chunks} == codecs


def test_an_unknown_codec_is_refused_for_the_smallest_log_block() -> None:
    with pytest.raises(InvalidError, match="codec 'nonsense'"):
        encode_parquet_block([rows(0, 1)], SCHEMA, AVRO, "nonsense")


def test_two_level_lists_of_older_writers_are_read(storage: LocalStorage) -> None:
    table = pa.table({"tags": pa.array([["a"], [], None, ["b", "c"]])})
    with storage.create("p1/f.parquet") as file:
        pq.write_table(table, file, use_compliant_nested_type=False)
    assert pa.Table.from_batches(read(storage)).column("tags").to_pylist() == table.column("tags").to_pylist()


def test_int96_timestamps_of_older_writers_are_micros(storage: LocalStorage) -> None:
    table = pa.table({"at": pa.array([START.replace(tzinfo=None)], pa.timestamp("us"))})
    with storage.create("p1/f.parquet") as file:
        pq.write_table(table, file, use_deprecated_int96_timestamps=True, store_schema=False)
    assert read(storage)[0].schema.field("at").type == pa.timestamp("us")


def test_a_row_group_of_the_whole_file_is_read_piece_by_piece(tmp_path: Path) -> None:
    """What Arrow holds while rows stream must not grow with the row group."""
    rng = np.random.default_rng(5)
    rows = pa.table({f"c{at}": rng.integers(0, 1 << 62, 2_000_000) for at in range(6)})
    pq.write_table(rows, tmp_path / "a.parquet", row_group_size=len(rows), use_dictionary=False)
    before = pa.total_allocated_bytes()
    most = count = 0
    for batch in read_parquet(LocalStorage(tmp_path), "a.parquet"):
        count += batch.num_rows
        most = max(most, pa.total_allocated_bytes() - before)
    assert count == len(rows)
    assert rows.nbytes > 90 << 20
    assert most < 60 << 20
