"""Records of the metadata table that this process has decoded already; its files never change.

A writer reads the list of files for each of its commits. Of that list only the log file of the last commit
is new each time. Between two commits the merged list stays the same, too. Keys are looked up in the record
index when a write begins, again when it commits, and for queries of a few keys: a small file of the index is
decoded once for all of them.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol, TypeVar

from drawstring.base.bounds import LITTLE_BYTES
from drawstring.filegroups.read.tasks import InstantRange
from drawstring.model.files import FileSlice, FileStatus

BYTES_MAX: Final = 64 << 20
"""Bytes of records that a process remembers."""

_JUST_WRITTEN: Final = -1

FileKey = tuple[str, FileStatus]
"""Address of the metadata table, and a file of it."""

Key = FileKey | tuple[str, FileSlice] | tuple[str, tuple[FileSlice, ...], InstantRange]
"""A file; or of merged records their metadata table and slice, or slices and the instants that count."""


class Sized(Protocol):
    """Records of a file, or of a part of it."""

    @property
    def nbytes(self) -> int: ...


T = TypeVar("T", bound=Sized)


@dataclass(slots=True)
class DecodedRecords:
    """Records by the file that they are stored in; those that were not asked for longest are forgotten.

    Attributes:
        bytes_max: bytes of records to remember.
        base_bytes_max: size of a base file up to which all its records are decoded, to be remembered, when
            some are looked up.
    """

    bytes_max: int = BYTES_MAX
    base_bytes_max: int = 0
    _known: OrderedDict[Key, Sequence[Any]] = field(default_factory=OrderedDict)
    _bytes: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def get(self, key: Key, decode: Callable[[], Sequence[T]]) -> Sequence[T]:
        """Return the records of a file, or merged ones.

        Args:
            key: the file, or what was merged.
            decode: reads and decodes them if they are not known.
        """
        with self._lock:
            known = self._known.pop(key, None)
            if known is None and (written := _written(key)) is not None:
                known = self._known.pop(written, None)
            if known is not None:
                self._known[key] = known
                return known
        found = decode()
        self._keep(key, found)
        return found

    def known(self, key: Key) -> Sequence[Any] | None:
        """Return records that are known, None for others."""
        with self._lock:
            found = self._known.get(key)
            if found is not None:
                self._known.move_to_end(key)
            return found

    def remember(self, key: FileKey, records: Sequence[Sized]) -> None:
        """Remember the records of a file that this process wrote; its modification time is not known."""
        self._keep((key[0], replace(key[1], modified_ms=_JUST_WRITTEN)), records)

    def _keep(self, key: Key, records: Sequence[Sized]) -> None:
        with self._lock:
            if key not in self._known:
                self._known[key] = records
                self._bytes += _bytes_of(records)
            while self._bytes > self.bytes_max:
                _, forgotten = self._known.popitem(last=False)
                self._bytes -= _bytes_of(forgotten)


def _written(key: Key) -> Key | None:
    """Return the key of a file that this process has just written; None for merged records."""
    return (key[0], replace(key[1], modified_ms=_JUST_WRITTEN)) if isinstance(key[1], FileStatus) else None


def _bytes_of(records: Sequence[Sized]) -> int:
    return sum(each.nbytes for each in records)


FILE_LISTS: Final = DecodedRecords()
"""What this process knows of the partition `files` of all tables."""

LITTLE_INDEXES: Final = DecodedRecords(16 << 20, LITTLE_BYTES)
"""What this process knows of small file groups of record indexes."""
