"""Native log files, byte for byte: their names, their order, their footers, and those of other writers."""

from __future__ import annotations

import io
import json
import random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from drawstring.base.errors import CorruptTableError, UnsupportedError
from drawstring.filegroups.columnar_view import DataFiles
from drawstring.formats.filter import LogRowSelection
from drawstring.formats.hfile import encode_hfile
from drawstring.formats.log_files import block_deletes, block_rows, log_blocks
from drawstring.formats.log_inline import BlockType, HeaderKey
from drawstring.formats.log_native import deletes_schema, encode_footer
from drawstring.model.files import BaseFile, FileStatus, LogFile, NativeLog, is_base_path

ID = "136281f3-c24e-423b-a65a-95dbfbddce1d"
AVRO = '{"type":"record","name":"r","fields":[{"name":"_hoodie_record_key","type":"string"}]}'
INSTANT = "20250409161256974"
UPSTREAM = "hudi.log.format."
V = pa.schema([("v", pa.int64())])


def named(name: str) -> LogFile:
    log = LogFile.parse(FileStatus(f"p/{name}", 1))
    assert log is not None
    return log


def parquet(entries: dict[str, str], rows: pa.Table | None = None, **options: Any) -> bytes:
    """Return a Parquet file as another writer makes it."""
    table = pa.table({"_hoodie_record_key": ["a", "b"], "v": [1, 2]}) if rows is None else rows
    target = io.BytesIO()
    with pq.ParquetWriter(target, table.schema, store_schema=False) as writer:
        writer.write_table(table, **options)
        writer.add_key_value_metadata(entries)
    return target.getvalue()


def read(data: bytes, name: str) -> Any:
    (block,) = log_blocks(pa.BufferReader(data), named(name))
    return block


@pytest.mark.parametrize(
    ("name", "kind", "version"),
    [
        (f"{ID}_1-0-1_{INSTANT}_2.log.parquet", NativeLog.DATA, 2),
        (f"{ID}_1-0-1_{INSTANT}_10.deletes.parquet", NativeLog.DELETES, 10),
        (f"{ID}_1-0-1_{INSTANT}_1.cdc.parquet", NativeLog.CDC, 1),
        (f"files-0000-0_0-0-0_{INSTANT}_1.log.hfile", NativeLog.DATA, 1),
    ],
)
def test_names_are_those_of_apache_hudi(name: str, kind: NativeLog, version: int) -> None:
    log = named(name)

    assert (log.instant, log.version, log.native) == (INSTANT, version, kind)
    assert log.is_cdc == (kind is NativeLog.CDC)
    assert BaseFile.parse(log.status) is None
    assert not is_base_path(log.status.path)
    if name.endswith(".parquet"):
        assert LogFile.native_name_of(ID, INSTANT, version, "1-0-1", kind) == name


@pytest.mark.parametrize(
    "name",
    [
        f"{ID}_1-0-1_{INSTANT}.parquet",
        f"{ID}_1-0-1_{INSTANT}_1.txt.parquet",
        f"{ID}_token_{INSTANT}_1.log.parquet",
        f"{ID}_1-0-1_{INSTANT}_1.log",
        f".{ID}_1-0-1_{INSTANT}_1.log.parquet.crc",
    ],
)
def test_other_names_are_not_those_of_native_log_files(name: str) -> None:
    log = LogFile.parse(FileStatus(name, 1))
    assert log is None or log.native is None


def test_files_are_merged_by_instant_version_and_token_and_deletes_come_after_records() -> None:
    inline = [f".{ID}_100.log.1_0-0-0", f".{ID}_100.log.2_0-0-0"]
    native = [
        f"{ID}_0-0-0_101_1.log.parquet",
        f"{ID}_0-0-0_101_1.deletes.parquet",
        f"{ID}_0-0-0_101_1.cdc.parquet",
        f"{ID}_0-0-1_101_1.log.parquet",
        f"{ID}_0-0-0_101_2.log.parquet",
        f"{ID}_0-0-0_101_10.log.parquet",
        f"{ID}_0-0-0_102_1.log.parquet",
    ]
    expected = [*inline, *native]
    shuffled = [named(name) for name in expected]
    random.Random(1).shuffle(shuffled)

    assert [each.status.name for each in sorted(shuffled, key=lambda log: log.order)] == expected


def test_names_in_columns_are_told_apart_as_single_ones_are() -> None:
    names = [
        f"{ID}_0-0-0_101_1.log.parquet",
        f"{ID}_0-0-0_102.parquet",
        f"{ID}_0-0-0_101_1.cdc.parquet",
        f".{ID}_100.log.1_0-0-0.cdc",
        f".{ID}_100.log.1_0-0-0",
        f"{ID}_0-0-0_103_1.deletes.parquet",
        ".hoodie_partition_metadata",
    ]
    found = DataFiles.of(pa.array(names))

    told = zip(found.rows.tolist(), found.is_log.tolist(), found.instants.to_pylist(), strict=True)
    assert sorted(told) == [(0, True, "101"), (1, False, "102"), (4, True, "100"), (5, True, "103")]
    assert set(found.file_ids.to_pylist()) == {ID}


