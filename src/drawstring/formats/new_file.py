"""What the writers of files in all formats have in common: how a file begins, ends and is given up.

NewFile ── KeyedFile ──┬── ParquetSink    row groups (`parquet.write`)
   │                   └── EncodedSink    other formats (`encoded_sink`)
   └── PatchedSink                        parts of another file (`parquet.patched`)
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

import pyarrow as pa

from drawstring.base.disk_errors import TABLE_DISK, disk_errors
from drawstring.formats.bloom.filters import BloomFilter
from drawstring.formats.bloom.key_summary import KeySummary
from drawstring.schema.meta import RECORD_KEY
from drawstring.storage.protocol import Storage


class NewFile:
    """A file that is being written, and deleted if that fails.

    Args:
        storage: storage of the table.
        path: path of the file, relative to the table's root.
        entries: entries of the footer.
    """

    def __init__(self, storage: Storage, path: str, entries: Mapping[str, str]) -> None:
        self._storage = storage
        self._path = path
        self._first_entries = entries
        self._added_entries: dict[str, str] = {}
        self._file = storage.create(path)

    def close(self) -> int:
        """Write the remaining rows and the footer.

        Returns:
            The file's size in bytes.
        """
        try:
            with disk_errors(TABLE_DISK, self._path):
                self._finish(self._entries())
                size_bytes = int(self._file.tell())
                self._file.close()
                return size_bytes
        except BaseException:
            # A deleted file takes disk space as long as it is open.
            self.abort()
            raise

    def add_entries(self, entries: Mapping[str, str]) -> None:
        """Add entries to the footer; they take the place of those with the same names."""
        self._added_entries |= entries

    def abort(self) -> None:
        """Discard the file and delete its written part."""
        self._give_up()
        self._discard()

    def _entries(self) -> dict[str, str]:
        """Return all entries of the footer."""
        return {**self._first_entries, **self._added_entries}

    def _finish(self, entries: Mapping[str, str]) -> None:
        """Write the remaining rows, and a footer with some entries."""
        raise NotImplementedError

    def _give_up(self) -> None:
        """Let go of what writes to the file."""

    def _discard(self) -> None:
        with suppress(OSError, ValueError, pa.ArrowException):
            self._file.close()
        self._storage.delete([self._path])


class KeyedFile(NewFile):
    """A file of rows, whose footer has a summary of their record keys.

    Attributes:
        keys: what the footer says of the record keys; None if it says nothing.

    Args:
        storage, path, entries: as of `NewFile`.
        schema: the columns of the file, including meta columns.
        bloom: rate of false positives of the bloom filter that the footer gets beside the smallest and
            largest record key, 0 for neither; or the filter of the file that this one replaces.
    """

    def __init__(
        self,
        storage: Storage,
        path: str,
        entries: Mapping[str, str],
        schema: pa.Schema,
        bloom: float | BloomFilter,
    ) -> None:
        self.keys = _key_summary(bloom) if bloom and RECORD_KEY in schema.names else None
        super().__init__(storage, path, entries)

    def _entries(self) -> dict[str, str]:
        keys = {} if self.keys is None else self.keys.footer()
        return {**self._first_entries, **keys, **self._added_entries}

    def _note_keys(self, batch: pa.RecordBatch, *, is_known: bool) -> None:
        """Add the keys of rows to the summary; `is_known` tells whether the replaced file had all of them."""
        if self.keys is not None:
            self.keys.add(batch.column(RECORD_KEY), is_known=is_known)


def _key_summary(bloom: float | BloomFilter) -> KeySummary:
    return KeySummary(bloom) if isinstance(bloom, BloomFilter) else KeySummary(rate=bloom)
