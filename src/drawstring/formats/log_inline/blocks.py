"""Framing of log blocks (specification: Log Format). All numbers are big-endian.

     6  magic          "#HUDI#"
     8  size           bytes that follow, up to and including the total
     4  version        1
     4  type           see BlockType
     *  header         int32 count, then count x { int32 key, int32 length, UTF-8 text }
     8  content length
     *  content
     *  footer         encoded like the header; always empty: 4 zero bytes
     8  total          size + 6: from the magic to the end of the footer

A log file is a sequence of blocks. A block is corrupt (torn) if its total does not match its size, or if
neither a magic nor the end of the file follows it: readers continue at the next complete block.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

import pyarrow as pa

from drawstring.base.errors import REPAIR, CorruptTableError, UnsupportedError
from drawstring.base.resources import HEADER_ENTRIES_MAX

MAGIC: Final = b"#HUDI#"
FORMAT_VERSION: Final = 1

_PREFIX = struct.Struct(">6sqii")
_SIZE_AT = len(MAGIC)
_BODY_AT = _SIZE_AT + 8
_EMPTY_MAP = struct.pack(">i", 0)
_TOTAL_BYTES = 8
_SIZE_MIN = 4 + 4 + 4 + 8 + 4 + _TOTAL_BYTES
_PEEK_BYTES = 16 << 10
_WINDOW_BYTES = 1 << 20
_START = MAGIC + b"\0\0"
"""The first bytes of every block: the size has leading zeros, since no block has 2^48 bytes."""
_FALSE_STARTS_MAX = 10_000
"""Largest number of false block starts in corrupt parts of a file; each may cost a read."""


class BlockType(IntEnum):
    """The type of a block; values are the ordinals in the file."""

    COMMAND = 0
    DELETE = 1
    CORRUPT = 2
    AVRO_DATA = 3
    HFILE_DATA = 4
    PARQUET_DATA = 5
    CDC_DATA = 6

    @property
    def is_data(self) -> bool:
        """Whether the block has records of the table."""
        return self in (BlockType.AVRO_DATA, BlockType.HFILE_DATA, BlockType.PARQUET_DATA)


class HeaderKey(IntEnum):
    """Keys of a block header; values are the ordinals in the file."""

    INSTANT_TIME = 0
    TARGET_INSTANT_TIME = 1
    SCHEMA = 2
    COMMAND_BLOCK_TYPE = 3
    COMPACTED_BLOCK_TIMES = 4
    RECORD_POSITIONS = 5
    BLOCK_IDENTIFIER = 6
    IS_PARTIAL = 7
    BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS = 8
    VERSION = 9


ROLLBACK_COMMAND: Final = "0"
"""Value of COMMAND_BLOCK_TYPE for a block that rolls back the blocks of its target instant."""


@dataclass(frozen=True, slots=True)
class LogBlock:
    """One block of a log file, without its content.

    Attributes:
        kind: type of the block; CORRUPT for a corrupt part of the file, all of which counts as content.
        offset: start of the block in the file.
        size_bytes: size of the whole block.
        content_offset: start of the content in the file.
        content_bytes: size of the content.
        header: texts by key; keys of later formats are omitted.
    """

    kind: BlockType
    offset: int
    size_bytes: int
    content_offset: int
    content_bytes: int
    header: Mapping[HeaderKey, str] = field(default_factory=dict)

    @property
    def end(self) -> int:
        """Start of the next block."""
        return self.offset + self.size_bytes

    @property
    def instant(self) -> str | None:
        """Requested time of the action that wrote the block."""
        return self.header.get(HeaderKey.INSTANT_TIME)

    @property
    def schema_json(self) -> str | None:
        """Avro schema of the records, including meta columns."""
        return self.header.get(HeaderKey.SCHEMA)

    @property
    def rolls_back(self) -> str | None:
        """The instant whose earlier blocks a rollback command rolls back; None for other blocks."""
        is_rollback = self.header.get(HeaderKey.COMMAND_BLOCK_TYPE) == ROLLBACK_COMMAND
        if self.kind is not BlockType.COMMAND or not is_rollback:
            return None
        return self.header.get(HeaderKey.TARGET_INSTANT_TIME)

    @property
    def compacted_instants(self) -> tuple[str, ...]:
        """The instants whose blocks this block of a log compaction replaces."""
        return tuple(filter(None, self.header.get(HeaderKey.COMPACTED_BLOCK_TIMES, "").split(",")))

    @property
    def is_partial(self) -> bool:
        """Whether the records have only the columns that they change."""
        return self.header.get(HeaderKey.IS_PARTIAL, "").lower() == "true"


def scan_blocks(file: pa.NativeFile, size: int, head: bytes = b"") -> list[LogBlock]:
    """Return the blocks of a log file in order, without reading their contents.

    Args:
        file: the log file, open for random access.
        size: its size in bytes.
        head: its first bytes, if they were read already.

    Raises:
        CorruptTableError: a complete block has a damaged header.
        UnsupportedError: a complete block has an unknown type or format version.
    """
    blocks = []
    at = 0
    source = _Source(file, size, head)
    while at < size:
        block = _block_at(source, at)
        blocks.append(block)
        at = block.end
    return blocks


class _Source:
    """A log file with a read buffer, so that small blocks do not need a read each.

    Args:
        file: the file, open for random access.
        size: its size in bytes.
        head: its first bytes, if they were read already.
    """

    def __init__(self, file: pa.NativeFile, size: int, head: bytes) -> None:
        self._file = file
        self.size = size
        self._buffer_start = 0
        self._buffer = head
        self._false_starts = 0

    def hold(self, at: int, size: int) -> bytes:
        """Read bytes, at most up to the end of the file, into the buffer."""
        self._buffer = _read(self._file, at, min(size, self.size - at))
        self._buffer_start = at
        return self._buffer

    def take(self, at: int, size: int, *, ahead: bool = True) -> bytes:
        """Return bytes, fewer at the end of the file.

        Args:
            at: start of the bytes.
            size: number of bytes.
            ahead: whether the following bytes are needed next, so that more is read into the buffer.
        """
        size = min(size, self.size - at)
        start = at - self._buffer_start
        if not 0 <= start <= len(self._buffer) - size:
            if not ahead:
                return _read(self._file, at, size)
            self.hold(at, max(size, _PEEK_BYTES))
            start = 0
        return self._buffer[start : start + size]

    def count_false_start(self, at: int) -> None:
        """Count a position at which a block seemed to start but does not.

        Raises:
            CorruptTableError: there are too many.
        """
        self._false_starts += 1
        if self._false_starts > _FALSE_STARTS_MAX:
            raise CorruptTableError(
                f"The log file has more than {_FALSE_STARTS_MAX} block starts up to byte {at} that no"
                f" complete block follows. To repair the table, {REPAIR}."
            )


def _block_at(source: _Source, at: int) -> LogBlock:
    if not _is_whole(source, at):
        stop = _next_whole(source, at + 1)
        return LogBlock(BlockType.CORRUPT, at, stop - at, at, stop - at)
    _, size, version, kind = _PREFIX.unpack(source.take(at, _PREFIX.size))
    if version != FORMAT_VERSION or kind not in _KNOWN:
        raise UnsupportedError(
            f"The log block at byte {at} has format version {version} and type {kind}, but "
            "this release only reads format version 1. Upgrade drawstring."
        )
    return _Header(source, at, _BODY_AT + size).block(BlockType(kind))


_KNOWN = frozenset(BlockType) - {BlockType.CORRUPT}


def _is_whole(source: _Source, at: int) -> bool:
    """Return whether a complete block starts here, followed by another block or the end of the file."""
    head = source.take(at, _PREFIX.size)
    if len(head) < _PREFIX.size or not head.startswith(MAGIC):
        return False
    size = _PREFIX.unpack(head)[1]
    block_end = at + _BODY_AT + size
    if size < _SIZE_MIN or block_end > source.size:
        return False
    tail = source.take(block_end - _TOTAL_BYTES, _TOTAL_BYTES + len(MAGIC), ahead=False)
    total = struct.unpack_from(">q", tail)[0]
    return bool(total == size + _SIZE_AT) and tail[_TOTAL_BYTES:] in (MAGIC, b"")


def _next_whole(source: _Source, at: int) -> int:
    """Return the start of the next complete block, or the end of the file if there is none."""
    while at < source.size:
        window = source.hold(at, _WINDOW_BYTES)
        start = window.find(_START)
        while start >= 0:
            if _is_whole(source, at + start):
                return at + start
            source.count_false_start(at + start)
            start = window.find(_START, start + 1)
        if at + len(window) >= source.size:
            break
        at += len(window) - len(_START) + 1
    return source.size


class _Header:
    """Reads the header of a complete block."""

    def __init__(self, source: _Source, offset: int, size: int) -> None:
        self._source = source
        self._offset = offset
        self._size = size
        self._at = _PREFIX.size

    def block(self, kind: BlockType) -> LogBlock:
        header = self._texts()
        length = self._number(">q", 8)
        rest = self._size - self._at - len(_EMPTY_MAP) - _TOTAL_BYTES
        if not 0 <= length <= rest:
            raise self._damaged(f"claims {length} bytes of content but has at most {rest}")
        return LogBlock(kind, self._offset, self._size, self._offset + self._at, length, header)

    def _texts(self) -> dict[HeaderKey, str]:
        count = self._number(">i", 4)
        if not 0 <= count <= HEADER_ENTRIES_MAX:
            raise self._damaged(f"claims {count} header entries")
        header = {}
        for _ in range(count):
            key = self._number(">i", 4)
            text = self._text(self._number(">i", 4))
            if key in _HEADER_KEYS:
                header[HeaderKey(key)] = text
        return header

    def _number(self, form: str, size: int) -> int:
        number: int = struct.unpack(form, self._take(size))[0]
        return number

    def _text(self, size: int) -> str:
        try:
            return self._take(size).decode()
        except UnicodeDecodeError as error:
            raise self._damaged("has a header that is not text") from error

    def _take(self, size: int) -> bytes:
        if size < 0 or self._at + size > self._size:
            raise self._damaged("has a header that is longer than the block")
        data = self._source.take(self._offset + self._at, size)
        self._at += size
        return data

    def _damaged(self, what: str) -> CorruptTableError:
        return CorruptTableError(
            f"The log block at byte {self._offset} {what}. To repair the table, {REPAIR}."
        )


_HEADER_KEYS = frozenset(HeaderKey)


def read_content(file: pa.NativeFile, block: LogBlock) -> bytes:
    """Return the content of a block.

    Args:
        file: the log file of the block.
        block: one of its blocks.

    Raises:
        CorruptTableError: the file became shorter.
    """
    return _read(file, block.content_offset, block.content_bytes)


def _read(file: pa.NativeFile, offset: int, size: int) -> bytes:
    file.seek(offset)
    data: bytes = file.read(size)
    if len(data) != size:
        raise CorruptTableError(
            f"The log file ends too early, at byte {offset + len(data)}. To repair the table, {REPAIR}."
        )
    return data


def encode_block(kind: BlockType, header: Mapping[HeaderKey, str], content: bytes) -> bytes:
    """Return a complete block.

    Args:
        kind: type of the block.
        header: texts by key.
        content: the content; empty for a command.
    """
    head, tail = block_frame(kind, header, len(content))
    return b"".join((head, content, tail))


def block_frame(kind: BlockType, header: Mapping[HeaderKey, str], content_bytes: int) -> tuple[bytes, bytes]:
    """Return the bytes before and after a block's content, for a content that is written as a stream.

    Args:
        kind: type of the block.
        header: texts by key.
        content_bytes: size of the content.
    """
    texts = _encode_header(header) + struct.pack(">q", content_bytes)
    size = 4 + 4 + len(texts) + content_bytes + len(_EMPTY_MAP) + _TOTAL_BYTES
    head = _PREFIX.pack(MAGIC, size, FORMAT_VERSION, kind) + texts
    return head, _EMPTY_MAP + struct.pack(">q", size + _SIZE_AT)


def _encode_header(header: Mapping[HeaderKey, str]) -> bytes:
    parts = [struct.pack(">i", len(header))]
    for key, text in sorted(header.items()):
        data = text.encode()
        parts += [struct.pack(">ii", key, len(data)), data]
    return b"".join(parts)
