"""Rows of Avro files that other programs wrote, in any codec of the specification."""

from __future__ import annotations

import bz2
import io
import json
import lzma
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any, Final

import fastavro
import pyarrow as pa

from drawstring.base.errors import CorruptTableError, UnsupportedError
from drawstring.formats.avro.checks import check_bounded
from drawstring.formats.avro.container import DAMAGE, MAGIC, read_long, read_metadata, take
from drawstring.formats.avro.decoder import PlainSchemas, arrow_of
from drawstring.schema.avro import avro_to_arrow

_SYNC_BYTES: Final = 16
_CRC_BYTES: Final = 4


def avro_file_schema(file: pa.NativeFile) -> pa.Schema:
    """Return the columns of a file.

    Raises:
        CorruptTableError: the file is damaged.
        UnsupportedError: a column has a type that Arrow lacks.
    """
    try:
        return avro_to_arrow(_head(file)[0])
    except DAMAGE as error:
        raise _damaged(error) from error


def read_avro_file(file: pa.NativeFile) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file, a block at a time.

    Raises:
        CorruptTableError: the file is damaged.
        UnsupportedError: its codec or a type is not supported.
    """
    try:
        schema_json, codec, sync = _head(file)
        decompress = _codec(codec)
        avro, schema = json.loads(schema_json), avro_to_arrow(schema_json)
        check_bounded(avro)
        plain = fastavro.parse_schema(PlainSchemas().of(avro, {}, ""))
        size = file.size()
        while file.tell() < size:
            count, block = read_long(file), take(file, read_long(file))
            if take(file, _SYNC_BYTES) != sync:
                raise ValueError("a sync marker is wrong")
            yield _rows(decompress(block), count, plain, schema)
    except DAMAGE as error:
        raise _damaged(error) from error


def _rows(block: bytes, count: int, plain: Any, schema: pa.Schema) -> pa.RecordBatch:
    stream = io.BytesIO(block)
    if not 0 <= count <= max(len(block), 1):
        raise ValueError(f"a block claims {count} records in {len(block)} bytes")
    rows = [fastavro.schemaless_reader(stream, plain, None) for _ in range(count)]
    columns = arrow_of(rows, pa.struct(list(schema))).flatten()
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _head(file: pa.NativeFile) -> tuple[str, str, bytes]:
    """Return schema, codec and sync marker of a file."""
    if file.read(len(MAGIC)) != MAGIC:
        raise ValueError("it does not start with the magic of an Avro file")
    metadata = read_metadata(file)
    codec = metadata.get("avro.codec", b"null").decode()
    return metadata["avro.schema"].decode(), codec, take(file, _SYNC_BYTES)


def _codec(name: str) -> Callable[[bytes], bytes]:
    codecs: dict[str, Callable[[bytes], bytes]] = {
        "null": bytes,
        "deflate": lambda data: zlib.decompress(data, -zlib.MAX_WBITS),
        "snappy": _snappy,
        "zstandard": lambda data: pa.CompressedInputStream(pa.BufferReader(data), "zstd").read(),
        "bzip2": bz2.decompress,
        "xz": lzma.decompress,
    }
    if name not in codecs:
        raise UnsupportedError(f"The Avro file is compressed with {name}. Use one of {', '.join(codecs)}.")
    return codecs[name]


def _snappy(data: bytes) -> bytes:
    """Return a block, before which snappy states its size; Avro adds a checksum."""
    size = shift = 0
    for at in range(5):
        size |= (data[at] & 0x7F) << shift
        shift += 7
        if data[at] < 0x80:
            break
    plain: bytes = pa.decompress(data[:-_CRC_BYTES], size, "snappy", asbytes=True)
    if zlib.crc32(plain) != struct.unpack(">I", data[-_CRC_BYTES:])[0]:
        raise ValueError("a checksum is wrong")
    return plain


def _damaged(error: Exception) -> CorruptTableError:
    return CorruptTableError(f"The Avro file is damaged ({error}).")
