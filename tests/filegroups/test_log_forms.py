"""The same log records in other blocks: HFile blocks of data, and deletes as older releases wrote them."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from drawstring.base.clock import SteppingClock
from drawstring.base.errors import CorruptTableError
from drawstring.formats.avro.blocks import decode_datums, encode_datums
from drawstring.formats.log_inline import (
    BlockType,
    LogBlock,
    decode_deletes,
    encode_block,
    scan_blocks,
)
from drawstring.query.planner import snapshot_scan
from drawstring.query.table_state import load_facts
from drawstring.storage import open_storage
from tests.support.golden import unpack
from tests.support.hfiles import Form, hfile, varint

Rewrite = Callable[[LogBlock, bytes], tuple[BlockType, bytes]]


def rows_of(root: Path) -> list[dict[str, object]]:
    rows = snapshot_scan(load_facts(open_storage(root), SteppingClock())).to_arrow().to_pylist()
    return sorted(rows, key=str)


def unpacked(name: str, folder: Path) -> Path:
    root = unpack(name, folder)
    for path in root.rglob("*.crc"):
        path.unlink()
    return root


def rewrite(root: Path, change: Rewrite) -> int:
    """Write the blocks of all log files of a table anew; return how many changed."""
    changed = 0
    for path in root.rglob(".*.log.*"):
        if ".hoodie" in path.relative_to(root).parts:
            continue
        data = path.read_bytes()
        blocks = []
        for block in scan_blocks(pa.BufferReader(data), len(data)):
            content = data[block.content_offset : block.content_offset + block.content_bytes]
            kind, new = change(block, content)
            changed += new != content
            blocks.append(encode_block(kind, block.header, new))
        path.write_bytes(b"".join(blocks))
    return changed


def as_hfile(block: LogBlock, content: bytes) -> tuple[BlockType, bytes]:
    if block.kind is not BlockType.AVRO_DATA or block.schema_json is None:
        return block.kind, content
    pairs = []
    for batch in decode_datums(content, block.schema_json):
        for at in range(batch.num_rows):
            datum = encode_datums(batch.slice(at, 1), block.schema_json)[12:]
            pairs.append((batch.column("_hoodie_record_key")[at].as_py(), datum))
    return BlockType.HFILE_DATA, hfile(sorted(pairs), Form(block_entries=2))


def text(value: str) -> bytes:
    data = value.encode()
    first = len(value) + 1
    return (
        bytes([0x80 | first & 0x3F | 0x40 * (first > 63)])
        + (varint(first >> 6) if first > 63 else b"")
        + data
    )


def as_kryo(block: LogBlock, content: bytes) -> tuple[BlockType, bytes]:
    """Write deletes as Hudi 0.12 did."""
    if block.kind is not BlockType.DELETE:
        return block.kind, content
    deletes = decode_deletes(content)
    ordering = deletes.ordering or pa.nulls(len(deletes.keys), pa.int64())
    model = "org.apache.hudi.common.model."
    seen: list[str] = []

    def of_class(name: str) -> bytes:
        if name in seen:
            return bytes([1, seen.index(name)])
        seen.append(name)
        return bytes([1, len(seen) - 1]) + text(name)

    payload = of_class(f"[L{model}DeleteRecord;") + b"\x01" + varint(len(deletes.keys) + 1)
    for key, value in zip(deletes.keys.to_pylist(), ordering.to_pylist(), strict=True):
        zigzag = varint((value or 0) << 1)
        payload += of_class(f"{model}DeleteRecord") + b"\x01" + of_class(f"{model}HoodieKey") + b"\x01"
        payload += (
            b"\x01" + text("p") + b"\x01" + text(key) + (b"\x02" if value is None else b"\x09") + zigzag
        )
    return BlockType.DELETE, struct.pack(">ii", 2, len(payload)) + payload


@pytest.mark.parametrize("name", ["v6_mor_avro", "v9_mor_avro", "v9_evo_add_mor"])
def test_records_in_hfile_blocks_are_the_same_records(name: str, tmp_path: Path) -> None:
    root = unpacked(name, tmp_path)
    expected = rows_of(root)

    assert rewrite(root, as_hfile) > 0

    assert rows_of(root) == expected


@pytest.mark.parametrize("name", ["v6_mor_soft_delete", "v9_mor_soft_delete", "v9_mor_event_time"])
def test_deletes_of_older_releases_delete_the_same_records(name: str, tmp_path: Path) -> None:
    root = unpacked(name, tmp_path)
    expected = rows_of(root)

    assert rewrite(root, as_kryo) > 0

    assert rows_of(root) == expected


def test_a_log_record_without_a_key_is_corrupt(tmp_path: Path) -> None:
    root = unpacked("v9_mor_avro", tmp_path)

    def without_keys(block: LogBlock, content: bytes) -> tuple[BlockType, bytes]:
        if block.kind is not BlockType.AVRO_DATA or block.schema_json is None:
            return block.kind, content
        (batch,) = decode_datums(content, block.schema_json)
        place = batch.schema.get_field_index("_hoodie_record_key")
        gone = batch.set_column(place, "_hoodie_record_key", pa.nulls(batch.num_rows, pa.string()))
        return block.kind, encode_datums(gone, block.schema_json)

    assert rewrite(root, without_keys) > 0

    with pytest.raises(CorruptTableError, match="no record key"):
        rows_of(root)


def test_only_the_columns_asked_for_are_decoded(tmp_path: Path) -> None:
    root = unpacked("v9_evo_add_mor", tmp_path)
    facts = load_facts(open_storage(root), SteppingClock())
    name = facts.schema.names[-1]
    whole = snapshot_scan(facts).to_arrow()

    some = snapshot_scan(facts, columns=["_hoodie_record_key", name]).to_arrow()

    assert sorted(some.to_pylist(), key=str) == sorted(
        whole.select(["_hoodie_record_key", name]).to_pylist(), key=str
    )
