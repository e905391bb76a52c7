"""Thrift's compact protocol, as used in Parquet footers: decoding to plain values and encoding.

    struct   (delta << 4 | type, or type and zigzag id) value ... 0
    list     (size << 4 | type; size 15: a varint follows) value ...
    numbers  zigzag varints; text and bytes: varint length, bytes; double: 8 bytes, little-endian

A struct is a dictionary from field ids to types and values, so that unknown fields are preserved.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

Struct: TypeAlias = dict[int, tuple[int, Any]]
"""Type and value by field id."""

TRUE: Final = 1
FALSE: Final = 2
BYTE: Final = 3
INT16: Final = 4
INT32: Final = 5
INT64: Final = 6
DOUBLE: Final = 7
BINARY: Final = 8
LIST: Final = 9
SET: Final = 10
STRUCT: Final = 12

_INTEGERS: Final = frozenset((INT16, INT32, INT64))
_DEPTH_MAX: Final = 32
_LONG: Final = 15


def decode_struct(data: bytes) -> Struct:
    """Return a struct.

    Raises:
        ValueError: the bytes are not a struct.
    """
    try:
        return _struct(data, 0, 0)[0]
    except IndexError:
        raise ValueError("the bytes end within a value") from None


def encode_struct(struct: Struct) -> bytes:
    """Return the bytes of a struct."""
    out = bytearray()
    _put_struct(out, struct)
    return bytes(out)


def _struct(data: bytes, at: int, depth: int) -> tuple[Struct, int]:
    """Return the struct at a place, and the one behind it; numbers of one byte are decoded here, faster."""
    if depth > _DEPTH_MAX:
        raise ValueError("structs are nested too deeply")
    fields: Struct = {}
    number = 0
    while (head := data[at]) != 0:
        at += 1
        kind = head & 15
        if head >> 4:
            number += head >> 4
        else:
            number, at = _zigzag(data, at)
        if kind in _INTEGERS and (first := data[at]) < 128:
            fields[number] = (kind, first >> 1 ^ -(first & 1))
            at += 1
        else:
            value, at = _value(data, at, kind, depth)
            fields[number] = (kind, value)
    return fields, at + 1


def _value(data: bytes, at: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind in _INTEGERS:
        return _zigzag(data, at)
    if kind == BINARY:
        size, at = _varint(data, at)
        return _take(data, at, size)
    if kind == STRUCT:
        return _struct(data, at, depth + 1)
    if kind in (TRUE, FALSE):
        return kind == TRUE, at
    if kind in (LIST, SET):
        return _list(data, at, depth)
    if kind == DOUBLE:
        return _take(data, at, 8)
    if kind == BYTE:
        return data[at], at + 1
    raise ValueError(f"there is no type {kind} in a footer")


def _list(data: bytes, at: int, depth: int) -> tuple[tuple[int, list[Any]], int]:
    head = data[at]
    kind, size = head & 15, head >> 4
    at += 1
    if size == _LONG:
        size, at = _varint(data, at)
    if size > len(data) - at:
        raise ValueError("a list is longer than the bytes")
    if kind in (TRUE, FALSE):
        return (kind, [byte == TRUE for byte in data[at : at + size]]), at + size
    values = []
    for _ in range(size):
        value, at = _value(data, at, kind, depth)
        values.append(value)
    return (kind, values), at


def _take(data: bytes, at: int, size: int) -> tuple[bytes, int]:
    end = at + size
    if end > len(data):
        raise ValueError("the bytes end within a text")
    return data[at:end], end


def _varint(data: bytes, at: int) -> tuple[int, int]:
    byte = data[at]
    value = byte & 127
    shift = 7
    while byte > 127:
        if shift > 63:
            raise ValueError("a number is too long")
        at += 1
        byte = data[at]
        value |= (byte & 127) << shift
        shift += 7
    return value, at + 1


def _zigzag(data: bytes, at: int) -> tuple[int, int]:
    value, at = _varint(data, at)
    return value >> 1 ^ -(value & 1), at


def _put_struct(out: bytearray, struct: Struct) -> None:
    before = 0
    for number, (kind, value) in sorted(struct.items()):
        if kind in (TRUE, FALSE):
            kind = TRUE if value else FALSE
        if 0 < number - before <= _LONG:
            out.append(number - before << 4 | kind)
        else:
            out.append(kind)
            _put_zigzag(out, number)
        before = number
        if kind in _INTEGERS and 0 <= value < 64:
            out.append(value << 1)
        elif kind not in (TRUE, FALSE):
            _put(out, kind, value)
    out.append(0)


def _put(out: bytearray, kind: int, value: Any) -> None:
    if kind == BYTE:
        out.append(value)
    elif kind in _INTEGERS:
        _put_zigzag(out, value)
    elif kind == DOUBLE:
        out += value
    elif kind == BINARY:
        _put_varint(out, len(value))
        out += value
    elif kind == STRUCT:
        _put_struct(out, value)
    else:
        _put_list(out, *value)


def _put_list(out: bytearray, kind: int, values: list[Any]) -> None:
    out.append(min(len(values), _LONG) << 4 | kind)
    if len(values) >= _LONG:
        _put_varint(out, len(values))
    for value in values:
        if kind in (TRUE, FALSE):
            out.append(TRUE if value else FALSE)
        else:
            _put(out, kind, value)


def _put_varint(out: bytearray, value: int) -> None:
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)


def _put_zigzag(out: bytearray, value: int) -> None:
    _put_varint(out, value << 1 if value >= 0 else (-value << 1) - 1)
