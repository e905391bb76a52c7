"""Data files whose milliseconds are called microseconds, as Apache Hudi before 1.1 wrote them."""

from __future__ import annotations

import struct
from pathlib import Path

from drawstring.formats.parquet.footer import INT32, STRUCT, Struct, decode_struct, encode_struct

_MAGIC = b"PAR1"
_MILLIS, _MICROS = b"timestamp-millis", b"timestamp-micros"


def mislabel(root: Path) -> int:
    """Call milliseconds microseconds in all data files of a table; return in how many.

    Args:
        root: folder of the table. Sizes and places in the files stay.
    """
    paths = (
        path for path in root.rglob("*") if path.is_file() and ".hoodie" not in path.relative_to(root).parts
    )
    return sum(_mislabel_file(path) for path in paths)


def _mislabel_file(path: Path) -> bool:
    stored = path.read_bytes()
    data = bytearray(stored.replace(_MILLIS, _MICROS))
    end = data.rfind(_MAGIC)
    while end > 0:
        length = struct.unpack("<i", data[end - 4 : end])[0]
        if 0 < length < end:
            start = end - 4 - length
            data[start : start + length] = _with_micros(bytes(data[start : start + length]))
        end = data.rfind(_MAGIC, 0, end)
    path.write_bytes(data)
    return bytes(data) != stored


def _with_micros(footer: bytes) -> bytes:
    try:
        decoded = decode_struct(footer)
        elements: list[Struct] = decoded[2][1][1]
    except (ArithmeticError, LookupError, TypeError, ValueError):
        return footer  # the beginning of a file
    for element in elements:
        if element.get(6) == (INT32, 9):
            element[6] = (INT32, 10)
            element[10][1][8][1][2] = (STRUCT, {2: (STRUCT, {})})
    return encode_struct(decoded)
