"""Every decoder with real files to damage: the decoder takes bytes and reads all that they hold."""

from __future__ import annotations

import base64
import json
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc

from drawstring.config.table.properties import decode_properties
from drawstring.config.table_config import table_config
from drawstring.formats.avro.blocks import decode_datums
from drawstring.formats.bloom import DYNAMIC, BloomFilter
from drawstring.formats.data_file import Selection, base_schema, open_footer, open_sink, read_base
from drawstring.formats.file_format import FileSpec
from drawstring.formats.hfile import HFileReader, read_hfile_records
from drawstring.formats.log_files import block_deletes, block_rows, log_blocks
from drawstring.formats.log_inline import BlockType, decode_deletes, scan_blocks
from drawstring.formats.metadata.commit import (
    clustering_groups,
    decode_commit,
    decode_compaction_plan,
    decode_rollback,
    decode_rollback_plan,
)
from drawstring.formats.metadata.plans import base_files_of, decode_clustering_plan
from drawstring.formats.parquet.footer import chunk_source
from drawstring.formats.parquet.row_group_copy import can_concat, concat_files
from drawstring.formats.record_positions import decode_bitmap, decode_list, encode_bitmap, encode_list
from drawstring.model.files import FileStatus, LogFile
from drawstring.schema.avro import arrow_to_avro
from drawstring.storage.memory import MemoryStorage
from tests.support.hfiles import NONE, Form, hfile

FORMATS = Path(__file__).parents[1] / "formats"
GOLDEN = Path(__file__).parents[1] / "golden/tables"
ID = "136281f3-c24e-423b-a65a-95dbfbddce1d"
SEALED = Path(__file__).parents[1] / "sealed/tables"
KEY_AND_TYPE = pa.schema([("key", pa.string()), ("type", pa.int32())])

Decode = Callable[[bytes], None]


def read_log(data: bytes) -> None:
    """Read all blocks of a log file."""
    file = pa.BufferReader(data)
    for block in scan_blocks(file, len(data)):
        content = data[block.content_offset : block.content_offset + block.content_bytes]
        if block.kind is BlockType.DELETE:
            decode_deletes(content)
        elif block.kind is BlockType.HFILE_DATA and block.schema_json is not None:
            read_hfile(content, block.schema_json)
        elif block.kind in (BlockType.AVRO_DATA, BlockType.CDC_DATA) and block.schema_json is not None:
            decode_datums(content, block.schema_json)


def read_native_log(name: str, data: bytes) -> None:
    """Read the headers of a native log file, and its records or deletes."""
    log = LogFile.parse(FileStatus(name, len(data)))
    assert log is not None
    file = pa.BufferReader(data)
    for block in log_blocks(file, log):
        if block.kind is BlockType.DELETE:
            block_deletes(file, block)
        else:
            list(block_rows(file, block, KEY_AND_TYPE))


def read_hfile(data: bytes, schema_json: str | None = None) -> None:
    """Read an HFile, look up a key that it may have, read its meta blocks and records."""
    reader = HFileReader(pa.BufferReader(data), len(data))
    reader.meta("bloomFilter")
    list(reader.seek(pa.array(["a", "k050", "__all_partitions__"])))
    list(reader.seek_prefixes(["k05", "__"]))
    entries = list(reader.scan())
    schema = schema_json or reader.schema_json
    if schema:
        list(read_hfile_records(entries, schema))


def read_bloom(data: bytes) -> None:
    """Read a bloom filter and ask it."""
    bloom = BloomFilter.decode(data.decode("latin-1"), DYNAMIC)
    bloom.contains(pa.array(["a", "id:1"]))


def read_clustering(data: bytes) -> None:
    """Read the plan of a clustering, which file groups it has, and what it says of buckets."""
    clustering_groups(data)
    plan = decode_clustering_plan(data)
    plan.inputs, base_files_of(plan)


def read_stitched(data: bytes) -> None:
    """Copy the row groups of a Parquet file."""
    storage = MemoryStorage("memory://fuzz-stitch")
    storage.put("a.parquet", data)
    source = chunk_source(storage, "a.parquet")
    if source is not None and can_concat([source]):
        concat_files(storage, [source], "b.parquet", "b.parquet", bloom=False)


def read_kryo(data: bytes) -> None:
    """Read a delete block of version 1 or 2 with its true length."""
    decode_deletes(b"\0\0\0\x02" + len(data).to_bytes(4, "big") + data)


def read_positions(decode: Callable[[str], object], data: bytes) -> None:
    """Read record positions from the bytes that a header has as text."""
    decode(base64.b64encode(data).decode())


