"""Markers: records of the data files of a write, created before each file (specification: Marker).

    .hoodie/.temp/<T>/<partition>/<file>.marker.<CREATE|MERGE|APPEND>   one empty file each
    .hoodie/.temp/<T>/MARKERS.type and MARKERS<n>                       or lines of text files

drawstring reads both forms, whichever engine wrote them. It writes the second one where a process knows
many files before it begins the first of them (`MarkerDirState`), otherwise the first. Paths are read
verbatim, including white space. In a text file, a line feed ends each marker, but a path may contain line
feeds too: a line that does not end like a marker continues in the next line.

A marker costs a folder and a file to make, list and delete: a seventh of the time of a write with files of
few rows. A text file pays off from `TOGETHER_MIN` files on. A name in it may belong to a file that never
comes: rollbacks delete the files that exist. Names of markers are not flushed (`storage.local`).
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from enum import Enum, auto
from typing import Any, Final

from drawstring.base.errors import ConflictError
from drawstring.model.commit import WriteStat
from drawstring.model.files import FileStatus, parse_data_file
from drawstring.storage.protocol import Storage, folders_above

MARKER_ROOT = ".hoodie/.temp"

TOGETHER_MIN: Final = 8
"""Number of files from which one text file with their markers takes less time than a marker for each."""

_TYPE_FILE: Final = "MARKERS.type"
_TYPE: Final = b"TIMELINE_SERVER_BASED"
_MARKER = re.compile(r"(.+)\.marker\.(?:CREATE|MERGE|APPEND)", re.DOTALL)
_LINES = re.compile(r"/?(.+?)\.marker\.(?:CREATE|MERGE|APPEND)(?:\n|\Z)", re.DOTALL)
_LINES_FILE = re.compile(r"MARKERS\d+")
_LINE_ENDS: Final = re.compile(r"[\n\r]")


class _Form(Enum):
    """How the markers of a write are stored."""

    OPEN = auto()
    """As files of their own, so far."""
    FILES = auto()
    LINES = auto()


class MarkerDirState:
    """The state of the folder of a write's markers: how they are stored, and which are in text files.

    Hudi's timeline server has one of the same name for each write whose markers it makes.

    Hudi reads one form only: where there is `MARKERS.type`, markers that are files of their own do not count.
    So the first text file repeats the markers that were made before it, and precedes `MARKERS.type`; from
    then on all markers are in text files. Only a process that makes all markers of a write can change the
    form: a state that was sent to another process stays with the form that it had. Threads may share one.
    """

    def __init__(self, form: _Form = _Form.OPEN) -> None:
        self._form = form
        self._lock = threading.Lock()
        self._made: list[str] = []
        self._noted: dict[str, str] = {}
        self._expected: dict[str, Sequence[str]] = {}
        self._next = 0

    def __reduce__(self) -> tuple[Any, ...]:
        with self._lock:
            if self._form is _Form.OPEN:
                self._form = _Form.FILES
            return MarkerDirState, (self._form,)

    def file_of(self, marker: str) -> str | None:
        """Return the path of the text file that has a marker; None if none has."""
        return self._noted.get(marker)

    def expect(self, markers: Sequence[str]) -> None:
        """Take note of markers of which the first one brings the others along."""
        with self._lock:
            if self._form is _Form.LINES or (self._form is _Form.OPEN and len(markers) >= TOGETHER_MIN):
                self._expected.update(dict.fromkeys(markers, markers))

    def write(self, storage: Storage, folder: str, marker: str) -> bool:
        """Write a marker to a new text file, with those that were expected together with it.

        Args:
            storage: storage of the table.
            folder: folder of the markers.
            marker: path of a data file with its ending.

        Returns:
            Whether that was done; otherwise the caller makes a file of the marker.
        """
        with self._lock:
            markers = self._expected.get(marker, (marker,))
            for each in markers:
                self._expected.pop(each, None)
            if self._form is _Form.LINES:
                self._put(storage, folder, markers)
            elif self._form is _Form.OPEN and self._can_be_lines(markers):
                self._put(storage, folder, [*self._made, *markers])
                storage.put_if_absent(f"{folder}/{_TYPE_FILE}", _TYPE)
                self._form, self._made = _Form.LINES, []
            else:
                self._made.append(marker)
            return self._form is _Form.LINES

    def _can_be_lines(self, markers: Sequence[str]) -> bool:
        """Return whether a text file pays, and Hudi reads each marker in it as one."""
        return len(markers) >= TOGETHER_MIN and not any(map(_LINE_ENDS.search, (*self._made, *markers)))

    def _put(self, storage: Storage, folder: str, markers: Sequence[str]) -> None:
        data = "".join(f"{marker}\n" for marker in markers).encode()
        path = f"{folder}/MARKERS{self._next}"
        while not storage.put_if_absent(path, data):  # that of another process
            self._next += 1
            path = f"{folder}/MARKERS{self._next}"
        self._next += 1
        self._noted.update(dict.fromkeys(markers, path))


class Markers:
    """The markers of one instant.

    Args:
        storage: storage of the table.
        instant: requested time of the instant.
        state: of the write that makes markers; without one each is a file of its own.
    """

    def __init__(self, storage: Storage, instant: str, state: MarkerDirState | None = None) -> None:
        self._storage = storage
        self._folder = f"{MARKER_ROOT}/{instant}"
        self._state = state

    def create(self, path: str, io_type: str) -> None:
        """Create the marker of a file before the file is created.

        Args:
            path: path of the data file, relative to the table.
            io_type: `CREATE`, `MERGE` or `APPEND`.
        """
        marker = _named(path, io_type)
        if self._is_in_text(marker):
            return
        if self._state is None or not self._state.write(self._storage, self._folder, marker):
            self._storage.put(f"{self._folder}/{marker}", b"")

    def expect(self, files: Sequence[tuple[str, str]]) -> None:
        """Have the markers of files that are about to be created made at once, with the first of them.

        Args:
            files: path and type of each, as for `create`; files that never come do no harm.
        """
        if self._state is not None:
            self._state.expect([_named(*each) for each in files])

    def confirm(self, path: str, io_type: str, *, may_be_planned: Callable[[], bool] = bool) -> None:
        """Check after a file was written that its write is still running; delete the file if it is not.

        A task attempt may still run after another attempt finished and the write was committed, which
        deleted the markers.

        Args:
            path: path of the data file, relative to the table.
            io_type: the type that was given to `create`.
            may_be_planned: returns whether a compaction may need the file although the write ended. Then it
                is marked again, and stays until a later writer has looked at the plans.

        Raises:
            ConflictError: the write ended.
        """
        marker = _named(path, io_type)
        if self._is_in_text(marker) or self._storage.exists(f"{self._folder}/{marker}"):
            return
        if may_be_planned():
            self._storage.put(f"{self._folder}/{marker}", b"")
            what = "A later write deletes the file of the attempt."
        else:
            self._storage.delete([path])
            self._storage.sync([path.rpartition("/")[0]])
            what = "The file of the attempt was deleted."
        raise ConflictError(
            f"The write ended before this attempt of one of its tasks finished. {what} No action is needed.",
            path=path,
        )

    def files(self) -> list[str]:
        """Return the paths of all data files with markers, sorted; some may not exist."""
        paths: set[str] = set()
        for status in self._storage.list_tree(self._folder):
            paths.update(self._named_by(status))
        return sorted(paths)

    def groups(self) -> frozenset[tuple[str, str]]:
        """Return the file groups, as partition and file id, of all data files with markers."""
        marked = (parse_data_file(FileStatus(path, 0)) for path in self.files())
        return frozenset((file.status.folder, file.file_id) for file in marked if file is not None)

    def are_there(self) -> bool:
        """Return whether the instant has markers."""
        return bool(self._storage.list_tree(self._folder))

    def remove(self) -> None:
        """Delete all markers of the instant."""
        self._storage.delete_tree(self._folder)

    def _is_in_text(self, marker: str) -> bool:
        """Return whether a text file has a marker; those of a write that others ended are gone."""
        file = self._state.file_of(marker) if self._state is not None else None
        return file is not None and self._storage.exists(file)

    def _named_by(self, status: FileStatus) -> Iterator[str]:
        if status.folder == self._folder and _LINES_FILE.fullmatch(status.name):
            with suppress(FileNotFoundError):  # the write has ended
                text = self._storage.read(status.path).decode("utf-8", "replace")
                yield from _LINES.findall(text)
        elif match := _MARKER.fullmatch(status.path.removeprefix(self._folder + "/")):
            yield match[1]


def flush_files(storage: Storage, stats: Sequence[WriteStat]) -> None:
    """Make the data files that are about to be committed survive a power cut; needs no table lock."""
    storage.sync(folders_above(_files_of(stats)))


def ready_files(storage: Storage, requested: str, stats: Sequence[WriteStat]) -> None:
    """Flush the files of a write, and delete those of failed task attempts; needs no table lock.

    Nobody else writes files of its instant. Where tasks may outlive the call that waits for them, those that
    come later are looked for at the commit.

    Args:
        storage: the table's files.
        requested: requested time of the write.
        stats: of its files.
    """
    storage.sync(folders_above([*_files_of(stats), *_delete_uncounted(storage, requested, stats)]))


def discard_failed_attempts(storage: Storage, requested: str, stats: Sequence[WriteStat]) -> None:
    """Delete the files of failed or duplicate task attempts: marked, and not in the commit metadata."""
    if discarded := _delete_uncounted(storage, requested, stats):
        storage.sync(folders_above(discarded))


def _delete_uncounted(storage: Storage, requested: str, stats: Sequence[WriteStat]) -> list[str]:
    counted = set(_files_of(stats))
    uncounted = [path for path in Markers(storage, requested).files() if path not in counted]
    if uncounted:
        storage.delete(uncounted)
    return uncounted


def _files_of(stats: Sequence[WriteStat]) -> list[str]:
    return [path for stat in stats for path in (stat.path, *stat.cdc_files)]


def _named(path: str, io_type: str) -> str:
    return f"{path}.marker.{io_type}"
