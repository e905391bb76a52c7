"""Avro object container files (Avro specification: Object Container Files).

     4  magic       "Obj" 01
     *  metadata    map of bytes: avro.schema, and avro.codec unless it is null
    16  sync marker
        blocks: { long count, long size, the records, 16 sync marker }

Files of the timeline have one record and no codec entry. A map may say of how many bytes its block is (Avro
specification: Maps), so that a reader can pass over it, as over the statistics of a large commit:

    02                       the second type of ["null", map]
    -count, size, items      a block with its size; other writers leave it out: count, items
    00                       no block more
"""

from __future__ import annotations

import hashlib
import io
import json
import struct
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Protocol

import fastavro
import pyarrow as pa

from drawstring.base.errors import CorruptTableError, UnsupportedError
from drawstring.formats.avro.checks import check_bounded


class Readable(Protocol):
    """Bytes that are read one after the other."""

    def read(self, size: int, /) -> bytes:
        """Return the next bytes, fewer at the end."""
        ...


MAGIC = b"Obj\x01"
_SYNC_BYTES = 16
_SCHEMAS_KEPT = 16
_NULL, _MAP = 0, 1
"""The types of an optional map."""

DAMAGE = (
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
    struct.error,
    pa.ArrowException,
    fastavro.schema.SchemaParseException,
    fastavro.schema.UnknownType,
)
"""Errors that decoders raise on damaged bytes or schemas."""


