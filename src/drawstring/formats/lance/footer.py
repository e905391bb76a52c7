"""The footer of a Lance file: the number of rows, and the metadata of the schema, where Hudi has its entries.

    data | ... | offsets and sizes of the global buffers, 16 bytes each | last 40 bytes

    last 40 bytes   8 start of the columns' metadata | 8 offset of the columns' offsets
                    8 offset of the global buffers' offsets | 4 their number | 4 number of columns
                    2 major, 2 minor version | "LANC"                      little-endian

The first global buffer is a protocol buffer message: 1 schema (of which 5 is a map of texts), 2 rows.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from drawstring.formats.protobuf import message_fields

MAGIC: Final = b"LANC"
PLAIN_BYTES: Final = "drawstring.plain.bytes"
"""Entry of the files of drawstring: how much memory the rows take, of which nothing in the format tells."""

_EXPANSION: Final = 8
"""Bytes in memory for a stored byte, where there is no such entry."""

_END: Final = struct.Struct("<QQQIIHH4s")
_PLACE: Final = struct.Struct("<QQ")
_SCHEMA, _ROWS, _SCHEMA_METADATA, _NAME, _VALUE = 1, 2, 5, 1, 2
_DESCRIPTOR_BYTES_MAX: Final = 256 << 20


@dataclass(frozen=True, slots=True)
class LanceFooter:
    """What the footer of a Lance file says.

    Attributes:
        entries: metadata of the schema.
        rows, columns: their numbers; a field of a struct is a column.
        size_bytes: size of the file.
    """

    entries: dict[str, str]
    rows: int
    columns: int
    size_bytes: int

    @property
    def plain_bytes(self) -> int:
        """About how much memory the rows take."""
        stored = self.entries.get(PLAIN_BYTES, "")
        return int(stored) if stored.isdecimal() else _EXPANSION * self.size_bytes


def lance_footer(file: pa.NativeFile) -> LanceFooter:
    """Return the footer of an open file.

    Raises:
        pa.ArrowInvalid: it is no Lance file, or damaged.
    """
    try:
        return _footer(file)
    except (ValueError, struct.error) as error:
        raise pa.ArrowInvalid(f"its footer cannot be read: {error}") from error


def check_lance(file: pa.NativeFile) -> None:
    """Check that a file ends like a Lance file.

    Raises:
        pa.ArrowInvalid: it does not.
    """
    size = file.size()
    if size < _END.size or file.read_at(len(MAGIC), size - len(MAGIC)) != MAGIC:
        raise pa.ArrowInvalid("it does not end as Lance files do")


def _footer(file: pa.NativeFile) -> LanceFooter:
    check_lance(file)
    size = file.size()
    *_, places, count, columns, _, _, _ = _END.unpack(file.read_at(_END.size, size - _END.size))
    if not count or places > size - _PLACE.size:
        raise ValueError("it has no schema")
    offset, length = _PLACE.unpack(file.read_at(_PLACE.size, places))
    if length > _DESCRIPTOR_BYTES_MAX or offset + length > size:
        raise ValueError(f"its schema claims {length} bytes at {offset} of {size}")
    descriptor = dict(message_fields(file.read_at(length, offset)))
    schema, rows = descriptor.get(_SCHEMA, b""), descriptor.get(_ROWS, 0)
    if not (isinstance(schema, bytes) and isinstance(rows, int)):
        raise ValueError("its schema has another form")
    items = (value for number, value in message_fields(schema) if number == _SCHEMA_METADATA)
    pairs = (dict(message_fields(each)) for each in items if isinstance(each, bytes))
    entries = {_text(each.get(_NAME)): _text(each.get(_VALUE)) for each in pairs}
    return LanceFooter(entries, rows, columns, size)


def _text(value: int | bytes | None) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else ""
