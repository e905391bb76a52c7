"""What other processes do to a table: recorded change by change, played back between a reader's calls."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import pyarrow as pa

from drawstring.model.files import FileStatus
from drawstring.storage.protocol import Storage
from drawstring.table import Table
from drawstring.testing import context_of
from tests.support.faulty_storage import FaultyStorage
from tests.support.storages import Files, files_of, stored

Change = tuple[str, bytes | None]
"""A path and what the file holds from now on; None for a deleted file."""

_NO_FAULT = 1 << 60


class TableChanges(Protocol):
    """A table, and what others do to it."""

    @property
    def files(self) -> Files:
        """Files of the table at first."""

    @property
    def changes(self) -> Sequence[Change]:
        """What others do, change by change."""


class Recorder(FaultyStorage):
    """Notes every change of the storage behind it."""

    def __init__(self, inner: Storage) -> None:
        super().__init__(inner, _NO_FAULT)
        self._inner = inner
        self._known = files_of(inner)
        self.noted: list[Change] = []

    def note(self) -> None:
        """Note what was changed since the last note."""
        now = files_of(self._inner)
        self.noted += [(path, data) for path, data in now.items() if self._known.get(path) != data]
        self.noted += [(path, None) for path in self._known if path not in now]
        self._known = now

    def before_change(self, path: str) -> None:
        self.note()
        super().before_change(path)


def recorded(storage: Storage, table: Table, act: Callable[[Table], object]) -> list[Change]:
    """Return the changes that something makes to a table.

    Args:
        storage: where the table is; changed.
        table: the table there.
        act: what is done to it.
    """
    recorder = Recorder(storage)
    act(Table(replace(context_of(table), storage=recorder)))
    recorder.note()
    return recorder.noted


@dataclass(frozen=True)
class Race:
    """When the changes of others happen.

    Attributes:
        first: number of the reader's storage call before which they begin.
        pace: how many of them come before each call from then on.
    """

    first: int
    pace: int


class Raced(FaultyStorage):
    """A storage that others change between the calls of its reader.

    Args:
        inner: what all of them see.
        changes: those of others.
        race: when they happen.
    """

    def __init__(self, inner: Storage, changes: Sequence[Change], race: Race) -> None:
        super().__init__(inner, _NO_FAULT)
        self._inner = inner
        self._left = iter(changes)
        self._race = race
        self.calls = 0

    def play(self, count: int | None = None) -> None:
        """Let others make some changes; None for all that are left."""
        for path, data in itertools.islice(self._left, count):
            if data is None:
                self._inner.delete([path])
            else:
                self._inner.put(path, data)

    def _call(self) -> None:
        if self.calls >= self._race.first:
            self.play(self._race.pace)
        self.calls += 1

    def list_files(self, folder: str) -> list[FileStatus]:
        self._call()
        return super().list_files(folder)

    def list_names(self, folder: str) -> list[str]:
        self._call()
        return super().list_names(folder)

    def list_folders(self, folder: str) -> list[str]:
        self._call()
        return super().list_folders(folder)

    def list_tree(self, folder: str) -> list[FileStatus]:
        self._call()
        return super().list_tree(folder)

    def exists(self, path: str) -> bool:
        self._call()
        return super().exists(path)

    def read(self, path: str) -> bytes:
        self._call()
        return super().read(path)

    def open(self, path: str) -> pa.NativeFile:
        self._call()
        return super().open(path)

    def read_versioned(self, path: str) -> tuple[bytes, str] | None:
        self._call()
        return super().read_versioned(path)


def races(
    table: TableChanges, pace: int, read: Callable[[Storage, Race], object], stride: int = 1
) -> Iterator[Race]:
    """Let a reader run against the changes of others, which begin before every one of its storage calls.

    Args:
        table: the table, and what others do.
        pace: how many changes come between two calls of the reader.
        read: reads from a storage; checks what it finds.
        stride: with 3 they begin before every third call.

    Yields:
        The races that were run.
    """
    for first in itertools.count(0, stride):
        storage = Raced(stored(table.files), table.changes, Race(first, pace))
        read(storage, Race(first, pace))
        yield Race(first, pace)
        if storage.calls <= first:
            break
