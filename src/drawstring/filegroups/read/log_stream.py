"""The log side of a slice whose log files are too large to hold: settled by keys, then read block by block.

    blocks in merge order ── keys, ordering, marks of deletion ──> rows ── winners ──> one number a key
    blocks in merge order ── the columns needed, batch by batch ──> the rows with these numbers

So the log files are read twice, and one block is in memory at a time. It takes tables that keep the version
which wins as it is; where versions are merged column by column, all of them are held.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa

from drawstring.filegroups.read.deletions import delete_columns
from drawstring.filegroups.read.log_records import LogPiece, LogReading, LogRecords, merged_records, open_logs
from drawstring.formats.log_inline import BlockType
from drawstring.merge.choose import merger_of
from drawstring.merge.order import Array
from drawstring.model.files import FileSlice
from drawstring.schema.meta import RECORD_KEY

HELD_BYTES_MAX: Final = 256 << 20
"""Bytes of log files whose records are held in memory."""

_NUMBER: Final = "_number"


@dataclass(frozen=True, slots=True)
class StreamedRecords(LogRecords):
    """The surviving log record of each key, all but its key and what orders it left in the log files.

    Attributes:
        reading: how to read the rest.
        file_slice: the slice with the log files.
    """

    reading: LogReading
    file_slice: FileSlice

    def rows(self, alive: Array, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield some of the records, in the order of the log files; see `LogRecords`."""
        numbers = self.versions.rows.column(_NUMBER).to_numpy()[alive]
        if not len(numbers):
            return
        wanted = np.zeros(int(numbers.max()) + 1, dtype=bool)
        wanted[numbers] = True
        with open_logs(self.reading, self.file_slice) as logs:
            first = 0
            for placed in logs.blocks_to_merge(self.reading.instants):
                if placed.block.kind is BlockType.DELETE:
                    first += logs.read(placed).rows.num_rows
                    continue
                for batch in logs.rows(placed):
                    chosen = np.zeros(batch.num_rows, dtype=bool)
                    part = wanted[first : first + batch.num_rows]
                    chosen[: len(part)] = part
                    first += batch.num_rows
                    if chosen.any():
                        yield batch.select(list(names)).filter(pa.array(chosen))


def streams(reading: LogReading, file_slice: FileSlice) -> bool:
    """Tell whether the log files of a slice are to be read twice rather than held.

    Args:
        reading: how they are read.
        file_slice: the slice.
    """
    size_bytes = sum(log.status.size_bytes for log in file_slice.logs)
    if size_bytes <= HELD_BYTES_MAX or not merger_of(reading.config).chooses_whole_records:
        return False
    if len(_settling(reading)) == len(reading.schema):
        return False
    with open_logs(reading, file_slice) as logs:
        return not any(placed.block.is_partial for placed in logs.placed)


def stream_log_records(reading: LogReading, file_slice: FileSlice) -> StreamedRecords:
    """Settle which log record of each key survives, and leave the records where they are.

    Args:
        reading: how the log files are read.
        file_slice: the slice; see `streams`.

    Raises:
        CorruptTableError: a log file is missing or a whole block in it is damaged.
        UnsupportedError: a block that this release cannot read.
    """
    narrow = replace(reading, schema=_settling(reading))
    with open_logs(narrow, file_slice) as logs:
        pieces = list(_numbered(logs.read(each) for each in logs.blocks_to_merge(reading.instants)))
    numbered = narrow.schema.append(pa.field(_NUMBER, pa.int64()))
    merged = merged_records(replace(narrow, schema=numbered), pieces)
    return StreamedRecords(merged.versions, merged.merger, None, reading, file_slice)


def _numbered(pieces: Iterator[LogPiece]) -> Iterator[LogPiece]:
    """Give every record its number among all of them."""
    first = 0
    for piece in pieces:
        count = piece.rows.num_rows
        numbers = pa.array(np.arange(first, first + count))
        first += count
        yield replace(piece, rows=piece.rows.append_column(_NUMBER, numbers))


def _settling(reading: LogReading) -> pa.Schema:
    """Return the columns that say which version of a record wins."""
    config, schema = reading.config, reading.schema
    keys = [RECORD_KEY] if config.populate_meta_fields else config.record_key_fields
    names = {*keys, *reading.ordering_fields, *delete_columns(config, schema)}
    return pa.schema([field for field in schema if field.name in names])
