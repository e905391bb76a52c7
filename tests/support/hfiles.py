"""Writes HFiles for tests, among them forms that HBase writes: leaf indexes, checksums, family keys."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from drawstring.formats.hfile import HFileReader, encode_hfile

TRAILER_BYTES = 4096
GZ, NONE = 1, 2


@dataclass(frozen=True)
class Form:
    """How a file is laid out."""

    codec: int = GZ
    block_entries: int = 3
    with_leaves: bool = False
    with_timestamps: bool = True
    schema: str = ""
    counted: int | None = None


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def vint(value: int) -> bytes:
    """Write a length as Hadoop does."""
    if value <= 127:
        return bytes([value])
    data = value.to_bytes((value.bit_length() + 7) // 8, "big")
    return struct.pack(">b", -112 - len(data)) + data


def block(magic: bytes, payload: bytes, codec: int, checksums: bytes = b"\0" * 4) -> bytes:
    stored = gzip.compress(payload, mtime=0) if codec == GZ else payload
    head = struct.pack(
        ">8siiqBii", magic, len(stored) + len(checksums), len(payload), -1, 2, 16_384, 33 + len(stored)
    )
    return head + stored + checksums


def row(key: str, full: bool = True) -> bytes:
    data = key.encode()
    tail = b"\0" + struct.pack(">qB", 2**63 - 1, 4) if full else b""
    return struct.pack(">h", len(data)) + data + tail


def entries(pairs: Sequence[tuple[str, bytes]], form: Form) -> bytes:
    mvcc = b"\0" if form.with_timestamps else b""
    return b"".join(
        struct.pack(">ii", len(row(key)), len(value)) + row(key) + value + mvcc for key, value in pairs
    )


def root_index(places: list[tuple[bytes, int, int]]) -> bytes:
    return b"".join(struct.pack(">qi", offset, size) + vint(len(key)) + key for key, offset, size in places)


def leaf_index(places: list[tuple[bytes, int, int]]) -> bytes:
    parts = [struct.pack(">qi", offset, size) + key for key, offset, size in places]
    ends = [sum(map(len, parts[:n])) for n in range(len(parts) + 1)]
    return struct.pack(f">{len(ends) + 1}i", len(parts), *ends) + b"".join(parts)


def message(fields: dict[int, int | bytes]) -> bytes:
    return b"".join(
        varint(number << 3 | 2) + varint(len(value)) + value
        if isinstance(value, bytes)
        else varint(number << 3) + varint(value)
        for number, value in fields.items()
    )


def hfile(pairs: Sequence[tuple[str, bytes]], form: Form | None = None) -> bytes:
    """Return an HFile of sorted keys and values, with a meta block `note`."""
    form = form or Form()
    file = bytearray()

    def put(magic: bytes, payload: bytes) -> tuple[int, int]:
        offset = len(file)
        file.extend(block(magic, payload, form.codec))
        return offset, len(file) - offset

    runs = [pairs[at : at + form.block_entries] for at in range(0, len(pairs), form.block_entries)]
    places = [(row(run[0][0], form.with_leaves), *put(b"DATABLK*", entries(run, form))) for run in runs]
    if form.with_leaves:
        halves = [half for half in (places[: len(places) // 2], places[len(places) // 2 :]) if half]
        places = [(half[0][0], *put(b"IDXLEAF2", leaf_index(half))) for half in halves]
    metas = [(b"note", *put(b"METABLKc", b"a note"))]
    opened = len(file)
    put(b"IDXROOT2", root_index(places))
    put(b"IDXROOT2", root_index(metas))
    info = {
        b"KEY_VALUE_VERSION": struct.pack(">i", int(form.with_timestamps)),
        b"schema": form.schema.encode(),
    }
    body = b"".join(message({1: message({1: key, 2: value})}) for key, value in info.items())
    put(b"FILEINF2", b"PBUF" + varint(len(body)) + body)
    counted = len(pairs) if form.counted is None else form.counted
    trailer = message(
        {2: opened, 5: len(places), 6: 1, 7: counted, 8: 1 + form.with_leaves, 11: b"c", 12: form.codec}
    )
    whole = b'TRABLK"$' + varint(len(trailer)) + trailer
    return bytes(file) + whole.ljust(TRAILER_BYTES - 4, b"\0") + b"\x03\x00\x00\x03"


def reader(data: bytes) -> HFileReader:
    """Return a reader of an HFile held in memory."""
    return HFileReader(pa.BufferReader(data), len(data))


def hfile_of(entries: Mapping[str, bytes], info: Mapping[bytes, bytes] | None = None) -> bytes:
    """Write an HFile as drawstring does."""
    values = pa.array(list(entries.values()), pa.binary())
    return encode_hfile(pa.array(list(entries), pa.string()), values, info or {}, 7)