def test_a_footer_has_the_entries_of_both_kinds_of_readers() -> None:
    header = {
        HeaderKey.INSTANT_TIME: INSTANT,
        HeaderKey.SCHEMA: AVRO,
        HeaderKey.IS_PARTIAL: "true",
        HeaderKey.COMPACTED_BLOCK_TIMES: "1,2",
        HeaderKey.RECORD_POSITIONS: "AAAA",
        HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS: "0",
    }
    assert encode_footer(BlockType.PARQUET_DATA, header) == {
        "hudi.log.format.VERSION": "2",
        "hudi.log.format.INSTANT_TIME": INSTANT,
        "hudi.log.format.SCHEMA": AVRO,
        "hudi.log.format.IS_PARTIAL": "true",
        "hudi.log.format.COMPACTED_BLOCK_TIMES": "1,2",
        "hudi.log.format.RECORD_POSITIONS": "AAAA",
        "hudi.log.format.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS": "0",
        "hudi.log.format_version": "2",
        "hudi.log.block_type": "parquet_data",
        "hudi.log.instant_time": INSTANT,
        "hudi.log.is_partial": "true",
        "hudi.log.compacted_block_times": "1,2",
        "hudi.log.record_positions": "AAAA",
        "hudi.log.base_file_instant_of_positions": "0",
    }


@pytest.mark.parametrize(
    "entries",
    [
        {f"{UPSTREAM}VERSION": "2", f"{UPSTREAM}INSTANT_TIME": "7", f"{UPSTREAM}IS_PARTIAL": "true",
         f"{UPSTREAM}SCHEMA": AVRO, f"{UPSTREAM}SOME_LATER_KEY": "x"},
        {f"{UPSTREAM}metadata": json.dumps({"VERSION": "1", "INSTANT_TIME": "7", "IS_PARTIAL": "true",
                                            "SCHEMA": AVRO, "BLOCK_IDENTIFIER": None})},
        {"hudi.log.format_version": "2", "hudi.log.instant_time": "7", "hudi.log.is_partial": "true",
         "hudi.log.block_type": "parquet_data", "parquet.avro.schema": AVRO},
    ],
)  # fmt: skip
def test_the_footer_of_any_writer_says_the_same(entries: dict[str, str]) -> None:
    block = read(parquet(entries), f"{ID}_0-0-0_{INSTANT}_1.log.parquet")

    assert (block.kind, block.instant, block.is_partial) == (BlockType.PARQUET_DATA, "7", True)
    assert block.schema_json == AVRO


def test_without_entries_the_name_says_all() -> None:
    block = read(parquet({}), f"{ID}_0-0-0_{INSTANT}_1.deletes.parquet")

    assert (block.kind, block.instant, block.schema_json) == (BlockType.DELETE, INSTANT, None)


@pytest.mark.parametrize("entries", [{f"{UPSTREAM}VERSION": "3"}, {"hudi.log.format_version": "3"}])
def test_a_later_version_of_the_format_is_refused(entries: dict[str, str]) -> None:
    with pytest.raises(UnsupportedError, match="Upgrade drawstring"):
        read(parquet(entries), f"{ID}_0-0-0_1_1.log.parquet")


@pytest.mark.parametrize(
    ("entries", "text"),
    [
        ({f"{UPSTREAM}VERSION": "one"}, "format version 'one'"),
        ({f"{UPSTREAM}metadata": "{"}, "is damaged"),
        ({f"{UPSTREAM}metadata": "[]"}, "is damaged"),
    ],
)
def test_damaged_entries_say_so(entries: dict[str, str], text: str) -> None:
    with pytest.raises(CorruptTableError, match=text):
        read(parquet(entries), f"{ID}_0-0-0_1_1.log.parquet")


@pytest.mark.parametrize("size", [0, 3, 40])
def test_a_torn_file_is_corrupt(size: int) -> None:
    name = f"{ID}_0-0-0_1_1.log.parquet"
    with pytest.raises(CorruptTableError) as refused:
        read(parquet({})[:size], name)
    assert refused.value.path is None or refused.value.path.endswith(name)


def test_a_format_that_is_not_known_is_named() -> None:
    with pytest.raises(UnsupportedError, match=r"\.vortex"):
        read(b"VTXF", f"{ID}_0-0-0_1_1.log.vortex")


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("parquet_data", BlockType.PARQUET_DATA), ("delete", BlockType.DELETE), ("cdc", BlockType.CDC_DATA)],
)
def test_a_file_with_the_name_of_an_inline_log_file_is_known_by_its_first_bytes(
    kind: str, expected: BlockType
) -> None:
    entries = {"hudi.log.format_version": "2", "hudi.log.block_type": kind, "hudi.log.instant_time": "7"}

    block = read(parquet(entries), f".{ID}_{INSTANT}.log.1_0-0-0")

    assert (block.kind, block.instant) == (expected, "7")