def decode_container(data: bytes, field: str | None = None) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the records of a container file and its schema.

    Args:
        data: the whole file.
        field: the one field to decode, which has no named types; None for all.

    Raises:
        CorruptTableError: the bytes are damaged.
        UnsupportedError: the file is compressed.
    """
    try:
        return _decode(data, field)
    except DAMAGE as error:
        raise CorruptTableError(
            f"An Avro metadata file is damaged ({error}). Restore it from a backup of the table."
        ) from error


def _decode(data: bytes, field: str | None) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    if data[:4] != MAGIC:
        raise ValueError("it does not start with the magic of an Avro file")
    stream = io.BytesIO(data)
    stream.seek(4)
    metadata = read_metadata(stream)
    codec = metadata.get("avro.codec", b"null").decode(errors="replace")
    if codec != "null":
        raise UnsupportedError(
            f"An Avro metadata file is compressed with {codec}, which Hudi never does. Restore it from a"
            " backup of the table."
        )
    schema, parsed = _parsed(metadata["avro.schema"])
    sync = take(stream, _SYNC_BYTES)
    records: list[dict[str, Any]] = []
    for count, block in _blocks(stream, len(data), sync):
        rest = None if field is None or count != 1 else _rest_of(block, schema, field)
        found = _read_records(block, count, parsed, _only(schema, field)) if rest is None else [rest]
        records.extend(found)
    return records, schema


def _rest_of(block: bytes, schema: Any, field: str) -> dict[str, Any] | None:
    """Return a field of a record whose first field is a map that is passed over; None for other records."""
    first, others = _split_first_field(schema)
    stream = io.BytesIO(block)
    if first == field or not _is_optional_map(schema["fields"][0]) or not _pass_over(stream, len(block)):
        return None
    (record,) = _read_records(block[stream.tell() :], 1, others, _only(others, field))
    return record


def _is_optional_map(field: Any) -> bool:
    match field["type"]:
        case ["null", {"type": "map"}]:
            return True
    return False


@lru_cache(maxsize=_SCHEMAS_KEPT)
def _parsed(text: bytes) -> tuple[Any, Any]:
    """Return a schema as JSON and as parsed by fastavro; the files of a timeline share few schemas."""
    schema = json.loads(text)
    check_bounded(schema)
    return schema, fastavro.parse_schema(schema)


def _only(schema: Any, field: str | None) -> Any:
    """Return the schema of a record with one of its fields, None for all fields."""
    if field is None:
        return None
    return {**schema, "fields": [each for each in schema["fields"] if each["name"] == field]}


def read_metadata(stream: Readable) -> dict[str, bytes]:
    """Read the metadata of a container file, which follows the magic."""
    metadata = {}
    while count := read_long(stream):
        if count < 0:
            count = -count
            read_long(stream)
        for _ in range(count):
            key = take(stream, read_long(stream)).decode()
            metadata[key] = take(stream, read_long(stream))
    return metadata


def _blocks(stream: io.BytesIO, end: int, sync: bytes) -> Iterator[tuple[int, bytes]]:
    while stream.tell() < end:
        count = read_long(stream)
        block = take(stream, read_long(stream))
        if take(stream, _SYNC_BYTES) != sync:
            raise ValueError("a sync marker is wrong")
        if not 0 <= count <= len(block):
            raise ValueError(f"a block claims {count} records in {len(block)} bytes")
        yield count, block


def _read_records(block: bytes, count: int, schema: Any, wanted: Any) -> Iterator[dict[str, Any]]:
    stream = io.BytesIO(block)
    for _ in range(count):
        record: Any = fastavro.schemaless_reader(stream, schema, wanted)
        yield record
    if stream.tell() != len(block):
        raise ValueError("a block is longer than its records")


def take(stream: Readable, size: int) -> bytes:
    """Read so many bytes, or raise that there are fewer."""
    data = stream.read(size) if size >= 0 else b""
    if len(data) != size:
        raise EOFError("it ends too early")
    return data


def read_long(stream: Readable) -> int:
    """Read an Avro long: zigzag, seven bits per byte, lowest first."""
    value = 0
    for shift in range(0, 70, 7):
        byte = take(stream, 1)[0]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1)
    raise ValueError("a number is longer than ten bytes")


def encode_long(value: int) -> bytes:
    """Return an Avro long: zigzag, seven bits per byte, lowest first."""
    rest = (value << 1) ^ (value >> 63)
    out = bytearray()
    while rest > 0x7F:
        out.append((rest & 0x7F) | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def encode_container(schema: bytes, record: dict[str, Any], *, is_sized: bool = False) -> bytes:
    """Return a container file with one record, uncompressed, without a codec entry.

    The sync marker is a hash of the record, so that equal records result in equal files.

    Args:
        schema: Avro schema of the record, as JSON without white space.
        record: values by field; missing fields take their defaults.
        is_sized: whether the first field, an optional map with entries, is written with its size.
    """
    datum = _sized_datum(_parsed(schema)[0], record) if is_sized else _datum(_parsed(schema)[1], record)
    sync = hashlib.blake2b(datum, digest_size=_SYNC_BYTES).digest()
    return b"".join([_head(schema), sync, encode_long(1), *_sized(datum), sync])


def _datum(schema: Any, value: Any) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, schema, value)
    return stream.getvalue()


def _sized_datum(schema: Any, record: dict[str, Any]) -> bytes:
    first, others = _split_first_field(schema)
    return _with_size(_datum(schema["fields"][0]["type"], record[first])) + _datum(others, record)


@lru_cache(maxsize=_SCHEMAS_KEPT)
def _head(schema: bytes) -> bytes:
    """Return what precedes the first sync marker."""
    entry = [encode_long(1), *_sized(b"avro.schema"), *_sized(schema), encode_long(0)]
    return b"".join([MAGIC, *entry])


def _sized(data: bytes) -> tuple[bytes, bytes]:
    return encode_long(len(data)), data


def _with_size(encoded: bytes) -> bytes:
    """Return a map with the size of its block.

    Args:
        encoded: the union of null and a map that is not empty, in one block without a size.
    """
    stream = io.BytesIO(encoded)
    kind, count = read_long(stream), read_long(stream)
    items = encoded[stream.tell() : -1]
    return b"".join(
        [encode_long(kind), encode_long(-count), encode_long(len(items)), items, encode_long(_NULL)]
    )


def _pass_over(stream: io.BytesIO, end: int) -> bool:
    """Pass over a union of null and a map; False if a block has no size.

    Args:
        stream: at its beginning.
        end: the number of bytes that the stream has.

    Raises:
        EOFError or ValueError: the bytes are damaged.
    """
    kind = read_long(stream)
    if kind not in (_NULL, _MAP):
        raise ValueError(f"a union has no type {kind}")
    while kind == _MAP and (count := read_long(stream)):
        if count > 0:
            return False
        size = read_long(stream)
        if not 0 <= size <= end - stream.tell():
            raise ValueError(f"a map claims {size} of {end - stream.tell()} bytes")
        stream.seek(size, io.SEEK_CUR)
    return True


def _split_first_field(schema: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the name of a record's first field, and the schema of the other fields."""
    first, *others = schema["fields"]
    return first["name"], {**schema, "fields": others}
