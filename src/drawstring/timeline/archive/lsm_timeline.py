"""The archived timeline in layout 2: a small LSM tree of Parquet files.

_version_, manifest_<n>    the files that count, see `manifests`
<first>_<last>_<level>.parquet   sorted by requested time; first and last are requested times
    instantTime, completionTime, action, metadata (the completed file), plan, version
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.errors import CorruptTableError, MissingFileError
from drawstring.formats.metadata.commit import decode_commit
from drawstring.formats.metadata.history_rows import HistoryRow, decode_history
from drawstring.formats.parquet import ParquetQuery, read_parquet
from drawstring.model.commit import CommitMetadata
from drawstring.model.files import join_path
from drawstring.model.instant import Action, Instant, State
from drawstring.storage.protocol import Storage
from drawstring.timeline.archive.manifests import HistoryFile, current_version, load_manifest

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
        raise lacking(instant)

    def writes(self) -> Iterator[tuple[Instant, CommitMetadata]]:
        """Yield the archived writes with their metadata, file by file, the newest first."""
        for name in sorted(self._names(), key=lambda name: HistoryFile(name, 0).span[:2][::-1], reverse=True):
            for row in reversed(decode_history(self._storage.read(join_path(self._folder, name)))):
                if row.action not in _ACTIONS:
                    continue
                instant = Instant(row.requested, Action(row.action), State.COMPLETED, row.completed)
                if instant.is_write:
                    yield instant, decode_commit(row.metadata)

    def rows(self) -> Iterator[list[HistoryRow]]:
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


def lacking(instant: Instant) -> MissingFileError:
    """Return the error for an instant that is missing in the archive."""
    return MissingFileError(
        "The archived timeline lacks an instant. Restore it from a backup.", instant=instant.requested
    )
