"""Records of the metadata table that this process has decoded already; its files never change.

A writer reads the list of files for each of its commits. Of that list only the log file of the last commit
is new each time. Between two commits the merged list stays the same, too.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from drawstring.filegroups.read.tasks import InstantRange
from drawstring.model.files import FileSlice, FileStatus

BYTES_MAX: Final = 64 << 20
"""Bytes of records that a process remembers."""

Key = tuple[str, FileStatus, int] | tuple[str, tuple[FileSlice, ...], InstantRange]
"""Address of the metadata table, a file of it, and where in the file the records begin; or of merged records
their slices and the instants that count."""


@dataclass(slots=True)
class DecodedRecords:
    """Records by the place that they are stored at; those that were not asked for longest are forgotten.

    Attributes:
        bytes_max: bytes of records to remember.
    """

    bytes_max: int = BYTES_MAX
    _known: OrderedDict[Key, Sequence[pa.RecordBatch]] = field(default_factory=OrderedDict)
    _bytes: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def get(self, key: Key, decode: Callable[[], Sequence[pa.RecordBatch]]) -> Sequence[pa.RecordBatch]:
        """Return the records at a place.

        Args:
            key: the place.
            decode: reads and decodes them if they are not known.
        """
        with self._lock:
            known = self._known.get(key)
            if known is not None:
                self._known.move_to_end(key)
                return known
        found = decode()
        with self._lock:
            if key not in self._known:
                self._known[key] = found
                self._bytes += _bytes_of(found)
            while self._bytes > self.bytes_max:
                _, forgotten = self._known.popitem(last=False)
                self._bytes -= _bytes_of(forgotten)
        return found


def _bytes_of(batches: Sequence[pa.RecordBatch]) -> int:
    return sum(batch.nbytes for batch in batches)


FILE_LISTS: Final = DecodedRecords()
"""What this process knows of the partition `files` of all tables."""
