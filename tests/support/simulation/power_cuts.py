"""What a power cut may leave of a folder of this machine, worked out from the calls that changed it.

A `Recorder` stands in the place of the file system of a `LocalStorage` and notes every call. `Disk` replays
the calls up to any of them and knows what was flushed by then. The rest a file system may have kept or not:

    bytes of a file     flushed, or else none of them, half of them or all of them
    names in a folder   as they were when the folder was flushed, and of the changes since any, in any order

Changes of names are kept one by one: of two files made one after the other the second may be there alone, and
one that was deleted may be back. Most file systems keep more than that; POSIX promises no more.
"""

from __future__ import annotations

import os
import random
import shutil
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from drawstring.storage.local import FileSystem

FOLDER = -1
"""What a name stands for that is a folder; the names of files stand for numbers."""


class Call(StrEnum):
    """What was asked of the file system."""

    NAMES = "names"
    BYTES = "bytes"
    FLUSH_FILE = "flush file"
    FLUSH_FOLDER = "flush folder"


@dataclass(frozen=True)
class Event:
    """One call.

    Attributes:
        call: which.
        folder: whose names are changed or flushed.
        names: what each name is to stand for, None for nothing any more; all of them at once.
        file: whose bytes are written or flushed.
        data: the bytes.
        modified_ns: when they were written.
    """

    call: Call
    folder: str = ""
    names: tuple[tuple[str, int | None], ...] = ()
    file: int = 0
    data: bytes = b""
    modified_ns: int = 0

    @cached_property
    def is_deletion(self) -> bool:
        return all(to is None for _, to in self.names)

    @property
    def is_flush(self) -> bool:
        return self.call in (Call.FLUSH_FILE, Call.FLUSH_FOLDER)


class Recorder(FileSystem):
    """Changes files, flushes nothing, and notes what was asked for.

    Args:
        root: absolute path of the folder that matters.
        sync: as of the file system.
    """

    def __init__(self, root: str, *, sync: bool = True) -> None:
        super().__init__(sync=sync)
        self.root = root
        self.events: list[Event] = []
        self._files: dict[str, int] = {}
        self._folders: set[str] = set()
        self._numbers = 0
        self._mutex = threading.RLock()

    def create(self, path: str) -> pa.NativeFile:
        self._made(path)
        return super().create(path)

    @contextmanager
    def writing_new(self, path: str, data: bytes, *, flushed: bool = True) -> Iterator[None]:
        if not os.path.lexists(path):
            self._made(path)
        with super().writing_new(path, data, flushed=flushed):
            yield

    def make_empty(self, path: str) -> None:
        super().make_empty(path)
        self._made(path)

    def make_folder(self, path: str) -> None:
        super().make_folder(path)
        self._know(path)

    def rename(self, source: str, target: str) -> None:
        super().rename(source, target)
        with self._mutex:
            number = self._files.pop(source)
            self._files[target] = number
            self._note(Call.NAMES, source, names=((source, None), (target, number)))

    def link(self, source: str, target: str) -> None:
        super().link(source, target)
        with self._mutex:
            self._files[target] = self._files[source]
            self._note(Call.NAMES, target, names=((target, self._files[target]),))

    def unlink(self, path: str) -> None:
        super().unlink(path)
        with self._mutex:
            if self._files.pop(path, None) is not None:
                self._note(Call.NAMES, path, names=((path, None),))

    def remove_tree(self, path: str, *, ignore_errors: bool = False) -> None:
        if not os.path.isdir(path):
            super().remove_tree(path, ignore_errors=ignore_errors)
            return
        for folder, folders, files in os.walk(path, topdown=False):
            for name in files:
                self.unlink(os.path.join(folder, name))
            for name in folders:
                self.remove_folder(os.path.join(folder, name))
        self.remove_folder(path)

    def remove_folder(self, path: str) -> bool:
        was_there = os.path.isdir(path)
        is_gone = super().remove_folder(path)
        if is_gone and was_there:
            self._folders.discard(path)
            self._note(Call.NAMES, path, names=((path, None),))
        return is_gone

    def flush_file(self, descriptor: int, path: str) -> None:
        with self._mutex:
            number = self._files[path]
            data, modified_ns = Path(path).read_bytes(), os.fstat(descriptor).st_mtime_ns
            self._note(Call.BYTES, path, file=number, data=data, modified_ns=modified_ns)
            if self.sync:
                self._note(Call.FLUSH_FILE, path, file=number)

    def flush_folders(self, paths: Iterable[str]) -> None:
        for path in paths if self.sync else ():
            self.flush_folder(path)

    def flush_folder(self, path: str) -> None:
        if os.path.isdir(path):
            self._note(Call.FLUSH_FOLDER, os.path.join(path, "any"))

    def _made(self, path: str) -> None:
        with self._mutex:
            self._numbers += 1
            self._files[path] = self._numbers
            self._know(os.path.dirname(path))
            self._note(Call.NAMES, path, names=((path, self._numbers),))

    def _know(self, folder: str) -> None:
        """Note a folder, also one that the file of a lock brought along."""
        with self._mutex:
            if folder not in self._folders and folder.startswith(f"{self.root}/"):
                self._know(os.path.dirname(folder))
                self._folders.add(folder)
                self._note(Call.NAMES, folder, names=((folder, FOLDER),))

    def _note(self, call: Call, path: str, **about: Any) -> None:
        with self._mutex:
            self.events.append(Event(call, os.path.dirname(path), **about))


