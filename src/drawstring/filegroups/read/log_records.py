"""Log records of a file slice, merged to one record per key.

blocks in merge order ── read the columns needed ──> rows, oldest first ── winners ──> one per key
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from drawstring.base.resources import BATCH_ROWS
from drawstring.filegroups.log_scanner import LogPiece, empty_table, open_logs
from drawstring.filegroups.positions import logged_positions, positions_among
from drawstring.filegroups.read_task import LogReading
from drawstring.merge.record_merger import merger_of
from drawstring.merge.record_version import (
    Array,
    Merger,
    Versions,
    combined_chunks,
    number_keys,
    ordering_of,
    repeated_deletes,
    wins_over,
)
from drawstring.model.files import FileSlice


@dataclass(frozen=True, slots=True)
class LogRecords:
    """The surviving log record of each key.

    Attributes:
        versions: one version per key.
        merger: merged the versions, and merges them with the base records.
        partial_keys: the keys that partial blocks (with some of the columns) touch, maybe repeated; None
            without such blocks.
        instants: all instants whose visibility decided which blocks were merged; None if that is not known.
        positions: the row of the base file that each version belongs to; None unless all are known.
        replaces: which of them win over all earlier versions: they are deletes without ordering value, or
            came after one.
    """

    versions: Versions
    merger: Merger
    partial_keys: pa.Array | None
    instants: frozenset[str] | None = field(default=None, kw_only=True)
    positions: Array | None = field(default=None, kw_only=True)
    replaces: Array = field(kw_only=True)

    def rows(self, alive: Array, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield selected records.

        Args:
            alive: for each record, whether to yield it.
            names: the columns to yield.
        """
        rows = self.versions.rows.select(names)
        rows = rows if alive.all() else rows.filter(pa.array(alive))
        yield from rows.to_batches(max_chunksize=BATCH_ROWS)

    def order(self, alive: Array) -> Array:
        """Return the numbers of selected records in the order in which `rows` yields them."""
        return np.flatnonzero(alive)

    def slice(self, offset: int, length: int) -> LogRecords:
        """Return some of the records, without a copy."""
        replaces = self.replaces[offset : offset + length]
        return replace(self, versions=self.versions.slice(offset, length), positions=None, replaces=replaces)

    def beats(self, base_ordering: Sequence[pa.Array], numbers: Array) -> Array:
        """Return whether log records win as a whole over base records of the same keys.

        Args:
            base_ordering: ordering columns of the base records.
            numbers: row number of the log record for each base record.
        """
        if not self.versions.ordering:
            return np.ones(len(numbers), dtype=bool)
        taken = pa.array(numbers)
        wins = wins_over([column.take(taken) for column in self.versions.ordering], base_ordering)
        return np.asarray(wins | self.replaces[numbers])


def read_log_records(reading: LogReading, file_slice: FileSlice) -> LogRecords:
    """Read and merge the log files of a slice.

    Raises:
        CorruptTableError: a log file is missing, or a complete block in it is damaged.
        UnsupportedError: this release cannot read a block.
    """
    with open_logs(reading, file_slice) as logs:
        blocks = logs.blocks_to_merge(reading.instants)
        pieces = logs.read_all(blocks)
        instants = logs.instants
    merged = replace(merged_records(reading, pieces), instants=instants)
    if reading.positions_of is None:
        return merged
    numbered = logged_positions(blocks, [piece.keys for piece in pieces], reading.positions_of)
    return replace(merged, positions=positions_among(merged.versions.keys, numbered))


def merged_records(
    reading: LogReading,
    pieces: Sequence[LogPiece],
    among: Sequence[LogPiece] | None = None,
    *,
    in_order: bool = False,
) -> LogRecords:
    """Merge the records of blocks.

    Args:
        reading: settings with which they were read.
        pieces: the records of each block, in merge order.
        among: all blocks, which determine the merger, if `pieces` has only some of their records.
        in_order: whether the merged records are sorted by key.
    """
    among = pieces if among is None else among
    pieces = [piece for piece in pieces if piece.rows.num_rows]
    rows = pa.concat_tables([piece.rows for piece in pieces] or [empty_table(reading)])
    keys = combined_chunks(
        pa.chunked_array([key for piece in pieces for key in piece.keys.chunks], pa.string())
    )
    codes, distinct = number_keys(keys, in_order=in_order)
    is_commit_time_ordering_delete = _joined([piece.is_commit_time_ordering_delete for piece in pieces])
    is_of_block = _joined([np.full(piece.rows.num_rows, piece.is_delete_block) for piece in pieces])
    versions = Versions(
        rows,
        keys,
        ordering_of(rows, reading.config),
        _joined([piece.is_delete for piece in pieces]),
        is_commit_time_ordering_delete | repeated_deletes(codes, is_of_block, is_commit_time_ordering_delete),
        _unset(pieces),
    )
    schemas = [piece.schema_json for piece in among if piece.schema_json]
    merger = merger_of(
        reading.config,
        is_partial=any(piece.is_partial for piece in among),
        schema_json=schemas[-1] if schemas else None,
    )
    partial_keys = [key for piece in pieces if piece.is_partial for key in piece.keys.chunks]
    merged = merger.merge(versions, codes, distinct)
    replaces = np.zeros(distinct, dtype=bool)
    replaces[codes[versions.is_commit_time_ordering_delete]] = True
    touched = pa.concat_arrays(partial_keys) if partial_keys else None
    return LogRecords(merged, merger, touched, replaces=replaces)


def _unset(pieces: Sequence[LogPiece]) -> dict[str, Array]:
    """Return, by column that some blocks lack, which rows do not set it."""
    names = {name for piece in pieces for name in piece.unset}
    return {
        name: _joined([np.full(piece.rows.num_rows, name in piece.unset) for piece in pieces])
        for name in sorted(names)
    }


def _joined(parts: list[Array]) -> Array:
    return np.concatenate([np.zeros(0, dtype=bool), *parts])