def test_a_command_file_has_no_rows_and_takes_back_its_target() -> None:
    entries = {
        "hudi.log.block_type": "command",
        "hudi.log.command_block_type": "0",
        "hudi.log.target_instant_time": "5",
    }
    nothing = pa.table({"_hoodie_record_key": pa.array([], pa.string())})

    block = read(parquet(entries, nothing), f".{ID}_{INSTANT}.log.1_0-0-0")

    assert (block.kind, block.rolls_back) == (BlockType.COMMAND, "5")


def test_row_groups_without_the_wanted_keys_are_not_read() -> None:
    keys = [f"{number:04}" for number in range(400)]
    rows = pa.table({"_hoodie_record_key": keys, "v": list(range(400))})
    whole = bytearray(parquet({}, rows, row_group_size=100))
    last = pq.read_metadata(pa.BufferReader(whole)).row_group(3).column(1)
    start = last.dictionary_page_offset or last.data_page_offset
    whole[start : start + last.total_compressed_size] = bytes(last.total_compressed_size)
    name = f"{ID}_0-0-0_1_1.log.parquet"
    file = pa.BufferReader(bytes(whole))
    (block,) = log_blocks(file, named(name))

    found = pa.Table.from_batches(block_rows(file, block, V, LogRowSelection(pa.array(["0007", "0150"]))))
    assert found.to_pydict() == {"v": [7, 150]}
    with pytest.raises(CorruptTableError):
        list(block_rows(file, block, V))


def test_only_the_wanted_columns_are_read() -> None:
    file = pa.BufferReader(parquet({}))
    (block,) = log_blocks(file, named(f"{ID}_0-0-0_1_1.log.parquet"))

    (batch,) = block_rows(file, block, pa.schema([*V, ("not there", pa.string())]))
    assert batch.to_pydict() == {"v": [1, 2]}


def test_deletes_have_keys_and_ordering_values_with_null_for_none() -> None:
    schema = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("n", pa.int32())])
    avro = json.dumps(
        {"type": "record", "name": "t", "fields": [
            {"name": "id", "type": "string"}, {"name": "ts", "type": "long"},
            {"name": "n", "type": ["int", "null"]}]}
    )  # fmt: skip
    form = deletes_schema(schema, avro, ["ts", "n", "not there"])
    assert json.loads(form.avro_schema) == {
        "type": "record",
        "name": "hudi_delete_log_record",
        "fields": [
            {"name": "_hoodie_record_key", "type": "string"},
            {"name": "ts", "type": ["null", "long"], "default": None},
            {"name": "n", "type": ["null", "int"], "default": None},
        ],
    }
    assert form.schema.field("_hoodie_record_key").nullable is False
    ordered = form.rows(pa.array(["a", "b"]), [pa.array([5, 6]), pa.array([1, None], pa.int32())])
    plain = form.rows(pa.array(["c"]), None)
    file = pa.BufferReader(parquet({}, pa.Table.from_batches([ordered, plain])))
    (block,) = log_blocks(file, named(f"{ID}_0-0-0_1_1.deletes.parquet"))

    deletes = block_deletes(file, block)

    assert deletes.keys.to_pylist() == ["a", "b", "c"]
    assert deletes.is_commit_time.to_pylist() == [False, False, True]
    assert deletes.ordering is not None
    assert deletes.ordering.to_pylist() == [{"0": 5, "1": 1}, {"0": 6, "1": None}, {"0": None, "1": None}]


def test_the_partition_path_of_a_delete_is_no_ordering_value() -> None:
    rows = pa.table({"_hoodie_record_key": ["a"], "_hoodie_partition_path": ["p"], "ts": [5]})
    file = pa.BufferReader(parquet({}, rows))
    (block,) = log_blocks(file, named(f"{ID}_0-0-0_1_1.deletes.parquet"))

    deletes = block_deletes(file, block)

    assert (deletes.keys.to_pylist(), deletes.is_commit_time.to_pylist()) == (["a"], [False])
    assert deletes.ordering is not None
    assert deletes.ordering.to_pylist() == [5]


@pytest.mark.parametrize("rows", [pa.table({"id": ["a"]}), pa.table({"_hoodie_record_key": ["a", None]})])
def test_deletes_without_keys_are_corrupt(rows: pa.Table) -> None:
    file = pa.BufferReader(parquet({}, rows))
    (block,) = log_blocks(file, named(f"{ID}_0-0-0_1_1.deletes.parquet"))

    with pytest.raises(CorruptTableError, match="record keys"):
        block_deletes(file, block)


def test_an_hfile_of_deletes_names_its_keys() -> None:
    info = {b"hudi.log.format.INSTANT_TIME": b"7", b"hudi.log.format.VERSION": b"1"}
    content = encode_hfile(pa.array(["a", "b"]), pa.array([b"", b""]), info, 0)
    file = pa.BufferReader(content)
    (block,) = log_blocks(file, named("files-0000-0_0-0-0_1_1.deletes.hfile"))

    assert (block.kind, block.instant) == (BlockType.DELETE, "7")
    assert block_deletes(file, block).keys.to_pylist() == ["a", "b"]
