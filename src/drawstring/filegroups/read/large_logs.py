"""Log files that are too large for memory: merged by key first, then read block by block.

    blocks in merge order ── keys, ordering, delete columns ──> rows ── winners ──> one row number per key
    blocks in merge order ── the columns needed, batch by batch ──> the rows with these numbers

So the log files are read twice, and one block is in memory at a time. This requires a merger that keeps the
winning version as a whole; if versions are merged column by column, all of them are in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa

from drawstring.filegroups.read.log_blocks import delete_columns
from drawstring.filegroups.read.log_records import LogRecords, merged_records
from drawstring.filegroups.read.open_logs import LogPiece, open_logs
from drawstring.filegroups.read.tasks import LogReading
from drawstring.formats.log_inline import BlockType
from drawstring.merge.order import Array
from drawstring.merge.record_mergers import merger_of
from drawstring.merge.versions import ordering_columns
from drawstring.model.files import FileSlice
from drawstring.schema.meta import RECORD_KEY

_NUMBER: Final = "_number"


@dataclass(frozen=True, slots=True)
class StreamedRecords(LogRecords):
    """The surviving log record of each key; only keys and ordering columns are in memory.

    Attributes:
        reading: settings for reading the other columns.
        file_slice: the slice with the log files.
    """

    reading: LogReading
    file_slice: FileSlice

    def order(self, alive: Array) -> Array:
        """Return the numbers of some of the records in the order of the log files."""
        selected = np.flatnonzero(alive)
        return selected[np.argsort(self.versions.rows.column(_NUMBER).to_numpy()[selected])]

    def rows(self, alive: Array, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield some of the records, in the order of the log files; see `LogRecords`."""
        numbers = self.versions.rows.column(_NUMBER).to_numpy()[alive]
        if not len(numbers):
            return
        is_selected = np.zeros(int(numbers.max()) + 1, dtype=bool)
        is_selected[numbers] = True
        with open_logs(self.reading, self.file_slice) as logs:
            first = 0
            for placed in logs.blocks_to_merge(self.reading.instants):
                if placed.block.kind is BlockType.DELETE:
                    first += logs.read(placed).rows.num_rows
                    continue
                for batch in logs.rows(placed):
                    chosen = np.zeros(batch.num_rows, dtype=bool)
                    part = is_selected[first : first + batch.num_rows]
                    chosen[: len(part)] = part
                    first += batch.num_rows
                    if chosen.any():
                        yield batch.select(list(names)).filter(pa.array(chosen))


def streams(reading: LogReading, file_slice: FileSlice) -> bool:
    """Return whether the large log files of a slice can be read twice, so as not to hold their records.

    Args:
        reading: settings for reading them.
        file_slice: the slice.
    """
    if not merger_of(reading.config).chooses_whole_records:
        return False
    if len(_deciding_columns(reading)) == len(reading.schema):
        return False
    with open_logs(reading, file_slice) as logs:
        return not any(placed.block.is_partial for placed in logs.placed)


def stream_log_records(reading: LogReading, file_slice: FileSlice) -> StreamedRecords:
    """Determine the surviving log record of each key without loading the records.

    Args:
        reading: settings for reading the log files.
        file_slice: the slice; see `streams`.

    Raises:
        CorruptTableError: a log file is missing, or a complete block in it is damaged.
        UnsupportedError: this release cannot read a block.
    """
    narrow = replace(reading, schema=_deciding_columns(reading))
    with open_logs(narrow, file_slice) as logs:
        pieces = list(_numbered(logs.read(each) for each in logs.blocks_to_merge(reading.instants)))
    numbered = narrow.schema.append(pa.field(_NUMBER, pa.int64()))
    merged = merged_records(replace(narrow, schema=numbered), pieces)
    return StreamedRecords(merged.versions, merged.merger, None, reading, file_slice)


def _numbered(pieces: Iterator[LogPiece]) -> Iterator[LogPiece]:
    """Number the records of all blocks."""
    first = 0
    for piece in pieces:
        count = piece.rows.num_rows
        numbers = pa.array(np.arange(first, first + count))
        first += count
        yield replace(piece, rows=piece.rows.append_column(_NUMBER, numbers))


def _deciding_columns(reading: LogReading) -> pa.Schema:
    """Return the columns that determine which version of a record wins."""
    config, schema = reading.config, reading.schema
    keys = [RECORD_KEY] if config.populate_meta_fields else config.record_key_fields
    names = {*keys, *ordering_columns(config, schema), *delete_columns(config, schema)}
    return pa.schema([field for field in schema if field.name in names])
