"""Log files that are merged by key first, because they are too large for memory, or few of them still count.

    blocks in merge order ── keys, ordering, delete columns ──> rows ── winners ──> one row number per key
    blocks in merge order ── the columns needed, batch by batch ──> the rows with these numbers

So the log files are read twice, and one block is in memory at a time. This requires a merger that keeps the
winning version as a whole; if versions are merged column by column, all of them are in memory.

A map on disk, as Hudi has it, would write and read every record once more, at random places.

With sorted files the first pass may find that only few blocks have survivors: where the same keys are written
again and again, most records have a newer version. It is asked from eight blocks and eight other columns on,
if the bloom filters of the newest files have a sample of earlier keys. Deletes, partial updates and reads of
some keys need all blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.filegroups.read.log_blocks import PlacedBlock, delete_columns
from drawstring.filegroups.read.log_records import LogRecords, merged_records
from drawstring.filegroups.read.open_logs import LogPiece, OpenLogs, open_logs
from drawstring.filegroups.read.tasks import LogReading
from drawstring.formats.bloom.key_summary import FILTER
from drawstring.formats.log_inline import BlockType
from drawstring.formats.log_native import NativeBlock
from drawstring.formats.wanted_rows import WantedRows
from drawstring.merge.order import Array
from drawstring.merge.record_mergers import merger_of
from drawstring.merge.versions import flat, ordering_columns
from drawstring.model.files import FileSlice
from drawstring.schema.meta import RECORD_KEY

_NUMBER: Final = "_number"

_BLOCKS_MIN: Final = 8
_OTHERS_MIN: Final = 8
"""Blocks, and columns that decide nothing, from which on it is asked which blocks have survivors."""

_KEYS_ASKED: Final = 16
_BLOCKS_ASKED: Final = 32
"""How many keys of one block are looked for in how many later ones."""


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
    return StreamedRecords(
        merged.versions, merged.merger, None, reading, file_slice, replaces=merged.replaces
    )


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


def blocks_with_survivors(logs: OpenLogs, placed: Sequence[PlacedBlock]) -> Sequence[PlacedBlock]:
    """Return the blocks with a record that survives; all, unless later ones seem to have all of their keys.

    Where the same records are written again and again, most log files have nothing left that counts, and of
    those no more than the deciding columns are decoded. Deletes bar it: what they do depends on the records
    between them.

    Args:
        logs: the open log files.
        placed: their blocks to merge, in merge order.
    """
    reading = logs.reading
    columns = _deciding_columns(reading)
    others = len(reading.schema) - len(columns)
    if others < _OTHERS_MIN or len(placed) < _BLOCKS_MIN or not _are_whole_records(logs, placed):
        return placed
    narrow = replace(logs, reading=replace(reading, schema=columns))
    if not _may_come_again(narrow, placed):
        return placed
    pieces = narrow.read_all(placed)
    if any(piece.is_delete.any() for piece in pieces):
        return placed
    merged = merged_records(narrow.reading, [_with_place(piece, at) for at, piece in enumerate(pieces)])
    survivors = pc.unique(merged.versions.rows.column(_NUMBER)).to_pylist()
    return [placed[at] for at in sorted(survivors)]


def _are_whole_records(logs: OpenLogs, placed: Sequence[PlacedBlock]) -> bool:
    """Return whether one of the records of a key is chosen, and all of them are to be read."""
    reading = logs.reading
    if reading.keys is not None or reading.key_range is not None:
        return False
    is_plain = all(each.block.kind.is_data and not each.block.is_partial for each in placed)
    return is_plain and merger_of(reading.config).chooses_whole_records


def _may_come_again(narrow: OpenLogs, placed: Sequence[PlacedBlock]) -> bool:
    """Return whether the bloom filters of the newest files have a sample of the keys in one before them."""
    at = len(placed) * 3 // 4
    blocks = (each.block for each in placed[at + 1 : at + 1 + _BLOCKS_ASKED])
    later = [block for block in blocks if isinstance(block, NativeBlock) and _has_filter(block)]
    keys = flat(narrow.read(placed[at]).keys)
    if not len(keys):
        return False
    sample = np.unique(np.linspace(0, len(keys) - 1, _KEYS_ASKED).astype(np.int64))
    asked = (WantedRows(keys=keys.slice(int(at), 1)) for at in sample)
    return all(any(not block.excludes(each) for block in later) for each in asked)


def _has_filter(block: NativeBlock) -> bool:
    return block.footer is not None and FILTER in block.footer.entries


def _with_place(piece: LogPiece, at: int) -> LogPiece:
    numbers = pa.array(np.full(piece.rows.num_rows, at, dtype=np.int64))
    return replace(piece, rows=piece.rows.append_column(_NUMBER, numbers))
