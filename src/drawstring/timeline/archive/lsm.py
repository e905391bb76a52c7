"""Read and write the archived timeline in layout 2: a small LSM tree of Parquet files.

    _version_                        the number of the current manifest
    manifest_<n>                     JSON: {"files": [{"fileName", "fileLen"}]}, the files that count
    <first>_<last>_<level>.parquet   sorted by requested time; first and last are requested times
        instantTime, completionTime, action, metadata (the completed file), plan, version

A reader that finds no version file, or an empty one, takes the highest manifest: Hudi deletes the version
file and writes it again.

The writer (`LsmTimelineWriter`):

    add      a file of level 0; the oldest files of a level with many files -> one file of the next level
    publish  the new files -> a manifest with them -> the version file
    sweep    delete all but the newest few manifests, and the files that none of those list

Added files are in memory until they are published, so `add` does not need the table lock. A process may die
between any two steps: files in no manifest do not count. A process that stalled while another process
archived fails at the version file, which it replaces only in the version that it read. It deletes nothing
that was listed after it had lost the table lock.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.errors import ConflictError, CorruptTableError, MissingFileError
from drawstring.config.keys.services import Archiving
from drawstring.formats.metadata.archive import (
    ArchivedInstantRow,
    decode_history,
    encode_history,
    merge_history,
)
from drawstring.formats.metadata.commit import decode_commit
from drawstring.formats.parquet import ParquetQuery, read_parquet
from drawstring.model.commit import CommitMetadata
from drawstring.model.files import join_path
from drawstring.model.instant import Action, Instant, State
from drawstring.storage.protocol import Storage

VERSION: Final = "_version_"
MANIFEST: Final = re.compile(r"manifest_(\d{1,18})", re.ASCII)
HISTORY_FILE: Final = re.compile(r"(\d{14,})_(\d{14,})_(\d{1,9})\.parquet", re.ASCII)
"""First and last requested time in the file, and its level."""


StoredVersion = tuple[bytes, str] | None
"""Content and storage version of the version file, None if it does not exist."""


class HistoryFile(NamedTuple):
    """A file of the archive: its name and its size in bytes."""

    name: str
    size_bytes: int

    @property
    def span(self) -> tuple[str, str, int]:
        """First and last requested time, and level; Hudi's upgrade writes the two times in reverse order."""
        match = HISTORY_FILE.fullmatch(self.name)
        assert match is not None, self.name
        first, last = sorted(match.group(1, 2))
        return first, last, int(match[3])


def current_version(storage: Storage, folder: str) -> int | None:
    """Return the number of the current manifest, None if nothing was archived.

    Raises:
        CorruptTableError: the version file does not hold a number.
    """
    try:
        if text := storage.read(join_path(folder, VERSION)).strip():
            return int(text)
    except FileNotFoundError:
        pass
    except ValueError:
        raise CorruptTableError(
            "The version file of the archived timeline is not a number. Write the number of the newest"
            " manifest into it.",
            path=join_path(folder, VERSION),
        ) from None
    names = [status.name for status in storage.list_files(folder)]
    return max((int(match[1]) for name in names if (match := MANIFEST.fullmatch(name))), default=None)


def load_manifest(storage: Storage, folder: str, version: int) -> tuple[HistoryFile, ...]:
    """Return the files of a manifest.

    Raises:
        CorruptTableError: the manifest is gone or damaged.
    """
    path = join_path(folder, f"manifest_{version}")
    try:
        content = json.loads(storage.read(path))
        return tuple(HistoryFile(_checked(entry["fileName"]), _size(entry)) for entry in content["files"])
    except FileNotFoundError:
        raise MissingFileError(
            "A manifest of the archived timeline is missing. Restore it from a backup.", path=path
        ) from None
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CorruptTableError(
            f"A manifest of the archived timeline is damaged ({error}). Restore it from a backup.",
            path=path,
        ) from error


def encode_manifest(files: Iterable[HistoryFile]) -> bytes:
    """Return the content of a manifest with some files."""
    content = {"files": [{"fileName": file.name, "fileLen": file.size_bytes} for file in files]}
    return json.dumps(content, indent=2, separators=(",", " : ")).encode()


def replace_version(storage: Storage, path: str, version: int, before: StoredVersion) -> bool:
    """Make a manifest the current one; False if another process has made another one that.

    Args:
        storage: the table's files.
        path: of the version file.
        version: number of the manifest.
        before: the version file as read before.
    """
    number = str(version).encode()
    if before is None:
        return storage.put_if_absent(path, number)
    return storage.put_if_match(path, number, before[1])


def replace_file(storage: Storage, path: str, data: bytes, check: Callable[[], None]) -> None:
    """Put a file of the archive, replacing one that an interrupted archiver may have left.

    A file of the process that archived while this one stalled has another version than the one read here, or
    the table lock is lost.

    Args:
        storage: the table's files.
        path: of the file.
        data: its content.
        check: makes sure that the table lock is still held.

    Raises:
        ConflictError: another process is putting it at this moment, or the lock was lost.
    """
    versioned = storage.read_versioned(path)
    check()
    if versioned is None:
        is_put = storage.put_if_absent(path, data)
    else:
        is_put = versioned[0] == data or storage.put_if_match(path, data, versioned[1])
    if not is_put:
        raise archived_meanwhile(path)


