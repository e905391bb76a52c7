"""Framing of log blocks (specification: Log Format). All numbers are big-endian.

     6  magic          "#HUDI#"
     8  size           bytes that follow, up to and including the total
     4  version        1
     4  type           see BlockType
     *  header         int32 count, then count x { int32 key, int32 length, UTF-8 text }
     8  content length
     *  content
     *  footer         coded as the header; always empty: 4 zero bytes
     8  total          size + 6: from the magic to the end of the footer

A log file is a plain row of blocks. A block whose total does not repeat its size, or that is not
followed by a magic or the end of the file, is torn: readers go on at the next block that is whole.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

import pyarrow as pa

from drawstring.base.bounds import HEADER_ENTRIES_MAX
from drawstring.base.errors import REPAIR, CorruptTableError, UnsupportedError

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
"""How every block starts: no block has 2^48 bytes."""
_FALSE_STARTS_MAX = 10_000
"""Starts of blocks in torn stretches of a file that turn out to be none; each may cost a read."""


class BlockType(IntEnum):
    """What a block holds; values are the ordinals in the file."""

    COMMAND = 0
    DELETE = 1
    CORRUPT = 2
    AVRO_DATA = 3
    HFILE_DATA = 4
    PARQUET_DATA = 5
    CDC_DATA = 6

    @property
    def is_data(self) -> bool:
        """Whether the block holds records of the table."""
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
"""Value of COMMAND_BLOCK_TYPE for a block that takes back the blocks of its target instant."""


@dataclass(frozen=True, slots=True)
class LogBlock:
    """One block of a log file, its content still in the file.

    Attributes:
        kind: what it holds; CORRUPT for a torn stretch, whose content is all its bytes.
        offset: where the block starts in the file.
        size_bytes: bytes of the whole block.
        content_offset: where the content starts in the file.
        content_bytes: bytes of the content.
        header: texts by key; keys of later formats are left out.
    """

    kind: BlockType
    offset: int
    size_bytes: int
    content_offset: int
    content_bytes: int
    header: Mapping[HeaderKey, str] = field(default_factory=dict)

    @property
    def end(self) -> int:
        """Where the next block starts."""
        return self.offset + self.size_bytes

    @property
    def instant(self) -> str | None:
        """Requested time of the action that wrote the block."""
        return self.header.get(HeaderKey.INSTANT_TIME)

    @property
    def schema_json(self) -> str | None:
        """Avro schema of the records, meta columns included."""
        return self.header.get(HeaderKey.SCHEMA)

    @property
    def rolls_back(self) -> str | None:
        """The instant whose earlier blocks a rollback command takes back; None for other blocks."""
        is_rollback = self.header.get(HeaderKey.COMMAND_BLOCK_TYPE) == ROLLBACK_COMMAND
        if self.kind is not BlockType.COMMAND or not is_rollback:
            return None
        return self.header.get(HeaderKey.TARGET_INSTANT_TIME)

    @property
    def compacted_instants(self) -> tuple[str, ...]:
        """The instants whose blocks this one stands for, after a log compaction."""
        return tuple(filter(None, self.header.get(HeaderKey.COMPACTED_BLOCK_TIMES, "").split(",")))

    @property
    def is_partial(self) -> bool:
        """Whether the records hold only the columns that they change."""
        return self.header.get(HeaderKey.IS_PARTIAL, "").lower() == "true"


def scan_blocks(file: pa.NativeFile, size: int) -> list[LogBlock]:
    """Return the blocks of a log file in order; contents are not read.

    Args:
        file: the log file, open for random access.
        size: its bytes.

    Raises:
        CorruptTableError: a whole block with a header that makes no sense.
        UnsupportedError: a whole block of an unknown type or format version.
    """
    blocks = []
    at = 0
    source = _Source(file, size)
    while at < size:
        block = _block_at(source, at)
        blocks.append(block)
        at = block.end
    return blocks


class _Source:
    """A log file, of which the part that was read last is held: small blocks are not read one by one.

    Args:
        file: open for random access.
        size: its bytes.
    """

    def __init__(self, file: pa.NativeFile, size: int) -> None:
        self._file = file
        self.size = size
        self._held_from = 0
        self._held = b""
        self._false_starts = 0

    def hold(self, at: int, size: int) -> bytes:
        """Read bytes, up to the end of the file, and hold them."""
        self._held = _read(self._file, at, min(size, self.size - at))
        self._held_from = at
        return self._held

    def take(self, at: int, size: int, *, ahead: bool = True) -> bytes:
        """Return bytes, fewer at the end of the file.

        Args:
            at: where they start.
            size: how many.
            ahead: whether what follows is wanted next, so that more is read and held.
        """
        size = min(size, self.size - at)
        start = at - self._held_from
        if not 0 <= start <= len(self._held) - size:
            if not ahead:
                return _read(self._file, at, size)
            self.hold(at, max(size, _PEEK_BYTES))
            start = 0
        return self._held[start : start + size]

    def count_false_start(self, at: int) -> None:
        """Note that no block starts where one seemed to.

        Raises:
            CorruptTableError: it happened too often.
        """
        self._false_starts += 1
        if self._false_starts > _FALSE_STARTS_MAX:
            raise CorruptTableError(
                f"The log file has more than {_FALSE_STARTS_MAX} starts of blocks up to byte {at} that are"
                f" not followed by a whole block; to repair the file, {REPAIR}."
            )


def _block_at(source: _Source, at: int) -> LogBlock:
    if not _is_whole(source, at):
        stop = _next_whole(source, at + 1)
        return LogBlock(BlockType.CORRUPT, at, stop - at, at, stop - at)
    _, size, version, kind = _PREFIX.unpack(source.take(at, _PREFIX.size))
    if version != FORMAT_VERSION or kind not in _KNOWN:
        raise UnsupportedError(
            f"The log block at byte {at} has format version {version} and type {kind}; "
            "this release reads format version 1."
        )
    return _Header(source, at, _BODY_AT + size).block(BlockType(kind))


_KNOWN = frozenset(BlockType) - {BlockType.CORRUPT}


def _is_whole(source: _Source, at: int) -> bool:
    """Tell whether a block starts here, repeats its size at its end, and something sound follows."""
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
    """Return where the next whole block starts, the end of the file where none does."""
    while at < source.size:
        window = source.hold(at, _WINDOW_BYTES)
        found = window.find(_START)
        while found >= 0:
            if _is_whole(source, at + found):
                return at + found
            source.count_false_start(at + found)
            found = window.find(_START, found + 1)
        if at + len(window) >= source.size:
            break
        at += len(window) - len(_START) + 1
    return source.size


class _Header:
    """Reads the header of a whole block."""

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
            raise self._damaged(f"claims {length} bytes of content, at most {rest} are there")
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
        taken = self._source.take(self._offset + self._at, size)
        self._at += size
        return taken

    def _damaged(self, what: str) -> CorruptTableError:
        return CorruptTableError(
            f"The log block at byte {self._offset} {what}; to repair the file, {REPAIR}."
        )


_HEADER_KEYS = frozenset(HeaderKey)


def read_content(file: pa.NativeFile, block: LogBlock) -> bytes:
    """Return the content of a block.

    Args:
        file: the log file that the block was found in.
        block: one of its blocks.

    Raises:
        CorruptTableError: the file became shorter.
    """
    return _read(file, block.content_offset, block.content_bytes)


def _read(file: pa.NativeFile, offset: int, size: int) -> bytes:
    file.seek(offset)
    data: bytes = file.read(size)
    if len(data) != size:
        raise CorruptTableError(f"The log file ends at byte {offset + len(data)}, before it should.")
    return data


def encode_block(kind: BlockType, header: Mapping[HeaderKey, str], content: bytes) -> bytes:
    """Return a whole block.

    Args:
        kind: what the content is.
        header: texts by key.
        content: bytes of the content; empty for a command.
    """
    head, tail = block_frame(kind, header, len(content))
    return b"".join((head, content, tail))


def block_frame(kind: BlockType, header: Mapping[HeaderKey, str], content_bytes: int) -> tuple[bytes, bytes]:
    """Return what stands before and after a block's content, for a content written as a stream.

    Args:
        kind: what the content is.
        header: texts by key.
        content_bytes: bytes of the content.
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