@dataclass(frozen=True)
class Cut:
    """What a file system kept of that which was not flushed.

    Attributes:
        name: for people.
        made: how likely a new name is kept.
        deleted: how likely a deletion is kept.
        bytes: which parts of the bytes of a file may be there: `none`, `half`, `all`.
        seed: draws them.
    """

    name: str
    made: float
    deleted: float
    bytes: tuple[str, ...] = ("all",)
    seed: int = 0

    def __str__(self) -> str:
        return f"{self.name} {self.seed}" if self.seed else self.name


CUTS = (
    Cut("everything kept", 1, 1),
    Cut("everything lost", 0, 0, ("none",)),
    Cut("names kept, files empty", 1, 1, ("none",)),
    Cut("names kept, files cut", 1, 1, ("half",)),
    Cut("deletions kept alone", 0, 1, ("none",)),
    Cut("new names kept alone", 1, 0, ("none",)),
)


def random_cuts(seed: int, count: int) -> Iterator[Cut]:
    """Return cuts that keep what they draw."""
    for number in range(count):
        yield Cut("some kept", 0.5, 0.5, ("none", "half", "all"), seed * count + number + 1)


@dataclass
class Disk:
    """A folder of a disk: what of it is flushed, and what is not.

    Attributes:
        root: absolute path of the folder; its own name is taken to be safe.
        names: what names stand for, as far as that is flushed.
        waiting: changes of names that are not, the oldest first.
        safe: bytes of files, as far as they are flushed.
        dirty: bytes that are not.
        modified_ns: when files were written.
    """

    root: str
    names: dict[str, int] = field(default_factory=dict)
    waiting: list[Event] = field(default_factory=list)
    safe: dict[int, bytes] = field(default_factory=dict)
    dirty: dict[int, bytes] = field(default_factory=dict)
    modified_ns: dict[int, int] = field(default_factory=dict)

    def play(self, event: Event) -> None:
        """Take one more call in."""
        if event.call is Call.NAMES:
            self.waiting.append(event)
        elif event.call is Call.BYTES:
            self.modified_ns[event.file] = event.modified_ns
            if self.safe.get(event.file) != event.data:
                self.dirty[event.file] = event.data
        elif event.call is Call.FLUSH_FILE:
            if event.file in self.dirty:
                self.safe[event.file] = self.dirty.pop(event.file)
        else:
            self._flush(event.folder)

    def _flush(self, folder: str) -> None:
        left: list[Event] = []
        for event in self.waiting:
            if event.folder != folder:
                left.append(event)
                continue
            for path, to in event.names:
                if to is None and self.names.get(path) == FOLDER:
                    left = [each for each in left if not f"{each.folder}/".startswith(f"{path}/")]
            _apply(event, self.names)
        self.waiting = left

    def write_back(self) -> None:
        """Flush everything, as the system does by itself within half a minute."""
        for event in self.waiting:
            _apply(event, self.names)
        self.waiting.clear()
        self.safe |= self.dirty
        self.dirty.clear()

    def after(self, cut: Cut) -> dict[str, tuple[int, bytes]]:
        """Return what is there when the power comes back: number and bytes of files by path, and folders."""
        draw = random.Random(cut.seed)
        names = dict(self.names)
        for event in self.waiting:
            if draw.random() < (cut.deleted if event.is_deletion else cut.made):
                _apply(event, names)
        kept = {number: draw.choice(cut.bytes) for number in sorted(self.dirty)}
        there: dict[str, tuple[int, bytes]] = {}
        for path in sorted(names):
            above = os.path.dirname(path)
            if above == self.root or there.get(above, (0, b""))[0] == FOLDER:
                there[path] = (names[path], self._bytes(names[path], kept))
        return there

    def _bytes(self, number: int, kept: dict[int, str]) -> bytes:
        if number not in self.dirty:
            return self.safe.get(number, b"")
        whole = self.dirty[number]
        return {"all": whole, "half": whole[: len(whole) // 2], "none": b""}[kept[number]]

    def write(self, there: dict[str, tuple[int, bytes]], to: Path) -> None:
        """Make a folder of what is there."""
        shutil.rmtree(to, ignore_errors=True)
        to.mkdir()
        for path, (number, data) in there.items():
            target = to / os.path.relpath(path, self.root)
            if number == FOLDER:
                target.mkdir()
            else:
                target.write_bytes(data)
                if number in self.modified_ns:
                    os.utime(target, ns=(self.modified_ns[number],) * 2)


def moments(events: Sequence[Event], *, every: bool) -> list[int]:
    """Return after how many of the calls the power is cut.

    Between two flushes nothing is sure yet, so most that a cut leaves there a later one before the next flush
    leaves as well.

    Args:
        events: of one step.
        every: whether after each of them; else right before flushes, and after the last call.
    """
    if every:
        return list(range(len(events) + 1))
    return [number for number, event in enumerate(events) if event.is_flush] + [len(events)]


def _apply(event: Event, names: dict[str, int]) -> None:
    for path, to in event.names:
        if to is None:
            if names.pop(path, None) == FOLDER:
                for below in [each for each in names if each.startswith(f"{path}/")]:
                    del names[below]
        else:
            names[path] = to