def archived_meanwhile(path: str) -> ConflictError:
    """Return the error of an archiver that stalled while another process archived."""
    return ConflictError(
        "Another process archived instants of this table while this one stalled. Try again.", path=path
    )


def _checked(name: object) -> str:
    if not isinstance(name, str) or not HISTORY_FILE.fullmatch(name):
        raise ValueError(f"{name!r} is not the name of an archive file")
    return name


def _size(entry: dict[str, object]) -> int:
    size = entry.get("fileLen")
    return size if isinstance(size, int) else 0


_ACTIONS: Final = frozenset(action.value for action in Action)
_TYPES: Final = pa.schema(
    [(name, pa.string()) for name in ("instantTime", "completionTime", "action")]
    + [("metadata", pa.binary())]
)


class LsmTimeline:
    """The archived instants of a table in layout 2.

    Args:
        storage: the table's files.
        folder: the folder of the archive.
    """

    def __init__(self, storage: Storage, folder: str) -> None:
        self._storage = storage
        self._folder = folder
        self._files: tuple[str, ...] | None = None

    def is_empty(self) -> bool:
        """Return whether nothing was archived."""
        return not self._names()

    def completed(self, start: str, end: str | None = None) -> list[Instant]:
        """Return the instants whose completion time lies in a range, by requested time.

        Files whose first instant was requested after the end are skipped; in the others, row groups are
        skipped by the statistics of the completion time.

        Args:
            start: exclusive.
            end: inclusive; None for no end.
        """
        where = pc.field("completionTime") > start
        if end is not None:
            where = where & (pc.field("completionTime") <= end)
        instants: set[Instant] = set()
        for name in self._names():
            first, _, _ = HistoryFile(name, 0).span
            if end is not None and first > end:
                continue
            instants.update(self._instants(name, where))
        return sorted(instants)

    def commit_metadata(self, instant: Instant) -> CommitMetadata:
        """Return the commit metadata of an archived write.

        Raises:
            CorruptTableError: the archive does not have it, or it is damaged.
        """
        where = pc.field("instantTime") == instant.requested
        for name in self._names():
            first, last, _ = HistoryFile(name, 0).span
            if not first <= instant.requested <= last:
                continue
            for batch in self._rows(name, ("instantTime", "action", "metadata"), where):
                for row in batch.to_pylist():
                    if row["action"] == instant.action:
                        return decode_commit(row["metadata"] or b"")
        raise missing_instant_error(instant)

    def writes(self) -> Iterator[tuple[Instant, CommitMetadata]]:
        """Yield the archived writes with their metadata, file by file, the newest first."""
        for name in sorted(self._names(), key=lambda name: HistoryFile(name, 0).span[:2][::-1], reverse=True):
            for row in reversed(decode_history(self._storage.read(join_path(self._folder, name)))):
                if row.action not in _ACTIONS:
                    continue
                instant = Instant(row.requested, Action(row.action), State.COMPLETED, row.completed)
                if instant.is_write:
                    yield instant, decode_commit(row.metadata)

    def rows(self) -> Iterator[list[ArchivedInstantRow]]:
        """Yield all archived instants with their metadata, by file, oldest first."""
        for name in sorted(self._names()):
            yield decode_history(self._storage.read(join_path(self._folder, name)))

    def _instants(self, name: str, where: pc.Expression) -> list[Instant]:
        return [
            Instant(row["instantTime"], Action(row["action"]), State.COMPLETED, row["completionTime"])
            for batch in self._rows(name, ("instantTime", "completionTime", "action"), where)
            for row in batch.to_pylist()
            if row["action"] in _ACTIONS
        ]

    def _rows(self, name: str, columns: Sequence[str], where: pc.Expression) -> list[pa.RecordBatch]:
        path = join_path(self._folder, name)
        batches = list(read_parquet(self._storage, path, ParquetQuery(columns, where, types=_TYPES)))
        expected = pa.schema([_TYPES.field(column) for column in columns])
        for batch in batches:
            texts = [batch.column(name) for name in batch.schema.names if name != "metadata"]
            nulls = any(column.null_count for column in texts)
            if not batch.schema.remove_metadata().equals(expected) or nulls:
                raise CorruptTableError(
                    f"A file of the archived timeline lacks values of {', '.join(columns)}. Restore it from a"
                    " backup.",
                    path=path,
                )
        return batches

    def _names(self) -> tuple[str, ...]:
        """Return the names of the files in the current manifest."""
        if self._files is None:
            version = current_version(self._storage, self._folder)
            listed = () if version is None else load_manifest(self._storage, self._folder, version)
            self._files = tuple(file.name for file in listed)
        return self._files


def missing_instant_error(instant: Instant) -> MissingFileError:
    """Return the error for an instant that is missing in the archive."""
    return MissingFileError(
        "The archived timeline lacks an instant. Restore it from a backup.", instant=instant.requested
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

    def write(self, rows: Sequence[ArchivedInstantRow], check: Callable[[], None]) -> None:
        """Add instants, sorted by requested time, and publish them."""
        self._add(rows)
        self._publish(check)

    def tidy(self, check: Callable[[], None]) -> None:
        """Merge the files of levels with many of them, and delete what is no longer needed."""
        self._merge_levels()
        self._publish(check)
        self.sweep(check)

    def prepare(self, rows: Sequence[ArchivedInstantRow]) -> Callable[[], None]:
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

    def _add(self, rows: Sequence[ArchivedInstantRow]) -> None:
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
