"""Avro container files: real ones, damaged ones, and crafted ones that try to exhaust the reader."""

from __future__ import annotations

import io
import json
import tracemalloc

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drawstring.base.errors import CorruptTableError, UnsupportedError
from drawstring.formats import schemas
from drawstring.formats.avro.container import decode_container, encode_container, encode_long, read_long
from tests.support.hudi_files import DATA, data

REAL = sorted(path.name for path in DATA.iterdir() if path.read_bytes().startswith(b"Obj\x01"))


@pytest.mark.parametrize("name", REAL)
def test_real_files_decode_as_fastavro_decodes_them_and_encode_back(name: str) -> None:
    records, schema = decode_container(data(name))

    assert records == list(fastavro.reader(io.BytesIO(data(name))))
    written = encode_container(json.dumps(schema).encode(), records[0])
    assert decode_container(written) == (records, schema)
    assert list(fastavro.reader(io.BytesIO(written))) == records


@given(st.integers(-(2**63), 2**63 - 1))
def test_a_long_survives(value: int) -> None:
    assert read_long(io.BytesIO(encode_long(value))) == value


@given(st.sampled_from(REAL), st.data())
def test_a_flipped_byte_gives_data_or_a_clear_error(name: str, drawn: st.DataObject) -> None:
    content = bytearray(data(name))
    at = drawn.draw(st.integers(0, len(content) - 1))
    content[at] ^= drawn.draw(st.integers(1, 255))

    try:
        records, _ = decode_container(bytes(content))
    except (CorruptTableError, UnsupportedError):
        return
    assert all(isinstance(record, dict) for record in records)


@given(st.sampled_from(REAL), st.data())
def test_a_cut_file_is_corrupt(name: str, drawn: st.DataObject) -> None:
    content = data(name)
    # A file cut right behind its header is a container with no records.
    header = content.index(content[-16:]) + 16
    cut = drawn.draw(st.integers(0, len(content) - 1).filter(lambda length: length != header))

    with pytest.raises(CorruptTableError):
        decode_container(content[:cut])


@given(st.binary(max_size=400))
def test_any_bytes_behind_the_magic_give_data_or_a_clear_error(tail: bytes) -> None:
    for content in (tail, b"Obj\x01" + tail):
        try:
            decode_container(content)
        except (CorruptTableError, UnsupportedError):
            continue


def crafted(schema: object, count: int, block: bytes, size: int | None = None) -> bytes:
    """Return a container with one block that may lie about itself."""
    text = schema if isinstance(schema, bytes) else json.dumps(schema).encode()
    head = encode_long(1) + encode_long(11) + b"avro.schema" + encode_long(len(text)) + text + b"\x00"
    claimed = encode_long(len(block) if size is None else size)
    return b"Obj\x01" + head + b"s" * 16 + encode_long(count) + claimed + block + b"s" * 16


def record(kind: object) -> dict[str, object]:
    """Return a record schema with one field."""
    return {"type": "record", "name": "r", "fields": [{"name": "a", "type": kind}]}


def many_fields(kind: object) -> dict[str, object]:
    """Return a record schema with a field of one byte and thousands of another type."""
    fields = [{"name": "a", "type": "boolean"}, {"name": "n", "type": kind}]
    more = [{"name": f"n{at}", "type": kind if isinstance(kind, str) else "e"} for at in range(10_000)]
    return {"type": "record", "name": "r", "fields": fields + more}


HUGE = 2**62


@pytest.mark.parametrize(
    "content",
    [
        crafted(record("string"), 1, encode_long(HUGE)),
        crafted(record("string"), HUGE, b"\x02x"),
        crafted(record("string"), -1, b"\x02x"),
        crafted(record("string"), 1, b"\x02x", HUGE),
        crafted(record("string"), 1, b"\x02x", -5),
        crafted(record("string"), 1, b"\x02xy"),
        crafted(record({"type": "array", "items": "null"}), 1, encode_long(HUGE) + b"\x00"),
        crafted(record({"type": "array", "items": record("null")}), 1, encode_long(HUGE)),
        crafted(record({"type": "array", "items": "long"}), 1, encode_long(HUGE) + b"\x02\x00"),
        crafted(record({"type": "map", "values": "null"}), 1, encode_long(HUGE) + b"\x02x"),
        crafted(record({"type": "fixed", "name": "f", "size": HUGE}), 1, b"x"),
        crafted(record({"type": "fixed", "name": "f", "size": -1}), 1, b"x"),
        crafted(record(["null", "r"]), 1, b"\x02" * 50_000),
        crafted(record("null"), 5, b""),
        crafted(many_fields("null"), 500, b"\0" * 500),
        crafted(many_fields({"type": "record", "name": "e", "fields": []}), 500, b"\0" * 500),
        crafted(record("nope"), 1, b""),
        crafted({"type": "record", "name": "r"}, 1, b""),
        crafted("string", 1, b"\x02x" + b"\x80" * 20),
        crafted(b"[" * 100_000, 1, b""),
        crafted(b"\xff", 1, b""),
        b"Obj\x01" + encode_long(HUGE) + b"\x02a\x02b",
    ],
)
def test_crafted_counts_and_schemas_end_quickly_in_little_memory(content: bytes) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(CorruptTableError):
            decode_container(content)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 64 << 20


def test_a_compressed_file_is_not_supported() -> None:
    stream = io.BytesIO()
    schema = schemas.load("commit")
    fastavro.writer(stream, schema, [{"compacted": True}], codec="deflate")

    with pytest.raises(UnsupportedError, match="deflate"):
        decode_container(stream.getvalue())
