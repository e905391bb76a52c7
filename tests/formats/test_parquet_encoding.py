"""Dictionaries go to columns whose values come again, the codec to those that it shortens: a sample tells."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import drawstring
from drawstring.formats.parquet import ParquetSink, SharedEncodings, encode_parquet_block
from drawstring.formats.parquet.reader import read_parquet_bytes
from drawstring.formats.parquet.writer import SHARED_ROWS_MAX
from drawstring.storage.memory import MemoryStorage

AVRO = '{"type":"record","name":"t_record","fields":[]}'
ROWS = 60_000
NUMBERS = np.random.default_rng(7).permutation(ROWS)


def has_dictionary(columns: dict[str, pa.Array], rows_in_a_batch: int = ROWS) -> dict[str, bool]:
    return {
        chunk.path_in_schema: chunk.has_dictionary_page for chunk in column_chunks(columns, rows_in_a_batch)
    }


def column_chunks(
    columns: dict[str, pa.Array], rows_in_a_batch: int = ROWS
) -> Iterator[pq.ColumnChunkMetaData]:
    table = pa.table(columns)
    storage = MemoryStorage("memory://encoding")
    sink = ParquetSink(storage, "f", table.schema, table_avro_schema=AVRO, compression="zstd", bloom=False)
    for batch in table.to_batches(rows_in_a_batch):
        sink.write(batch)
    sink.close()
    with storage.open("f") as file:
        group = pq.read_metadata(file).row_group(0)
    return (group.column(number) for number in range(group.num_columns))


@pytest.mark.parametrize("rows_in_a_batch", [ROWS, 1_000])
def test_only_columns_that_repeat_get_a_dictionary(rows_in_a_batch: int) -> None:
    found = has_dictionary(
        {
            "_hoodie_commit_time": pa.repeat("20240101000000000", ROWS),
            "_hoodie_record_key": pa.repeat("never looked at", ROWS),
            "unique_text": pa.array([f"text {number}" for number in NUMBERS]),
            "unique_double": pa.array(NUMBERS / 7),
            "in_runs": pa.array(np.arange(ROWS) // 10),
            "shuffled": pa.array(NUMBERS % 6_000),
            "mostly_unique": pa.array(NUMBERS % 50_000),
            "few": pa.array([f"city {number % 8}" for number in NUMBERS]),
            "nested": pa.array([{"inner": "x"}] * ROWS),
        },
        rows_in_a_batch,
    )
    assert found == {
        "_hoodie_commit_time": True,
        "_hoodie_record_key": False,
        "unique_text": False,
        "unique_double": False,
        "in_runs": True,
        "shuffled": True,
        "mostly_unique": False,
        "few": True,
        "nested.inner": True,
    }


def test_a_column_of_one_value_gets_a_dictionary_in_the_smallest_file() -> None:
    assert has_dictionary({"one": pa.array(["a"]), "null": pa.nulls(1, pa.string())}) == {
        "one": True,
        "null": True,
    }


def test_columns_of_floats_have_no_limits_that_nan_would_be_outside_of() -> None:
    numbers = [1.0, float("nan"), 2.0]
    columns = {
        "fare": pa.array(numbers),
        "ts": pa.array([1, 2, 3]),
        "driver": pa.array([{"name": "a", "score": number} for number in numbers]),
    }
    limited = {chunk.path_in_schema: chunk.is_stats_set for chunk in column_chunks(columns)}
    assert limited == {"fare": False, "ts": True, "driver.name": True, "driver.score": False}


def test_a_column_that_the_codec_hardly_shortens_is_stored_as_it_is() -> None:
    random = np.random.default_rng(7)
    chunks = column_chunks(
        {
            "_hoodie_commit_time": pa.repeat("20240101000000000", ROWS),
            "_hoodie_record_key": pa.array([f"key-{number:09}" for number in range(ROWS)]),
            "noise": pa.array(random.uniform(-90, 90, ROWS)),
            "noise_or_null": pa.array(random.uniform(-90, 90, ROWS), mask=random.random(ROWS) < 0.5),
            "coins": pa.array(random.random(ROWS) < 0.5),
            "seldom": pa.array(np.arange(ROWS) % 1_000 == 0),
            "counting": pa.array(np.arange(ROWS)),
            "few": pa.array([f"city {number % 8}" for number in range(ROWS)]),
            "alike_so_far": pa.repeat("rome", ROWS),
            "null_so_far": pa.nulls(ROWS, pa.string()),
        }
    )
    assert {chunk.path_in_schema: chunk.compression for chunk in chunks} == {
        "_hoodie_commit_time": "UNCOMPRESSED",
        "_hoodie_record_key": "ZSTD",
        "noise": "UNCOMPRESSED",
        "noise_or_null": "UNCOMPRESSED",
        "coins": "UNCOMPRESSED",
        "seldom": "ZSTD",
        "counting": "ZSTD",
        "few": "ZSTD",
        "alike_so_far": "ZSTD",
        "null_so_far": "ZSTD",
    }


def test_floats_that_the_codec_hardly_shortens_are_stored_as_they_are_in_small_files() -> None:
    rows = 400
    found = column_chunks(
        {
            "random": pa.array(np.random.default_rng(7).random(rows)),
            "ascending": pa.array(np.arange(rows, dtype="float64")),
            "texts": pa.array([f"the text {number}" for number in range(rows)]),
        },
        rows,
    )
    assert {chunk.path_in_schema: chunk.compression for chunk in found} == {
        "random": "UNCOMPRESSED",
        "ascending": "ZSTD",
        "texts": "ZSTD",
    }


def test_only_large_columns_of_a_log_block_of_few_rows_are_compressed() -> None:
    schema = pa.schema(
        [*(pa.field(f"n{number}", pa.int64()) for number in range(100)), ("text", pa.string())]
    )
    batch = pa.record_batch([*([pa.array(range(40))] * 100), pa.array(["abc" * 100] * 40)], schema=schema)
    content = encode_parquet_block([batch], schema, AVRO, "zstd")
    chunks = pq.read_metadata(pa.BufferReader(content)).row_group(0).to_dict()["columns"]
    compressed = [chunk["path_in_schema"] for chunk in chunks if chunk["compression"] == "ZSTD"]
    assert compressed == ["text"]
    assert pa.Table.from_batches(read_parquet_bytes(content)).equals(pa.Table.from_batches([batch]))


def test_files_of_about_the_same_size_share_a_choice_unless_they_are_large() -> None:
    shared = SharedEncodings()
    repeats, differs = (
        pa.repeat("a", 2 * SHARED_ROWS_MAX),
        pa.array(range(2 * SHARED_ROWS_MAX)).cast("string"),
    )

    def chosen(values: pa.Array, rows: int, codec: str = "zstd") -> tuple[bool, str]:
        encodings = shared.of(pa.table({"c": values.slice(0, rows)}), codec)
        return "c" in encodings.dictionaries, encodings.codecs["c"]

    assert chosen(repeats, 1_000) == (True, "zstd")
    assert chosen(differs, 900) == (True, "zstd")
    assert chosen(differs, 900, "snappy") == (False, "snappy")
    assert chosen(differs, 9_000) == (False, "zstd")
    assert chosen(repeats, SHARED_ROWS_MAX + 1) == (True, "zstd")
    assert chosen(differs, SHARED_ROWS_MAX + 1) == (False, "zstd")


def test_a_choice_is_made_anew_after_some_files() -> None:
    shared = SharedEncodings(files_max=2)
    repeats, differs = pa.repeat("a", 100), pa.array(range(100)).cast("string")

    def has_dictionary(values: pa.Array) -> bool:
        return "c" in shared.of(pa.table({"c": values}), "zstd").dictionaries

    chosen = [has_dictionary(values) for values in (repeats, differs, differs, repeats, repeats)]
    assert chosen == [True, True, False, False, True]


def test_log_files_of_later_writes_take_the_encodings_of_the_first(tmp_path: Path) -> None:
    table = drawstring.create(
        str(tmp_path / "t"),
        pa.schema([("id", pa.string()), ("ts", pa.int64()), ("text", pa.string())]),
        name="t",
        table_type="MERGE_ON_READ",
        record_key=["id"],
        ordering=["ts"],
        version=10,
        properties={"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"},
    )

    def write(ts: int, texts: list[str]) -> None:
        ids = [f"id-{number}" for number in range(len(texts))]
        rows = {"id": ids, "ts": [ts] * len(texts), "text": texts}
        table.upsert(pa.table(rows), options={"hoodie.compact.inline": "false"})

    for ts, texts in enumerate((["load"] * 100, ["repeats"] * 100, [f"differs-{at}" for at in range(100)])):
        write(ts, texts)
    chunks = [
        pq.read_metadata(path).row_group(0).to_dict()["columns"][-1]
        for path in sorted((tmp_path / "t").glob("*.log.parquet"))
    ]
    assert [chunk["has_dictionary_page"] for chunk in chunks] == [True, True]
    texts = table.scan(columns=["text"]).to_arrow()["text"].to_pylist()
    assert sorted(texts) == sorted(f"differs-{at}" for at in range(100))