def seeds() -> Iterator[tuple[str, Decode, bytes]]:
    """Yield kind, decoder and bytes of each file to damage."""
    by_ending: dict[str, Decode] = {
        ".log": read_log,
        ".cdc": read_log,
        "commit": lambda data: void(decode_commit(data)),
        ".inflight": lambda data: void(decode_commit(data)),
        "compaction.requested": lambda data: void(decode_compaction_plan(data)),
        "clustering.requested": read_clustering,
        "overwrite.requested": lambda data: void(clustering_groups(data)),
        "rollback.requested": lambda data: void(decode_rollback_plan(data, "file:///table")),
        ".rollback": lambda data: void(decode_rollback(data, "file:///table")),
    }
    for path in sorted((FORMATS / "data").iterdir()):
        for ending, decode in by_ending.items():
            if path.name.endswith(ending):
                yield path.name, decode, path.read_bytes()
    for name, text in json.loads((FORMATS / "kryo_vectors.json").read_text()).items():
        yield f"kryo {name}", read_kryo, bytes.fromhex(text)
    yield "plain hfile", read_hfile, hfile([(f"k{at:03d}", b"v" * at) for at in range(90)], Form(codec=NONE))
    leaves = Form(codec=NONE, with_leaves=True)
    yield "hfile with leaves", read_hfile, hfile([(f"k{at:03d}", b"v") for at in range(90)], leaves)
    positions = np.unique(np.concatenate([np.arange(0, 90_000, 7), np.arange(100_000, 100_400), [1 << 34]]))
    for encode, decode_text in ((encode_bitmap, decode_bitmap), (encode_list, decode_list)):
        yield "positions", partial(read_positions, decode_text), base64.b64decode(encode(positions))
    yield from _golden_seeds()
    yield from base_seeds()
    # Lance allocates the sizes that a damaged file claims, and ends the process if it cannot.
    yield from (each for each in native_log_seeds() if not each[0].endswith(".lance"))


def _golden_seeds() -> Iterator[tuple[str, Decode, bytes]]:
    with zipfile.ZipFile(GOLDEN / "v9_mdt_compacted.zip") as packed:
        names = [name for name in packed.namelist() if not name.endswith((".crc", "/"))]
        for name in names:
            short = name.rpartition("/")[2]
            if short.endswith(".hfile"):
                yield short, read_hfile, packed.read(name)
            elif "/metadata/" in name and ".log." in short:
                yield short, read_log, packed.read(name)
            elif short == "hoodie.properties":
                yield name, lambda data: void(table_config(decode_properties(data))), packed.read(name)
    bloom = BloomFilter.build(pa.array([f"id:{at}" for at in range(50)]), 10)
    yield "bloom", read_bloom, bloom.encode().encode()


def native_log_seeds() -> Iterator[tuple[str, Decode, bytes]]:
    """Yield native log files of each format."""
    with zipfile.ZipFile(SEALED / "v10_mor_metadata_logs.zip") as packed:
        for ending in (".log.hfile", ".deletes.hfile"):
            name = next(each for each in packed.namelist() if each.endswith(ending) and "_0-0-0_" not in each)
            yield ending, partial(read_native_log, name.rpartition("/")[2]), packed.read(name)
    rows = pa.table({"_hoodie_record_key": ["a", "b", "c"], "key": ["a", "b", "c"], "type": [1, None, 3]})
    for extension in (".parquet", ".orc", ".lance"):
        for kind in (".log", ".deletes"):
            name = f"{ID}_1-0-1_20250409161256974_1{kind}{extension}"
            yield f"{kind}{extension}", partial(read_native_log, name), written_file(name, rows)


def base_seeds() -> Iterator[tuple[str, Decode, bytes]]:
    """Yield base files of the formats that have no reader of their own in the other seeds."""
    times = pa.array([0, None, 1_700_000_000_000_000], pa.timestamp("us"))
    sink = pa.BufferOutputStream()
    named = pa.table({"_hoodie_file_name": ["a"] * 9, "fare": [at / 3 for at in range(9)]})
    pq.write_table(named, sink, row_group_size=4, store_schema=False)
    yield "row groups", read_stitched, sink.getvalue().to_pybytes()
    rows = pa.table({"id": [1, 2, 3], "name": ["a", None, "c"], "at": times, "tags": [["x"], [], None]})
    for codec in ("uncompressed", "zlib"):
        sink = pa.BufferOutputStream()
        orc.write_table(rows, sink, compression=codec)
        yield f"{codec} orc", lambda data: read_base_file(data, "a.orc"), sink.getvalue().to_pybytes()
    for ending in (".orc", ".lance"):
        yield f"footer {ending}", partial(read_footer, ending), written_file(f"a{ending}", rows)
    with zipfile.ZipFile(FORMATS / "data/v9_cow_hfile.zip") as packed:
        name = next(name for name in packed.namelist() if name.endswith(".hfile"))
        yield "base hfile", lambda data: read_base_file(data, "a.hfile"), packed.read(name)


def read_base_file(data: bytes, name: str) -> None:
    """Read all columns and rows of a base file."""
    storage = MemoryStorage("memory://fuzz-base-files")
    storage.put(name, data)
    schema = base_schema(storage, name)
    list(read_base(storage, name, Selection(schema.names, types=schema)))


def written_file(name: str, rows: pa.Table) -> bytes:
    """Return a file as this release writes it, with entries in its footer."""
    storage = MemoryStorage("memory://fuzz-written-files")
    form = FileSpec(rows.schema, arrow_to_avro(rows.schema, "row", "hoodie"), "zstd", 0.0)
    sink = open_sink(storage, name, form)
    for batch in rows.to_batches():
        sink.write(batch)
    sink.add_entries({"hudi.log.format.VERSION": "2", "long": "text" * 50})
    sink.close()
    return storage.read(name)


def read_footer(ending: str, data: bytes) -> None:
    """Read the footer of a file."""
    void(open_footer(pa.BufferReader(data), f"a{ending}"))


def void(result: object) -> None:
    """Drop what a decoder returned."""
    del result
