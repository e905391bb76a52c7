"""The writer of the archived timeline in layout 2.

    add      a file of level 0; the oldest files of a level with many files -> one file of the next level
    publish  the new files -> a manifest with them -> the version file
    sweep    delete all but the newest few manifests, and the files that none of those list

What is added is in memory until it is published, so that it can be made without the table lock. A process
may die between any two steps: files in no manifest do not count. A process that stalled while another one
archived fails at the version file, which it replaces only in the version that it read. It deletes nothing
that was listed after it had lost the table lock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from drawstring.config.keys.archive import Archiving
from drawstring.formats.metadata.history_rows import HistoryRow, encode_history, merge_history
from drawstring.model.files import join_path
from drawstring.storage.protocol import Storage
from drawstring.timeline.archive.manifests import (
    HISTORY_FILE,
    MANIFEST,
    VERSION,
    HistoryFile,
    archived_meanwhile,
    current_version,
    encode_manifest,
    load_manifest,
    replace_file,
    replace_version,
)

_LEVELS_MAX = 9
_MANIFESTS_MIN = 2
"""The manifest before stays: the version file that names the new one may not be on the disk yet."""


class LsmTimelineWriter:
    """Adds instants to the archive; the caller holds the table lock while it publishes and sweeps.

    Args:
        storage: the table's files.
        folder: the folder of the archive.
        archiving: file sizes and numbers.

    `check` of its methods makes sure that the table lock is still held.
    """

    def __init__(self, storage: Storage, folder: str, archiving: Archiving) -> None:
        self._storage = storage
        self._folder = folder
        self._archiving = archiving
        self._stored = storage.read_versioned(join_path(folder, VERSION))
        version = current_version(storage, folder)
        self._version = version or 0
        self._files = () if version is None else load_manifest(storage, folder, version)
        self._new: dict[str, bytes] = {}

    def may_have(self, first: str) -> bool:
        """Return whether instants from a requested time on may be in the archive already."""
        return any(file.span[1] >= first for file in self._files)

    def write(self, rows: Sequence[HistoryRow], check: Callable[[], None]) -> None:
        """Add instants, sorted by requested time, and publish them."""
        self._add(rows)
        self._publish(check)

    def tidy(self, check: Callable[[], None]) -> None:
        """Merge the files of levels with many of them, and delete what is no longer needed."""
        self._merge_levels()
        self._publish(check)
        self.sweep(check)

    def prepare(self, rows: Sequence[HistoryRow]) -> Callable[[], None]:
        """Make the files with instants more, sorted by requested time, without the table lock.

        Returns:
            Drops what the storage has staged of them, if they are not published.
        """
        self._add(rows)
        self._merge_levels()
        new = (*self._new.values(), encode_manifest(self._files), str(self._version + 1).encode())
        return self._storage.stage([(self._folder, data) for data in new])

    def is_current(self) -> bool:
        """Return whether nobody else has archived since this writer was made."""
        return self._storage.read_versioned(join_path(self._folder, VERSION)) == self._stored

    def put_files(self, check: Callable[[], None]) -> None:
        """Store the new files; the caller flushes the folder then."""
        for name, data in self._new.items():
            replace_file(self._storage, join_path(self._folder, name), data, check)

    def put_manifest(self, check: Callable[[], None]) -> None:
        """Store the manifest with the new files, which are on the disk; the caller flushes the folder."""
        path = join_path(self._folder, f"manifest_{self._version + 1}")
        replace_file(self._storage, path, encode_manifest(self._files), check)

    def put_version(self, check: Callable[[], None]) -> None:
        """Make the new manifest, which is on the disk, the current one.

        Raises:
            ConflictError: another process archived meanwhile, or the lock was lost: a write that is about to
                be archived may have a savepoint by now.
        """
        path = join_path(self._folder, VERSION)
        check()
        if not replace_version(self._storage, path, self._version + 1, self._stored):
            raise archived_meanwhile(path)
        self._version += 1
        self._new.clear()

    def sweep(self, check: Callable[[], None]) -> None:
        """Delete old manifests, and the files that no manifest lists which is left."""
        names = [status.name for status in self._storage.list_files(self._folder)]
        versions = sorted(int(match[1]) for name in names if (match := MANIFEST.fullmatch(name)))
        if versions and versions[-1] > self._version:
            return  # another process archived meanwhile, and sweeps itself
        newest = versions[-max(self._archiving.manifests_kept, _MANIFESTS_MIN) :]
        listed = {
            file.name for version in newest for file in load_manifest(self._storage, self._folder, version)
        }
        old = [f"manifest_{version}" for version in versions if version not in newest]
        unlisted = [name for name in names if HISTORY_FILE.fullmatch(name) and name not in listed]
        if old or unlisted:
            check()  # otherwise an unlisted file may be one that another process is about to list
            self._storage.delete([join_path(self._folder, name) for name in (*old, *unlisted)])

    def _publish(self, check: Callable[[], None]) -> None:
        if not self._new:
            return
        self.put_files(check)
        self._storage.sync([self._folder])
        self.put_manifest(check)
        self._storage.sync([self._folder])
        self.put_version(check)
        self._storage.sync([self._folder])
        self._stored = self._storage.read_versioned(join_path(self._folder, VERSION))

    def _add(self, rows: Sequence[HistoryRow]) -> None:
        name = f"{rows[0].requested}_{rows[-1].requested}_0.parquet"
        self._replace((file for file in self._files if file.name == name), name, encode_history(rows))

    def _merge_levels(self) -> None:
        for level in range(_LEVELS_MAX):
            if not self._merge(level):
                break

    def _merge(self, level: int) -> bool:
        files = sorted(file for file in self._files if file.span[2] == level)
        if len(files) < self._archiving.batch_files:
            return False
        chosen: list[HistoryFile] = []
        for file in files[: self._archiving.batch_files]:
            if sum(each.size_bytes for each in (*chosen, file)) > self._archiving.file_bytes_max:
                break
            chosen.append(file)
        if len(chosen) < 2:
            return False
        merged = merge_history(self._content(each.name) for each in chosen)
        first, last = min(each.span[0] for each in chosen), max(each.span[1] for each in chosen)
        self._replace(chosen, f"{first}_{last}_{level + 1}.parquet", merged)
        return True

    def _content(self, name: str) -> bytes:
        new = self._new.get(name)
        return self._storage.read(join_path(self._folder, name)) if new is None else new

    def _replace(self, files: Iterable[HistoryFile], name: str, data: bytes) -> None:
        """Put a new file in the place of some that count."""
        gone = set(files)
        for each in gone:
            self._new.pop(each.name, None)
        self._new[name] = data
        self._files = (*(file for file in self._files if file not in gone), HistoryFile(name, len(data)))
