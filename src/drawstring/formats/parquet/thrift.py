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

_DEPTH_MAX: Final = 32
_LONG: Final = 15


def decode_struct(data: bytes) -> Struct:
    """Return a struct.

    Raises:
        ValueError: the bytes are not a struct.
    """
    reader = _Reader(data)
    try:
        return reader.struct(0)
    except IndexError:
        raise ValueError("the bytes end within a value") from None


def encode_struct(struct: Struct) -> bytes:
    """Return the bytes of a struct."""
    out = bytearray()
    _put_struct(out, struct)
    return bytes(out)


class _Reader:
    """Reads values from bytes."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def struct(self, depth: int) -> Struct:
        if depth > _DEPTH_MAX:
            raise ValueError("structs are nested too deeply")
        fields: Struct = {}
        number = 0
        while (head := self._byte()) != 0:
            kind = head & 15
            number = number + (head >> 4) if head >> 4 else self._zigzag()
            fields[number] = (kind, self._value(kind, depth))
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if kind in (TRUE, FALSE):
            return kind == TRUE
        if kind == BYTE:
            return self._byte()
        if kind in (INT16, INT32, INT64):
            return self._zigzag()
        if kind == DOUBLE:
            return self._take(8)
        if kind == BINARY:
            return self._take(self._varint())
        if kind in (LIST, SET):
            return self._list(depth)
        if kind == STRUCT:
            return self.struct(depth + 1)
        raise ValueError(f"there is no type {kind} in a footer")

    def _list(self, depth: int) -> tuple[int, list[Any]]:
        head = self._byte()
        kind, size = head & 15, head >> 4
        if size == _LONG:
            size = self._varint()
        if size > len(self._data) - self._at:
            raise ValueError("a list is longer than the bytes")
        if kind in (TRUE, FALSE):
            return kind, [self._byte() == TRUE for _ in range(size)]
        return kind, [self._value(kind, depth) for _ in range(size)]

    def _byte(self) -> int:
        value = self._data[self._at]
        self._at += 1
        return value

    def _take(self, size: int) -> bytes:
        end = self._at + size
        if end > len(self._data):
            raise ValueError("the bytes end within a text")
        value = self._data[self._at : end]
        self._at = end
        return value

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7
            if shift > 63:
                raise ValueError("a number is too long")

    def _zigzag(self) -> int:
        value = self._varint()
        return value >> 1 ^ -(value & 1)


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
        if kind not in (TRUE, FALSE):
            _put(out, kind, value)
    out.append(0)


def _put(out: bytearray, kind: int, value: Any) -> None:
    if kind == BYTE:
        out.append(value)
    elif kind in (INT16, INT32, INT64):
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
