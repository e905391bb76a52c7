"""Positions of records: the numbers of their rows in the base file of their slice, from 0.

Where an index reads the keys of base files anyway (simple, bloom and their global forms), it notes the row of
each key, and the log block gets these positions with the instant of the base file. A block has them only if
all its records have one. Queries merge by them without keys; compaction, clustering and writes compare keys,
so that wrong positions of another writer never become the table. Bucket and record indexes, log files with an
index and sorted files have none, as in Hudi.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.errors import CorruptTableError
from drawstring.filegroups.log_scanner import PlacedBlock
from drawstring.formats.log_inline import HeaderKey
from drawstring.formats.log_native import NativeBlock
from drawstring.formats.record_positions import decode_bitmap, decode_list
from drawstring.merge.record_version import Array, combined_chunks
from drawstring.model.files import PARQUET, FileSlice, file_extension

POSITION: Final = "_drawstring_position"
"""Column of located rows: the position of the record in the base file of its file group; null if unknown."""

Numbered: TypeAlias = tuple[pa.ChunkedArray, Array]
"""Record keys, maybe repeated, and the positions of their records."""


def has_positions(file_slice: FileSlice) -> bool:
    """Return whether rows of the base file of a slice may be told by their numbers."""
    base = file_slice.base
    return base is not None and base.source is None and file_extension(base.status.path) == PARQUET


def positions_of_keys(rows: pa.Table, codes: Array, distinct: int) -> pa.Array | None:
    """Return the position of each key; null if it is not known, or the base file has the key repeatedly.

    Args:
        rows: located rows.
        codes: for each row, the number of its key, in the order of their first rows.
        distinct: number of keys.

    Returns:
        A position for each key number; None if the rows have no positions.
    """
    if POSITION not in rows.column_names:
        return None
    positions = combined_chunks(rows.column(POSITION))
    if distinct == len(rows):
        return positions
    numbers = positions.fill_null(-1).to_numpy(zero_copy_only=False)
    lowest = np.full(distinct, np.iinfo(np.int64).max)
    highest = np.full(distinct, -1)
    np.minimum.at(lowest, codes, numbers)
    np.maximum.at(highest, codes, numbers)
    return pa.array(highest, mask=(lowest != highest) | (highest < 0))


def known_positions(column: pa.Array | pa.ChunkedArray) -> Array | None:
    """Return the positions of records; None unless all are known."""
    return None if column.null_count else combined_chunks(column).to_numpy()


def logged_positions(
    blocks: Sequence[PlacedBlock], keys: Sequence[pa.ChunkedArray], base_instant: str
) -> Numbered | None:
    """Return the records of blocks with their positions.

    Args:
        blocks: all data and delete blocks that are merged.
        keys: the record keys of each, all of them.
        base_instant: instant of the base file that the positions have to be of.

    Returns:
        None if any block has no positions, or those of another base file.

    Raises:
        CorruptTableError: the positions of a block are damaged.
    """
    parts = [np.zeros(0, np.int64)]
    for placed, of_block in zip(blocks, keys, strict=True):
        header = placed.block.header
        text = header.get(HeaderKey.RECORD_POSITIONS)
        if header.get(HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS) != base_instant or text is None:
            return None
        try:
            is_list = isinstance(placed.block, NativeBlock)
            positions = decode_list(text) if is_list else decode_bitmap(text)
        except CorruptTableError as error:
            raise error.at(instant=placed.instant, path=placed.file.status.path) from error.__cause__
        if len(positions) != len(of_block):
            return None
        parts.append(positions)
    chunks = [chunk for of_block in keys for chunk in of_block.chunks]
    return pa.chunked_array(chunks, pa.string()), np.concatenate(parts)


def positions_among(keys: pa.Array, numbered: Numbered | None) -> Array | None:
    """Return the position of each of some distinct keys; None unless keys and positions are one to one."""
    if numbered is None:
        return None
    repeated, positions = numbered
    at = pc.index_in(repeated, value_set=keys).to_numpy()
    found = np.full(len(keys), -1)
    found[at] = positions
    is_same = (found[at] == positions).all()
    return found if is_same and len(np.unique(found)) == len(found) else None


def located_by_position(
    positions: Array, batches: Iterable[pa.RecordBatch]
) -> Iterator[tuple[pa.RecordBatch, tuple[Array, Array]]]:
    """Yield base rows, with the numbers in their batch of those that have log records, and of the records.

    Args:
        positions: those of all log records, distinct.
        batches: all rows, in the order of the file.
    """
    order = np.argsort(positions)
    rows, first = positions[order], 0
    for batch in batches:
        low, high = np.searchsorted(rows, (first, first + batch.num_rows))
        yield batch, (rows[low:high] - first, order[low:high])
        first += batch.num_rows
