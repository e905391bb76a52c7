"""The source files of bootstrapped base files, from the table's bootstrap index."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from drawstring.base.errors import CorruptTableError, DrawstringError
from drawstring.config.table.config import TableConfig
from drawstring.formats.bootstrap_index import BY_PARTITION, read_bootstrap_index, source_files
from drawstring.model.files import METADATA_BOOTSTRAP, BaseFile, FileSlice, FileStatus, join_path
from drawstring.storage.protocol import Storage


class BootstrapSources:
    """The bootstrap index of a table, read on first use.

    Args:
        storage: the table's files.
        config: the table's settings.
    """

    def __init__(self, storage: Storage, config: TableConfig) -> None:
        self._storage = storage
        self._is_bootstrapped = config.is_bootstrapped
        self._entries: Mapping[str, bytes] | None = None
        self._known: dict[str, Mapping[str, str]] = {}

    def with_source(self, base: BaseFile | None) -> BaseFile | None:
        """Return a base file together with its source file, if it was bootstrapped with metadata only.

        Raises:
            CorruptTableError: the index is missing or damaged.
        """
        if base is None or base.instant != METADATA_BOOTSTRAP or not self._is_bootstrapped:
            return base
        uri = self._sources(base.status.folder).get(base.file_id)
        return base if uri is None else replace(base, source=uri)

    def of(self, partition: str, base_file: str | None) -> str | None:
        """Return the address of the source file of a base file; None if its rows are in the file itself.

        Args:
            partition: partition path.
            base_file: name of the base file; None for none.
        """
        base = BaseFile.parse(FileStatus(join_path(partition, base_file), 0)) if base_file else None
        bootstrapped = self.with_source(base)
        return bootstrapped.source if bootstrapped else None

    def on(self, slices: Iterable[FileSlice]) -> list[FileSlice]:
        """Return file slices whose base files have their source files.

        Raises:
            CorruptTableError: the index is missing or damaged.
        """
        if not self._is_bootstrapped:
            return list(slices)
        return [replace(each, base=self.with_source(each.base)) for each in slices]

    def _sources(self, partition: str) -> Mapping[str, str]:
        if partition not in self._known:
            if self._entries is None:
                self._entries = self._load()
            entry = self._entries.get(partition)
            self._known[partition] = {} if entry is None else source_files(entry)
        return self._known[partition]

    def _load(self) -> Mapping[str, bytes]:
        try:
            with self._storage.open(BY_PARTITION) as file:
                return read_bootstrap_index(file, file.size())
        except FileNotFoundError as error:
            raise CorruptTableError(
                "The table was bootstrapped, but its bootstrap index, which names the files that hold its"
                " rows, is missing. Restore it from a backup.",
                path=BY_PARTITION,
            ) from error
        except DrawstringError as error:
            raise error.at(path=BY_PARTITION) from error.__cause__
