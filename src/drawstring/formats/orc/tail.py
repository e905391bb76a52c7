"""The end of an ORC file, and the user metadata in it, which Arrow reads and cannot write.

    stripes | metadata: statistics of stripes | footer | postscript | 1 byte: length of the postscript

    footer       a protocol buffer message, in chunks (`chunks`) if the file is compressed
    postscript   a message: 1 length of the footer, 2 compression, 3 largest size of a chunk,
                 5 length of the metadata, ...

Messages that follow each other are one message with the fields of both. So entries of user metadata (field 5)
are added behind the footer as chunks of their own, and nothing that Arrow wrote is decoded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from drawstring.formats.orc.chunks import in_chunks
from drawstring.formats.protobuf import encode_message, message_fields

_FOOTER_BYTES, _COMPRESSION, _CHUNK_BYTES, _STATISTICS_BYTES = 1, 2, 3, 5
_FOOTER_ENTRY = 5
_NAME, _VALUE = 1, 2
_CHUNK_BYTES_DEFAULT: Final = 256 << 10


def with_entries(end: bytes, entries: Mapping[str, str]) -> bytes:
    """Return the end of a file with more user metadata.

    Args:
        end: the last bytes of the file, its postscript and more of them.
        entries: names and values.
    """
    start, postscript = _postscript(end)
    added = _stored(encode_message((_FOOTER_ENTRY, _item(*each)) for each in entries.items()), postscript)
    size = int(dict(postscript).get(_FOOTER_BYTES, 0)) + len(added)
    return end[:start] + added + _with_sizes(postscript, {_FOOTER_BYTES: size})


def new_end(end: bytes, footer: bytes) -> bytes:
    """Return the end of a file that follows its stripes, with another footer and no statistics of stripes.

    Args:
        end: the last bytes of the file, its postscript at least.
        footer: the message.
    """
    _, postscript = _postscript(end)
    stored = _stored(footer, postscript)
    return stored + _with_sizes(postscript, {_FOOTER_BYTES: len(stored), _STATISTICS_BYTES: 0})


def _postscript(end: bytes) -> tuple[int, list[tuple[int, int | bytes]]]:
    """Return where the postscript begins, and its fields."""
    stop = len(end) - 1
    start = stop - end[stop]
    return start, list(message_fields(end[start:stop]))


def _stored(message: bytes, postscript: Sequence[tuple[int, int | bytes]]) -> bytes:
    known = dict(postscript)
    if not known.get(_COMPRESSION, 0):
        return message
    return in_chunks(message, int(known.get(_CHUNK_BYTES, _CHUNK_BYTES_DEFAULT)))


def _with_sizes(postscript: Iterable[tuple[int, int | bytes]], sizes: Mapping[int, int]) -> bytes:
    """Return a postscript with other sizes, and the byte that follows it."""
    changed = encode_message((number, sizes.get(number, value)) for number, value in postscript)
    return changed + bytes((len(changed),))


def _item(name: str, value: str) -> bytes:
    return encode_message(((_NAME, name.encode()), (_VALUE, value.encode())))
