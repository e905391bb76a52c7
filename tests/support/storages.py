"""Storages: new ones, copies of their files, what is in them."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from drawstring.base.clock import Clock
from drawstring.model.files import FileStatus, parse_data_file
from drawstring.storage.memory import MemoryStorage
from drawstring.storage.protocol import Storage
from tests.support.faulty_storage import FaultyStorage

Files = Mapping[str, bytes]


class WatchedPuts(FaultyStorage):
    """Looks at each conditional put before it is made."""

    def put_if_absent(self, path: str, data: bytes) -> bool:
        self._look(path, data)
        return super().put_if_absent(path, data)

    def put_if_match(self, path: str, data: bytes, version: str) -> bool:
        self._look(path, data)
        return super().put_if_match(path, data, version)

    def _look(self, path: str, data: bytes) -> None:
        """Act before a file is put."""
        raise NotImplementedError


class Aged(FaultyStorage):
    """Shows the files that a storage has now as older than they are, as if time had passed since.

    Args:
        inner: the storage.
        age_ms: how much older.
    """

    def __init__(self, inner: Storage, age_ms: int = 3_600_000) -> None:
        super().__init__(inner, 1 << 60)
        self._age_ms = age_ms
        self._old = {each.path: each.modified_ms for each in inner.list_tree("")}

    def list_files(self, folder: str) -> list[FileStatus]:
        return [self._aged(each) for each in super().list_files(folder)]

    def _aged(self, status: FileStatus) -> FileStatus:
        is_old = self._old.get(status.path) == status.modified_ms
        return replace(status, modified_ms=status.modified_ms - self._age_ms) if is_old else status


class LongAgo(FaultyStorage):
    """Shows every file as old, but for the one that tells the time.

    That is how the files look to those whose clocks are in another year than that of the storage.
    """

    def __init__(self, inner: Storage) -> None:
        super().__init__(inner, 1 << 60)

    def list_files(self, folder: str) -> list[FileStatus]:
        return [
            each if each.name == "drawstring.clock" else replace(each, modified_ms=0)
            for each in super().list_files(folder)
        ]


def by_clock(storage: Storage, clock: Clock) -> None:
    """Let a storage in memory give its files modification times by a clock."""
    while isinstance(storage, FaultyStorage):
        storage = storage._inner
    if isinstance(storage, MemoryStorage):
        storage._clock = clock


def data_files(storage: Storage) -> set[str]:
    """Return the paths of all base and log files, those of the metadata table apart."""
    return {
        status.path
        for status in storage.list_tree("")
        if parse_data_file(status) and not status.path.startswith(".hoodie/")
    }


def files_below(root: str) -> dict[str, bytes]:
    """Return all files of a folder by path; the lock file, which every writer opens, apart."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(Path(root).rglob("*"))
        if path.is_file() and path.name != "drawstring.lock"
    }


def memory() -> MemoryStorage:
    """Return a new storage in memory."""
    return MemoryStorage(f"memory://{uuid.uuid4()}")


def paths(storage: Storage, folder: str = "") -> list[str]:
    """Return the paths of all files below a folder."""
    return [status.path for status in storage.list_tree(folder)]


def status(path: str, size: int = 1) -> FileStatus:
    return FileStatus(path, size)


def files_of(storage: Storage, folder: str = "") -> dict[str, bytes]:
    """Return all files below a folder by path."""
    return {path: storage.read(path) for path in paths(storage, folder)}


def stored(files: Files) -> MemoryStorage:
    """Return a new storage in memory with some files."""
    storage = memory()
    for path, data in files.items():
        storage.put(path, data)
    return storage


def count_listings(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count from now on how often storages in memory list a folder, by folder."""
    seen: Counter[str] = Counter()
    real = MemoryStorage.list_files

    def counted(storage: MemoryStorage, folder: str) -> list[FileStatus]:
        seen[folder] += 1
        return real(storage, folder)

    monkeypatch.setattr(MemoryStorage, "list_files", counted)
    return seen
