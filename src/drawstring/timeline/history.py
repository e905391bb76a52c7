"""The archived timeline of layout 2: a small LSM tree of Parquet files.

    _version_                  the number of the manifest that counts
    manifest_<n>               JSON: {"files": [{"fileName", "fileLen"}]}
    <first>_<last>_<level>.parquet   sorted by requested time; first and last are requested times
        instantTime, completionTime, action, metadata (the completed file), plan, version

A reader that finds no version file takes the highest manifest: the version is deleted and written anew.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.errors import CorruptTableError
from drawstring.formats.metadata import decode_commit
from drawstring.formats.parquet import ParquetQuery, read_parquet
from drawstring.model.commit import CommitMetadata
from drawstring.model.files import join_path
from drawstring.model.instant import Action, Instant, State
from drawstring.storage.protocol import Storage

_VERSION: Final = "_version_"
_MANIFEST: Final = re.compile(r"manifest_(\d{1,18})", re.ASCII)
_FILE: Final = re.compile(r"(\d{14,})_(\d{14,})_(\d{1,9})\.parquet", re.ASCII)
_ACTIONS: Final = frozenset(action.value for action in Action)
_TYPES: Final = pa.schema(
    [(name, pa.string()) for name in ("instantTime", "completionTime", "action")]
    + [("metadata", pa.binary())]
)


class History:
    """The archived instants of a table of layout 2.

    Args:
        storage: the table's files.
        folder: the archive.
    """

    def __init__(self, storage: Storage, folder: str) -> None:
        self._storage = storage
        self._folder = folder
        self._files: tuple[str, ...] | None = None

    def is_empty(self) -> bool:
        """Tell whether nothing was archived."""
        return not self._names()

    def completed(self, start: str, end: str | None = None) -> list[Instant]:
        """Return the instants whose completion time lies in a range, by requested time.

        A file whose first instant was requested after the end is not opened; of the others, row group
        statistics of the completion time tell.

        Args:
            start: exclusive.
            end: inclusive; None for no end.
        """
        where = pc.field("completionTime") > start
        if end is not None:
            where = where & (pc.field("completionTime") <= end)
        found: set[Instant] = set()
        for name in self._names():
            match = _FILE.fullmatch(name)
            if match is None or (end is not None and match[1] > end):
                continue
            found.update(self._instants(name, where))
        return sorted(found)

    def commit_metadata(self, instant: Instant) -> CommitMetadata:
        """Return what an archived write says about itself.

        Raises:
            CorruptTableError: the archive does not have it, or it is damaged.
        """
        where = pc.field("instantTime") == instant.requested
        for name in self._names():
            match = _FILE.fullmatch(name)
            if match is None or not match[1] <= instant.requested <= match[2]:
                continue
            for batch in self._rows(name, ("instantTime", "action", "metadata"), where):
                for row in batch.to_pylist():
                    if row["action"] == instant.action:
                        return decode_commit(row["metadata"] or b"")
        raise CorruptTableError("the archived timeline lacks an instant", instant=instant.requested)

    def _instants(self, name: str, where: pc.Expression) -> list[Instant]:
        return [
            Instant(row["instantTime"], Action(row["action"]), State.COMPLETED, row["completionTime"])
            for batch in self._rows(name, ("instantTime", "completionTime", "action"), where)
            for row in batch.to_pylist()
            if row["action"] in _ACTIONS
        ]

    def _rows(self, name: str, columns: Sequence[str], where: pc.Expression) -> list[pa.RecordBatch]:
        path = join_path(self._folder, name)
        found = list(read_parquet(self._storage, path, ParquetQuery(columns, where, types=_TYPES)))
        wanted = pa.schema([_TYPES.field(column) for column in columns])
        for batch in found:
            texts = [batch.column(name) for name in batch.schema.names if name != "metadata"]
            nulls = any(column.null_count for column in texts)
            if not batch.schema.remove_metadata().equals(wanted) or nulls:
                raise CorruptTableError(
                    f"a file of the archived timeline lacks values of {', '.join(columns)}: restore it from a"
                    " backup",
                    path=path,
                )
        return found

    def _names(self) -> tuple[str, ...]:
        """Return the files of the manifest that counts."""
        if self._files is None:
            version = self._version()
            self._files = () if version is None else self._listed(f"manifest_{version}")
        return self._files

    def _version(self) -> int | None:
        try:
            return int(self._storage.read(join_path(self._folder, _VERSION)))
        except FileNotFoundError:
            pass
        except ValueError:
            raise CorruptTableError(
                "the version of the archived timeline is no number: write the number of the newest manifest",
                path=join_path(self._folder, _VERSION),
            ) from None
        names = [status.name for status in self._storage.list_files(self._folder)]
        return max((int(match[1]) for name in names if (match := _MANIFEST.fullmatch(name))), default=None)

    def _listed(self, manifest: str) -> tuple[str, ...]:
        path = join_path(self._folder, manifest)
        try:
            content = json.loads(self._storage.read(path))
            return tuple(_checked(each["fileName"]) for each in content["files"])
        except FileNotFoundError:
            raise CorruptTableError("a manifest of the archived timeline is gone", path=path) from None
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise CorruptTableError(
                f"a manifest of the archived timeline is damaged ({error}): restore it from a backup",
                path=path,
            ) from error


def _checked(name: object) -> str:
    if not isinstance(name, str) or not _FILE.fullmatch(name):
        raise ValueError(f"{name!r} is no name of an archive file")
    return name
