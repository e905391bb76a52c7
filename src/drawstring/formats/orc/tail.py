"""The end of an ORC file, and the user metadata in it, which Arrow reads and cannot write.

    stripes | metadata | footer | postscript | 1 byte: length of the postscript

    footer       a protocol buffer message, in chunks (`chunks`) if the file is compressed
    postscript   a message: 1 length of the footer, 2 compression, 3 largest size of a chunk, ...

Messages that follow each other are one message with the fields of both. So entries of user metadata (field 5)
are added behind the footer as chunks of their own, and nothing that Arrow wrote is decoded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from drawstring.formats.orc.chunks import in_chunks
from drawstring.formats.protobuf import encode_message, message_fields

_FOOTER_BYTES, _COMPRESSION, _CHUNK_BYTES = 1, 2, 3
_FOOTER_ENTRY = 5
_NAME, _VALUE = 1, 2
_CHUNK_BYTES_DEFAULT: Final = 256 << 10


def with_entries(end: bytes, entries: Mapping[str, str]) -> bytes:
    """Return the end of a file with more user metadata.

    Args:
        end: the last bytes of the file, its postscript and more of them.
        entries: names and values.
    """
    stop = len(end) - 1
    start = stop - end[stop]
    postscript = list(message_fields(end[start:stop]))
    known = dict(postscript)
    items = [(_FOOTER_ENTRY, _item(name, value)) for name, value in entries.items()]
    added = encode_message(items)
    if known.get(_COMPRESSION, 0):
        added = in_chunks(added, int(known.get(_CHUNK_BYTES, _CHUNK_BYTES_DEFAULT)))
    size = int(known.get(_FOOTER_BYTES, 0)) + len(added)
    changed = encode_message(
        (number, size if number == _FOOTER_BYTES else value) for number, value in postscript
    )
    return b"".join((end[:start], added, changed, bytes((len(changed),))))


def _item(name: str, value: str) -> bytes:
    return encode_message(((_NAME, name.encode()), (_VALUE, value.encode())))
