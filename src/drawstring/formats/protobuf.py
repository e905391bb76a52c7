"""Protocol buffer messages, as used in the footers of HFiles and ORC files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_FIXED_BYTES = {_FIXED64: 8, _FIXED32: 4}


def message_fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield number and value of the fields of a message.

    Raises:
        ValueError: the message is damaged.
    """
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        number, form = tag >> 3, tag & 7
        value: int | bytes
        if form == _VARINT:
            value, at = varint(data, at)
        elif form == _BYTES:
            size, at = varint(data, at)
            value = part(data, at, size)
            at += size
        elif form in _FIXED_BYTES:
            value = part(data, at, _FIXED_BYTES[form])
            at += len(value)
        else:
            raise ValueError(f"a message has a field of the unknown wire type {form}")
        yield number, value


def varint(data: bytes, at: int) -> tuple[int, int]:
    """Read a varint; return it and the start of the next value.

    Raises:
        ValueError: the varint does not end.
    """
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            break
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise ValueError("a number does not end")


def part(data: bytes, at: int, size: int) -> bytes:
    """Return `size` bytes of a message.

    Raises:
        ValueError: the message has fewer bytes.
    """
    if size > len(data) - at:
        raise ValueError("a message is longer than its container")
    return data[at : at + size]


def encode_message(fields: Iterable[tuple[int, int | bytes]]) -> bytes:
    """Return a message.

    Args:
        fields: number and value of each field, in order; values are not negative.
    """
    out = bytearray()
    for number, value in fields:
        if isinstance(value, bytes):
            out += encode_varint(number << 3 | _BYTES) + encode_varint(len(value)) + value
        else:
            out += encode_varint(number << 3 | _VARINT) + encode_varint(value)
    return bytes(out)


def encode_varint(value: int) -> bytes:
    """Return a non-negative number as a varint: seven bits per byte, lowest first."""
    out = bytearray()
    while value > 0x7F:
        out.append((value & 0x7F) | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
