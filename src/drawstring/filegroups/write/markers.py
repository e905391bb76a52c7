"""Markers: records of the data files of a write, created before each file (specification: Marker).

    .hoodie/.temp/<T>/<partition>/<file>.marker.<CREATE|MERGE|APPEND>   one empty file each
    .hoodie/.temp/<T>/MARKERS.type and MARKERS<n>                       or lines of text files

drawstring writes the first form and reads both: other engines write the second. Paths are read verbatim,
including white space. In a text file, a line feed ends each marker, but a path may contain line feeds too: a
line that does not end like a marker continues in the next line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from drawstring.base.errors import ConflictError
from drawstring.model.commit import WriteStat
from drawstring.model.files import FileStatus, parse_data_file
from drawstring.storage.paths import folders_above
from drawstring.storage.protocol import Storage

MARKER_ROOT = ".hoodie/.temp"

_MARKER = re.compile(r"(.+)\.marker\.(?:CREATE|MERGE|APPEND)", re.DOTALL)
_LINES = re.compile(r"/?(.+?)\.marker\.(?:CREATE|MERGE|APPEND)(?:\n|\Z)", re.DOTALL)
_LINES_FILE = re.compile(r"MARKERS\d+")


class Markers:
    """The markers of one instant.

    Args:
        storage: storage of the table.
        instant: requested time of the instant.
    """

    def __init__(self, storage: Storage, instant: str) -> None:
        self._storage = storage
        self._folder = f"{MARKER_ROOT}/{instant}"

    def create(self, path: str, io_type: str) -> None:
        """Create the marker of a file before the file is created.

        Args:
            path: path of the data file, relative to the table.
            io_type: `CREATE`, `MERGE` or `APPEND`.
        """
        self._storage.put(self._path(path, io_type), b"")

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
        if self._storage.exists(self._path(path, io_type)):
            return
        if may_be_planned():
            self.create(path, io_type)
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

    def _path(self, path: str, io_type: str) -> str:
        return f"{self._folder}/{path}.marker.{io_type}"

    def _named_by(self, status: FileStatus) -> Iterator[str]:
        if status.folder == self._folder and _LINES_FILE.fullmatch(status.name):
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
