"""Changes of one write to one file group: inserts, updates and deletes, at most one per key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.errors import InvalidError
from drawstring.config.table_config import TableConfig
from drawstring.filegroups.base_file_writer import FileSettings
from drawstring.filegroups.log_scanner import row_deletes, row_deletes_always_win, without_ordering
from drawstring.filegroups.positions import POSITION, positions_of_keys
from drawstring.merge.record_merger import merger_of
from drawstring.merge.record_version import (
    Array,
    Versions,
    combined_chunks,
    number_keys,
    ordering_of,
    rank,
    stored_ordering,
    winning_rows,
)
from drawstring.schema.fields import RECORD_KEY

MOVED_AWAY: Final = "_drawstring_moved_away"
"""Optional column of prepared rows: whether the record moved to another file group."""


@dataclass(frozen=True, slots=True)
class Changes:
    """Records to write and keys to delete.

    Attributes:
        records: prepared rows to write.
        delete_keys: record keys to delete (string).
        delete_ordering: ordering columns of the deletes; None if they win over all earlier versions.
        delete_positions: positions of the deleted records, null where unknown; None if all are unknown.
    """

    records: pa.Table
    delete_keys: pa.Array
    delete_ordering: list[pa.Array] | None = None
    delete_positions: pa.Array | None = None

    @property
    def always_delete(self) -> Array:
        """Flags of the deletes that win over all earlier versions: those without ordering value."""
        return without_ordering(self.delete_ordering or [], len(self.delete_keys))

    @property
    def is_nothing(self) -> bool:
        """Whether there is neither a record nor a delete."""
        return self.records.num_rows == 0 and len(self.delete_keys) == 0


def joined(parts: Sequence[Changes]) -> Changes:
    """Concatenate changes that have no key in common, for a base file: positions are left out."""
    if len(parts) == 1:
        return parts[0]
    kinds = next((part.delete_ordering for part in parts if part.delete_ordering is not None), None)
    ordering = None
    if kinds is not None:
        columns = [_ordering_or_none(part, kinds) for part in parts]
        ordering = [pa.concat_arrays(column) for column in zip(*columns, strict=True)]
    records = pa.concat_tables([part.records for part in parts])
    return Changes(records, pa.concat_arrays([part.delete_keys for part in parts]), ordering)


def _ordering_or_none(part: Changes, kinds: list[pa.Array]) -> list[pa.Array]:
    """Return the ordering columns of deletes, null for those that win over all earlier versions."""
    return part.delete_ordering or [pa.nulls(len(part.delete_keys), kind.type) for kind in kinds]


def upserts(rows: pa.Table, settings: FileSettings) -> Changes:
    """Merge duplicate keys with the merger of the table, and separate the deletes.

    Args:
        rows: prepared rows of one file group, in arrival order.
        settings: settings of the write.
    """
    if MOVED_AWAY not in rows.column_names:
        return _split(*resolved(rows, settings), settings.config)
    has_left = rows.column(MOVED_AWAY)
    rest = rows.drop_columns([MOVED_AWAY])
    moved = rest.filter(has_left)
    positions = combined_chunks(moved.column(POSITION)) if POSITION in moved.column_names else None
    stayed = _split(*resolved(rest.filter(pc.invert(has_left)), settings), settings.config)
    return with_deletes(stayed, combined_chunks(moved.column(RECORD_KEY)), positions)


def resolved(rows: pa.Table, settings: FileSettings) -> tuple[pa.Table, Array]:
    """Return one row per key, merged with the merger of the table, and which rows delete their key.

    Args:
        rows: prepared rows, in arrival order.
        settings: settings of the write.
    """
    config = settings.config
    merger = merger_of(config, schema_json=settings.avro_schema)
    codes, distinct = number_keys(rows.column(RECORD_KEY))
    if distinct < rows.num_rows and (positions := positions_of_keys(rows, codes, distinct)) is not None:
        at = rows.column_names.index(POSITION)
        rows = rows.set_column(at, POSITION, positions.take(pa.array(codes)))
    if merger.chooses_whole_records:
        if distinct < rows.num_rows:
            rows = rows.take(pa.array(winning_rows(codes, distinct, ordering_of(rows, config))))
        return rows, row_deletes(rows, config)[0]
    versions = Versions(
        rows, combined_chunks(rows.column(RECORD_KEY)), ordering_of(rows, config), *row_deletes(rows, config)
    )
    merged = merger.merge(versions, codes, distinct)
    return merged.rows, merged.is_delete


def split_deletes(rows: pa.Table, config: TableConfig) -> Changes:
    """Separate rows that are marked as deletes, with their ordering values."""
    return _split(rows, row_deletes(rows, config)[0], config)


def with_deletes(changes: Changes, keys: pa.Array, positions: pa.Array | None) -> Changes:
    """Add deletes, at positions if these are known, that win over all earlier versions."""
    ordering, before = changes.delete_ordering, changes.delete_positions
    if ordering is not None:
        ordering = [pa.concat_arrays([column, pa.nulls(len(keys), column.type)]) for column in ordering]
    if positions is not None and len(changes.delete_keys):
        positions = None if before is None else pa.concat_arrays([before, positions])
    return Changes(changes.records, pa.concat_arrays([changes.delete_keys, keys]), ordering, positions)


def _split(rows: pa.Table, is_delete: Array, config: TableConfig) -> Changes:
    if not is_delete.any():
        return Changes(rows, pa.array([], pa.string()))
    deletes = rows.filter(pa.array(is_delete))
    ordering = None if row_deletes_always_win(config) else ordering_values(deletes, config)
    positions = combined_chunks(deletes.column(POSITION)) if POSITION in deletes.column_names else None
    return Changes(
        rows.filter(pa.array(~is_delete)), combined_chunks(deletes.column(RECORD_KEY)), ordering, positions
    )


def deletes(rows: pa.Table) -> Changes:
    """Return deletes of all keys of the rows; they win over all earlier versions."""
    keys = rows.column(RECORD_KEY)
    positions = positions_of_keys(rows, *number_keys(keys)) if POSITION in rows.column_names else None
    return Changes(rows.slice(0, 0), pc.unique(combined_chunks(keys)), delete_positions=positions)


def ordering_values(rows: pa.Table, config: TableConfig) -> list[pa.Array] | None:
    """Return the values of the ordering fields as stored; None for commit-time ordering."""
    if rows.num_rows == 0:
        return None
    return stored_ordering(rows, config) or None


ACTION: Final = "_drawstring_action"


class RowAction(IntEnum):
    """Action of a MERGE on a row."""

    INSERT = 0
    UPDATE = 1
    DELETE = 2
    MOVE = 3
    """A delete of a record that is inserted in another partition."""


def acted(rows: pa.Table, settings: FileSettings) -> Changes:
    """Return the changes of rows to a file group; deletes by action win over all earlier versions.

    Args:
        rows: prepared rows of one file group; without an action column they are upserts.
        settings: settings of the write.

    Raises:
        InvalidError: several rows change the same record, so the result is ambiguous.
    """
    if ACTION not in rows.column_names:
        return upserts(rows, settings)
    actions = combined_chunks(rows.column(ACTION)).to_numpy(zero_copy_only=False)
    _check_unambiguous(rows, actions, settings.config)
    is_delete = (actions == RowAction.DELETE) | (actions == RowAction.MOVE)
    if not is_delete.any():
        return upserts(rows, settings)
    deleted = deletes(rows.filter(pa.array(is_delete)))
    changes = upserts(rows.filter(pa.array(~is_delete)), settings)
    return with_deletes(changes, deleted.delete_keys, deleted.delete_positions)


def inserts_among(records: pa.Table, *, all_new: bool = False) -> int | None:
    """Return the number of new records by their actions, if they have any; None if it is not known.

    Args:
        records: the rows of one file group.
        all_new: whether rows without actions are new.
    """
    if ACTION not in records.column_names:
        return records.num_rows if all_new else None
    actions = combined_chunks(records.column(ACTION)).to_numpy(zero_copy_only=False)
    return int(np.count_nonzero(actions == RowAction.INSERT))


def _check_unambiguous(rows: pa.Table, actions: Array, config: TableConfig) -> None:
    """Check that rows of one key are all inserts, which merge, all deletes, or updates one of which wins."""
    codes, distinct = number_keys(rows.column(RECORD_KEY))
    if distinct == len(codes):
        return
    times = np.bincount(codes, minlength=distinct)
    inserts = np.bincount(codes[actions == RowAction.INSERT], minlength=distinct)
    deleted = np.bincount(codes[actions == RowAction.DELETE], minlength=distinct)
    updated = np.bincount(codes[actions == RowAction.UPDATE], minlength=distinct)
    wrong = (times > 1) & (inserts < times) & (deleted < times)
    if wrong.any():
        wrong &= ~((updated == times) & _has_single_winner(rows, codes, distinct, config))
    if wrong.any():
        key = rows.column(RECORD_KEY)[int(np.flatnonzero(wrong[codes])[0])].as_py()
        raise InvalidError(
            f"Several rows change the record with key {key!r}, so the result is ambiguous. Keep one source"
            " row per record, or narrow the conditions. A record that the table has twice counts as several."
        )


def _has_single_winner(rows: pa.Table, codes: Array, distinct: int, config: TableConfig) -> Array:
    """Return for each key whether one of its rows alone has the greatest ordering value."""
    ordering = ordering_of(rows, config)
    if not ordering:
        return np.zeros(distinct, dtype=bool)
    ranks = rank(ordering)
    greatest = np.full(distinct, ranks.min())
    np.maximum.at(greatest, codes, ranks)
    wins = ranks == greatest[codes]
    return np.equal(np.bincount(codes[wins], minlength=distinct), 1)
