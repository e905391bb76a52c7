"""The writer of the archived timeline in layout 2.

    write    a new file of level 0 -> a manifest with it -> the version file
    compact  the oldest files of a level with many files -> one file of the next level
    sweep    delete all but the newest few manifests, and the files that none of those list

A process may die between any two steps: files in no manifest do not count. A process that stalled while
another one archived fails at the version file, which it replaces only in the version that it read. It deletes
nothing that was listed after it had lost the table lock.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from drawstring.config.keys.archive import Archiving
from drawstring.formats.metadata.history_rows import HistoryRow, encode_history, merge_history
from drawstring.model.files import join_path
from drawstring.storage.protocol import Storage
from drawstring.timeline.archive.manifests import (
    HISTORY_FILE,
    MANIFEST,
    VERSION,
    HistoryFile,
    current_version,
    load_manifest,
    replace_file,
    save_manifest,
)

_LEVELS_MAX = 9


class LsmTimelineWriter:
    """Adds instants to the archive; the caller holds the table lock.

    Args:
        storage: the table's files.
        folder: the folder of the archive.
        archiving: file sizes and numbers.
        check: makes sure that the table lock is still held.
    """

    def __init__(
        self, storage: Storage, folder: str, archiving: Archiving, check: Callable[[], None]
    ) -> None:
        self._storage = storage
        self._folder = folder
        self._archiving = archiving
        self._check = check
        self._stored = storage.read_versioned(join_path(folder, VERSION))
        version = current_version(storage, folder)
        self._version = version or 0
        self._files = () if version is None else load_manifest(storage, folder, version)

    def may_have(self, first: str) -> bool:
        """Return whether instants from a requested time on may be in the archive already."""
        return any(file.span[1] >= first for file in self._files)

    def write(self, rows: Sequence[HistoryRow]) -> None:
        """Add instants, sorted by requested time."""
        name = f"{rows[0].requested}_{rows[-1].requested}_0.parquet"
        others = [file for file in self._files if file.name != name]
        self._save([*others, self._put(name, encode_history(rows))])

    def tidy(self) -> None:
        """Compact levels with many files, and delete what is no longer needed."""
        levels = 0
        for level in range(_LEVELS_MAX):
            if not self._compact(level):
                break
            levels += 1
        self._sweep(self._archiving.manifests_kept + levels)

    def _compact(self, level: int) -> bool:
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
        merged = merge_history(self._storage.read(join_path(self._folder, each.name)) for each in chosen)
        first, last = min(each.span[0] for each in chosen), max(each.span[1] for each in chosen)
        new = self._put(f"{first}_{last}_{level + 1}.parquet", merged)
        self._save([*(file for file in self._files if file not in chosen), new])
        return True

    def _put(self, name: str, data: bytes) -> HistoryFile:
        replace_file(self._storage, join_path(self._folder, name), data, self._check)
        return HistoryFile(name, len(data))

    def _save(self, files: Sequence[HistoryFile]) -> None:
        self._stored = save_manifest(
            self._storage, self._folder, self._version + 1, files, self._stored, self._check
        )
        self._version += 1
        self._files = tuple(files)

    def _sweep(self, manifests_kept: int) -> None:
        names = [status.name for status in self._storage.list_files(self._folder)]
        versions = sorted(int(match[1]) for name in names if (match := MANIFEST.fullmatch(name)))
        if versions and versions[-1] > self._version:
            return  # another process archived meanwhile, and sweeps itself
        newest = versions[-manifests_kept:]
        listed = {
            file.name for version in newest for file in load_manifest(self._storage, self._folder, version)
        }
        old = [f"manifest_{version}" for version in versions if version not in newest]
        unlisted = [name for name in names if HISTORY_FILE.fullmatch(name) and name not in listed]
        if old or unlisted:
            self._check()  # otherwise an unlisted file may be one that another process is about to list
            self._storage.delete([join_path(self._folder, name) for name in (*old, *unlisted)])
