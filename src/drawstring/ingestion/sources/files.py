"""Files that arrive in a folder, in the order of their modification times and names.

    checkpoint    the modification time of the last file, in milliseconds, as Hudi's path selector has it
    state         short hashes of the names of the files of that millisecond: one that arrives later is new

Files of one millisecond are never divided between batches: Hudi, which goes on after a time, would not see
the rest. As with Hudi, a name that begins with `.` or `_` hides a file, or a folder with all in it, and a
file has to appear with its whole content at a time that is not before those already seen.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import Final, TypeAlias

import pyarrow as pa

from drawstring.base.clock import Clock
from drawstring.base.errors import InvalidError
from drawstring.ingestion.checkpoints import Checkpoint
from drawstring.ingestion.sources.protocol import Found, Pieces, Reading, SourceBatch
from drawstring.model.files import FileStatus
from drawstring.storage import open_spec
from drawstring.storage.protocol import Storage, StorageSpec

ReadFiles: TypeAlias = Callable[[Storage, Sequence[str], Reading], pa.RecordBatchReader]
"""Reads files of a format."""

LookAtFile: TypeAlias = Callable[[Storage, str, Reading], Found]
"""Finds out what a file has without reading it all."""

_LIMIT_BYTES: Final = 1 << 30
_HASH_DIGITS: Final = 12


@dataclass(frozen=True, slots=True)
class FileSource:
    """Files below a folder.

    Attributes:
        storage: the folder.
        read: reads files of the format.
        clock: tells how old a file is.
        min_age_ms: how old a file has to be.
        limit_bytes: default size of a batch.
        look: finds out what a file has; None to read it.
    """

    storage: Storage
    read: ReadFiles
    clock: Clock
    min_age_ms: int = 0
    limit_bytes: int = _LIMIT_BYTES
    look: LookAtFile | None = None

    @property
    def unit(self) -> str:
        return "bytes"

    def limited(self, limit_bytes: int) -> FileSource:
        """Return the source with another default size of a batch."""
        return replace(self, limit_bytes=limit_bytes)

    def after(self, checkpoint: Checkpoint | None, limit: int | None) -> SourceBatch | None:
        new = self._new_files(checkpoint)
        taken = _within(new, self.limit_bytes if limit is None else limit)
        if not taken:
            return None
        last_ms = taken[-1].modified_ms
        hashes = {_hash(file) for file in taken if file.modified_ms == last_ms}
        if checkpoint is not None and _time_of(checkpoint) == last_ms:
            hashes |= set(checkpoint.state.split())
        paths = [file.path for file in taken]
        return SourceBatch(
            Checkpoint(str(last_ms), " ".join(sorted(hashes))),
            sum(file.size_bytes for file in taken),
            sum(file.size_bytes for file in new[len(taken) :]),
            partial(self.read, self.storage, paths),
            Pieces(
                paths,
                partial(_look, self.look, self.read, self.storage.spec),
                partial(_read, self.read, self.storage.spec),
            ),
        )

    def committed(self, checkpoint: Checkpoint) -> None:
        """Do nothing: the files stay where they are."""

    def close(self) -> None:
        """Do nothing."""

    def _new_files(self, checkpoint: Checkpoint | None) -> list[FileStatus]:
        newest_ms = self.clock.now_ms() - self.min_age_ms if self.min_age_ms else None
        files = [
            file
            for file in self.storage.list_tree("")
            if file.size_bytes
            and not any(part.startswith((".", "_")) for part in file.path.split("/"))
            and (newest_ms is None or file.modified_ms <= newest_ms)
        ]
        files.sort(key=lambda file: (file.modified_ms, file.path))
        if checkpoint is None:
            return files
        time_ms, known = _time_of(checkpoint), set(checkpoint.state.split())
        return [
            file
            for file in files
            if file.modified_ms > time_ms
            or (known and file.modified_ms == time_ms and _hash(file) not in known)
        ]


def _look(
    look: LookAtFile | None, read: ReadFiles, folder: StorageSpec, path: str, reading: Reading
) -> Found:
    if look is not None:
        return look(open_spec(folder), path, reading)
    rows = _read(read, folder, path, reading)
    return Found(path, rows.schema, sum(batch.num_rows for batch in rows))


def _read(read: ReadFiles, folder: StorageSpec, path: str, reading: Reading) -> pa.RecordBatchReader:
    return read(open_spec(folder), [path], reading)


def _within(files: Sequence[FileStatus], limit_bytes: int) -> Sequence[FileStatus]:
    """Return the first files up to a limit, those of one millisecond together; at least one."""
    taken: list[FileStatus] = []
    size_bytes = 0
    for _, together in groupby(files, lambda file: file.modified_ms):
        group = list(together)
        size_bytes += sum(file.size_bytes for file in group)
        if taken and size_bytes > limit_bytes:
            break
        taken += group
    return taken


def _time_of(checkpoint: Checkpoint) -> int:
    try:
        return int(checkpoint.key)
    except ValueError:
        raise InvalidError(
            f"The checkpoint {checkpoint.key!r} is no modification time in milliseconds: the rows came from"
            " another kind of source. Give checkpoint, or ignore_checkpoint to begin with the first file."
        ) from None


def _hash(file: FileStatus) -> str:
    return hashlib.sha256(file.path.encode()).hexdigest()[:_HASH_DIGITS]
