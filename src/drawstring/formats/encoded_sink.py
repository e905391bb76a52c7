"""The writer of files in formats other than Parquet: what all of them have in common.

    rows ──> key summary, summaries of columns ──> columns of the file ──> encoder ──> file

An encoder writes batches, and at the end the entries of the footer (`orc.write`, `lance.write`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final, Protocol

import pyarrow as pa

from drawstring.base.disk_errors import TABLE_DISK, disk_errors
from drawstring.formats.bloom.filters import BloomFilter
from drawstring.formats.bloom.key_summary import KeySummary
from drawstring.formats.parquet.encoding import SharedEncodings
from drawstring.formats.parquet.summaries import RowSummaries
from drawstring.model.column_summary import ColumnSummary
from drawstring.schema.evolve import conform
from drawstring.schema.meta import RECORD_KEY
from drawstring.storage.protocol import Storage

_COMPRESSION_GUESS: Final = 0.5
_HEAD_BYTES_MAX: Final = 4 << 10
"""Bytes of a file in which there need not be rows."""


class FileEncoder(Protocol):
    """Writes the bytes of a file."""

    @property
    def bytes_written(self) -> int:
        """Number of bytes so far."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows."""

    def finish(self, entries: Mapping[str, str]) -> None:
        """Write what is left, and a footer with some entries."""

    def abort(self) -> None:
        """Give up."""


class EncodedSink:
    """Writes a base or log file; see `ParquetSink`, whose methods it has.

    Attributes:
        keys: what the footer says of the record keys; None if it says nothing.

    Args:
        storage: storage of the table.
        path: path of the file, relative to the table's root.
        schema: its columns, including meta columns.
        encoder: makes the encoder of the opened file.
        entries: entries of the footer.
        bloom: rate of false positives of the bloom filter that the footer gets beside the smallest and
            largest record key, 0 for neither; or the filter of the file that this one replaces.
    """

    def __init__(
        self,
        storage: Storage,
        path: str,
        schema: pa.Schema,
        encoder: Callable[[pa.NativeFile], FileEncoder],
        entries: Mapping[str, str],
        bloom: float | BloomFilter,
    ) -> None:
        self._storage = storage
        self._path = path
        self._schema = schema
        self._entries = dict(entries)
        self.keys = _key_summary(bloom) if bloom and RECORD_KEY in schema.names else None
        self._summaries: RowSummaries | None = None
        self._file = storage.create(path)
        self._plain = self._stored = self._stored_plain = 0
        try:
            self._encoder = encoder(self._file)
        except BaseException:
            self._discard()
            raise

    @property
    def bytes_written(self) -> int:
        """Estimated size of the file if it ended here, including rows that the encoder holds."""
        ratio = self._stored / self._stored_plain if self._stored_plain else _COMPRESSION_GUESS
        return self._encoder.bytes_written + int((self._plain - self._stored_plain) * ratio)

    def write(self, batch: pa.RecordBatch, *, is_known: bool = False) -> None:
        """Add rows.

        Args:
            batch: the file's columns, in any order.
            is_known: whether the file that this one replaces had all the keys.
        """
        if self.keys is not None:
            self.keys.add(batch.column(RECORD_KEY), is_known=is_known)
        rows = _without_offsets(conform(batch, self._schema))
        if self._summaries is not None:
            self._summaries.add([rows])
        with disk_errors(TABLE_DISK, self._path):
            self._encoder.write(rows)
        self._plain += rows.nbytes
        stored = self._encoder.bytes_written
        if stored > self._stored + _HEAD_BYTES_MAX:
            self._stored, self._stored_plain = stored, self._plain

    def flush(self) -> bool:
        """Return that encoders store rows when they have enough of them, and not before."""
        return False

    def close(self) -> int:
        """Write the remaining rows and the footer.

        Returns:
            The file's size in bytes.
        """
        try:
            with disk_errors(TABLE_DISK, self._path):
                keys = {} if self.keys is None else self.keys.footer()
                self._encoder.finish(keys | self._entries)
                size_bytes = int(self._file.tell())
                self._file.close()
                return size_bytes
        except BaseException:
            self.abort()
            raise

    def summarize(self, columns: Sequence[str]) -> None:
        """Have the summaries of some columns made, before any rows are written."""
        self._summaries = RowSummaries(columns, self._schema) if columns else None

    def share(self, encodings: SharedEncodings) -> None:
        """Do nothing: the encodings of Parquet are not those of other formats."""

    def add_entries(self, entries: Mapping[str, str]) -> None:
        """Add entries to the footer; they take the place of those with the same names."""
        self._entries |= entries

    def summaries(self) -> tuple[ColumnSummary, ...] | None:
        """Return the summaries of the closed file; None if none were wanted."""
        return None if self._summaries is None else self._summaries.finished()

    def abort(self) -> None:
        """Discard the file and delete its written part."""
        self._encoder.abort()
        self._discard()

    def _discard(self) -> None:
        with suppress(OSError, ValueError, pa.ArrowException):
            self._file.close()
        self._storage.delete([self._path])


def _without_offsets(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch whose nested arrays begin with their buffers.

    Of slices of structs with nested fields Arrow's ORC writer stores values of other rows, and Lance panics.
    """
    columns = [pa.concat_arrays([each]) if each.type.num_fields else each for each in batch.columns]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _key_summary(bloom: float | BloomFilter) -> KeySummary:
    return KeySummary(bloom) if isinstance(bloom, BloomFilter) else KeySummary(rate=bloom)
