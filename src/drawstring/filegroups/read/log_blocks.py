"""Merge order of log blocks, and which log records are deletes (specification: Log Format, Deletes). Pure.

all blocks, files in order
  - torn blocks, blocks of instants that are not visible
  - blocks that a later rollback command block cancels
  - blocks that a log compaction rewrote; its block replaces the newest of them

Which log records are deletes (specification: Deletes).

A record is a delete if it is in a delete block, if `_hoodie_is_deleted` is true, if its delete-key column
holds the delete marker of the table, or if `_hoodie_operation` is a delete.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.errors import REPAIR, CorruptTableError
from drawstring.config.table.config import MergeMode, PayloadRule, TableConfig
from drawstring.config.table.merge_rules import DELETE_FIELD, DELETE_MARKER
from drawstring.filegroups.read.tasks import InstantRange, LogReading
from drawstring.formats.log_inline import BlockType, LogBlock
from drawstring.merge.order import Array
from drawstring.merge.versions import flat, stored_ordering
from drawstring.model.files import LogFile
from drawstring.schema.meta import IS_DELETED_COLUMN, OPERATION_COLUMN

_DELETE_OPERATIONS = pa.array(["D", "-U"])


def marker_of(config: TableConfig) -> tuple[str, str] | None:
    """Return the column and the value that mark a delete; None if the table has no delete marker."""
    column = config.merge_properties.get(DELETE_FIELD)
    text = config.merge_properties.get(DELETE_MARKER)
    return (column, text) if column and text else None


def delete_columns(config: TableConfig, schema: pa.Schema) -> list[str]:
    """Return the columns of the table that can mark a delete."""
    marker = marker_of(config)
    names = [IS_DELETED_COLUMN, OPERATION_COLUMN, *([marker[0]] if marker else [])]
    return [name for name in names if name in schema.names]


def deleted(rows: pa.Table, config: TableConfig) -> pa.ChunkedArray | None:
    """Return for each row of a data block whether it deletes its key; None if no row does."""
    names, marks = frozenset(rows.column_names), []
    if IS_DELETED_COLUMN in names and pa.types.is_boolean(rows.schema.field(IS_DELETED_COLUMN).type):
        marks.append(rows.column(IS_DELETED_COLUMN))
    if OPERATION_COLUMN in names:
        marks.append(pc.is_in(rows.column(OPERATION_COLUMN), _DELETE_OPERATIONS))
    marker = marker_of(config)
    if marker is not None and marker[0] in names:
        marks.append(_equals(rows.column(marker[0]).cast(pa.string()), marker[1], config))
    result = None
    for mark in marks:
        mark = mark.fill_null(False)
        result = mark if result is None else pc.or_(result, mark)
    return result


def _equals(column: pa.ChunkedArray, text: str, config: TableConfig) -> pa.ChunkedArray:
    """Compare with the delete marker: payload classes ignore its case, table version 9 does not."""
    if config.payload_rule is None:
        return pc.equal(column, text)
    return pc.equal(pc.utf8_lower(column), text.lower())


def row_deletes(rows: pa.Table, config: TableConfig) -> tuple[Array, Array]:
    """Return for each row whether it deletes its key, and whether it wins over any earlier version."""
    marks = deleted(rows, config)
    if marks is None:
        nothing = np.zeros(rows.num_rows, dtype=bool)
        return nothing, nothing
    is_delete = marks.to_numpy()
    if row_deletes_always_win(config):
        return is_delete, is_delete
    return is_delete, is_delete & without_ordering(stored_ordering(rows, config), rows.num_rows)


def without_ordering(ordering: Sequence[pa.Array | pa.ChunkedArray], rows: int) -> Array:
    """Return which rows have no ordering value: all null, or the int 0, which Hudi uses for none."""
    absent = np.ones(rows, dtype=bool)
    for column in map(flat, ordering):
        is_none = pc.equal(column.fill_null(0), 0) if pa.types.is_int32(column.type) else pc.is_null(column)
        absent &= is_none.to_numpy(zero_copy_only=False)
    return absent


def block_deletes_always_win(config: TableConfig) -> bool:
    """Return whether delete blocks win whatever their ordering values are; Hudi's code does so."""
    return config.payload_rule is not None or config.merge_mode is MergeMode.CUSTOM


def row_deletes_always_win(config: TableConfig) -> bool:
    """Return whether rows that are marked as deletes win whatever their ordering values are."""
    return config.payload_rule is PayloadRule.LATE_STAMP or config.merge_mode is MergeMode.CUSTOM


@dataclass(frozen=True, slots=True)
class PlacedBlock:
    """A log block and its log file."""

    file: LogFile
    block: LogBlock

    @property
    def instant(self) -> str:
        """Requested time of the write that wrote the block."""
        return self.block.instant or self.file.instant

    @property
    def holds_records(self) -> bool:
        """Whether it is a data or delete block."""
        return self.block.kind.is_data or self.block.kind is BlockType.DELETE


