"""Footers of native log files that this process has read; the files never change.

A read of a few keys looks at the footers of all log files of a slice, most of which have none of the keys.
Footers that are known take no time, and files that are left out by them are not even opened.

Names of log files never come again in a table that outlives the process. Footers of tables in memory, and of
files that are not as long as listed, are not kept. Footers of base files are not either: their bloom filters
are as large as the keys.
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import Final, TypeAlias

from drawstring.formats.log_native.block import NativeBlock
from drawstring.model.files import FileStatus, LogFile
from drawstring.storage import is_lasting
from drawstring.storage.protocol import Storage

BYTES_MAX: Final = 32 << 20
"""Bytes that a process keeps of all footers, about."""

_CHUNK_BYTES: Final = 1_800
"""Bytes that a footer in memory takes for a column chunk."""

_PARTS_MIN: Final = 16
"""Number of footers for which there is room, whatever their size; those that take more are not kept."""

_Key: TypeAlias = tuple[str, FileStatus]


class FooterMemory:
    """Keeps the footers of the files that were read last.

    Args:
        bytes_max: bytes that are kept.
    """

    def __init__(self, bytes_max: int = BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._lock = Lock()
        self._known: OrderedDict[_Key, NativeBlock] = OrderedDict()
        self._size_bytes = 0

    def recall(self, storage: Storage, log: LogFile) -> NativeBlock | None:
        """Return a log file as a block; None if its footer is not known."""
        key = (storage.spec.uri, log.status)
        with self._lock:
            found = self._known.get(key)
            if found is not None:
                self._known.move_to_end(key)
        return found

    def keep(self, storage: Storage, log: LogFile, block: NativeBlock) -> None:
        """Keep the footer of a file that is as it was listed, unless its name may come again."""
        uri, size_bytes = storage.spec.uri, _size_bytes(block)
        if log.status.size_bytes != block.size_bytes or not is_lasting(uri):
            return
        if block.footer is None or size_bytes * _PARTS_MIN > self._bytes_max:
            return
        with self._lock:
            if (uri, log.status) not in self._known:
                self._known[uri, log.status] = block
                self._size_bytes += size_bytes
            while self._size_bytes > self._bytes_max:
                _, dropped = self._known.popitem(last=False)
                self._size_bytes -= _size_bytes(dropped)

    def forget(self) -> None:
        """Keep nothing any more."""
        with self._lock:
            self._known.clear()
            self._size_bytes = 0


def _size_bytes(block: NativeBlock) -> int:
    """Return about how many bytes a footer takes in memory."""
    footer = block.footer
    if footer is None:
        return 0
    metadata = footer.parquet
    chunks = 0 if metadata is None else metadata.num_row_groups * metadata.num_columns
    texts = (*footer.entries.values(), *block.header.values())
    return chunks * _CHUNK_BYTES + sum(map(len, texts))


FOOTERS: Final = FooterMemory()
