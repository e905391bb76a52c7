"""The writer of files in formats other than Parquet: what all of them have in common.

    rows ──> key summary, summaries of columns ──> columns of the file ──> encoder ──> file

An encoder writes batches, and at the end the entries of the footer (`orc.write`, `lance.write`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

import pyarrow as pa

from drawstring.base.disk_errors import TABLE_DISK, disk_errors
from drawstring.formats.bloom.filters import BloomFilter
from drawstring.formats.new_file import KeyedFile
from drawstring.formats.parquet.encoding import SharedEncodings
from drawstring.formats.parquet.summaries import RowSummaries
from drawstring.model.column_summary import ColumnSummary
from drawstring.schema.evolve import conform
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


class EncodedSink(KeyedFile):
    """Writes a base or log file; see `ParquetSink`, whose methods it has.

    Args:
        storage: storage of the table.
        path: path of the file, relative to the table's root.
        schema: its columns, including meta columns.
        encoder: makes the encoder of the opened file.
        entries: entries of the footer.
        bloom: as of `KeyedFile`.
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
        super().__init__(storage, path, entries, schema, bloom)
        self._schema = schema
        self._summaries: RowSummaries | None = None
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
        self._note_keys(batch, is_known=is_known)
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

    def summarize(self, columns: Sequence[str]) -> None:
        """Have the summaries of some columns made, before any rows are written."""
        self._summaries = RowSummaries(columns, self._schema) if columns else None

    def share(self, encodings: SharedEncodings) -> None:
        """Do nothing: the encodings of Parquet are not those of other formats."""

    def summaries(self) -> tuple[ColumnSummary, ...] | None:
        """Return the summaries of the closed file; None if none were wanted."""
        return None if self._summaries is None else self._summaries.finished()

    def _finish(self, entries: Mapping[str, str]) -> None:
        self._encoder.finish(entries)

    def _give_up(self) -> None:
        self._encoder.abort()


def _without_offsets(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch whose nested arrays begin with their buffers.

    Of slices of structs with nested fields Arrow's ORC writer stores values of other rows, and Lance panics.
    """
    columns = [pa.concat_arrays([each]) if each.type.num_fields else each for each in batch.columns]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)