def blocks_to_merge(blocks: Iterable[PlacedBlock], instants: InstantRange) -> list[PlacedBlock]:
    """Return the visible data and delete blocks, in merge order.

    Args:
        blocks: all blocks of a slice, file by file.
        instants: the visible instants.
    """
    return _with_log_compactions(_alive(blocks, instants))


def final_instants(blocks: Iterable[PlacedBlock], instants: InstantRange) -> Mapping[str, str]:
    """Return, by instant with visible records, the instant whose blocks have them after all log compactions.

    Args:
        blocks: all blocks of a slice, file by file.
        instants: the visible instants.
    """
    alive = _alive(blocks, instants)
    finals = _finals(alive, _rewritten_by(alive))
    return {placed.instant: final for placed, final in zip(alive, finals, strict=True)}


def _alive(blocks: Iterable[PlacedBlock], instants: InstantRange) -> list[PlacedBlock]:
    """Return the visible data and delete blocks that no rollback took back, file by file.

    The block of a log compaction is left out if the records that it rewrote are not visible, as in an
    increment of later commits: nothing would tell its place among their blocks.
    """
    rolled_back: set[str] = set()
    alive: list[PlacedBlock] = []
    for placed in reversed(list(blocks)):
        target = placed.block.rolls_back
        if target is not None:
            rolled_back.add(target)
        elif placed.holds_records and placed.instant not in rolled_back and _is_visible(placed, instants):
            alive.append(placed)
    return alive[::-1]


def _is_visible(placed: PlacedBlock, instants: InstantRange) -> bool:
    rewritten = placed.block.compacted_instants
    return instants.admits(placed.instant) and (not rewritten or any(map(instants.admits, rewritten)))


def torn_blocks(blocks: Iterable[PlacedBlock]) -> list[PlacedBlock]:
    """Return the torn blocks that no later rollback command block cancels.

    Args:
        blocks: all blocks of a slice, file by file.
    """
    torn: list[PlacedBlock] = []
    for placed in blocks:
        if placed.block.rolls_back is not None:
            torn = []
        elif placed.block.kind is BlockType.CORRUPT:
            torn.append(placed)
    return torn


def check_whole(reading: LogReading, placed: Sequence[PlacedBlock]) -> None:
    """Check that no log file lost records of a committed write.

    In layout 1, the blocks of a failed write stay in the log files of the slice until the next write rolls
    them back; in layout 2, a visible file is complete because its only write was committed.

    Raises:
        CorruptTableError: a log file has a torn block and no failed write explains it.
    """
    torn = torn_blocks(placed)
    if torn and not (reading.config.rules.names_logs_by_slice and reading.instants.has_pending_write):
        raise CorruptTableError(
            f"A log file of a committed write is damaged at byte {torn[0].block.offset}: {REPAIR}.",
            instant=torn[0].file.instant,
            path=torn[0].file.status.path,
        )


def _with_log_compactions(blocks: list[PlacedBlock]) -> list[PlacedBlock]:
    """Move the blocks of log compactions to the place of the newest block that they rewrote."""
    rewritten_by = _rewritten_by(blocks)
    if not rewritten_by:
        return blocks
    finals = _finals(blocks, rewritten_by)
    newest_place = {final: place for place, final in enumerate(finals) if final != blocks[place].instant}
    by_instant: dict[str, list[PlacedBlock]] = {}
    for placed in blocks:
        by_instant.setdefault(placed.instant, []).append(placed)
    merged: list[PlacedBlock] = []
    for place, (placed, final) in enumerate(zip(blocks, finals, strict=True)):
        if newest_place.get(final) == place:
            merged += by_instant.get(final, ())
        elif final not in newest_place:
            merged.append(placed)
    return merged


def _rewritten_by(blocks: Sequence[PlacedBlock]) -> dict[str, str]:
    """Return, by instant, the log compaction that rewrote its blocks."""
    return {
        original: placed.instant
        for placed in reversed(blocks)
        for original in placed.block.compacted_instants
    }


def _finals(blocks: Sequence[PlacedBlock], rewritten_by: Mapping[str, str]) -> list[str]:
    """Return the instant whose blocks replace each block, through log compactions of log compactions."""
    known: dict[str, str] = {}
    for placed in blocks:
        instant: str | None = placed.instant
        path: dict[str, None] = {}
        while instant is not None and instant not in known and instant not in path:
            path[instant] = None
            instant = rewritten_by.get(instant)
        last = next(reversed(path), placed.instant)
        known |= dict.fromkeys(path, last if instant is None else known.get(instant, last))
    return [known[placed.instant] for placed in blocks]
