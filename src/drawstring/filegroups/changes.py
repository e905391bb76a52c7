"""The changes that one write brings to one file group: at most one record or delete per key."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.config.table import MergeMode, TableConfig
from drawstring.merge.order import winners
from drawstring.schema.meta import META_COLUMNS

KEY = META_COLUMNS[2]
DELETE_FLAG = "_hoodie_is_deleted"


@dataclass(frozen=True, slots=True)
class Changes:
    """What to write and what to delete.

    Attributes:
        records: prepared rows to write.
        delete_keys: record keys to delete, text.
        delete_ordering: ordering columns of the deletes, None when they win over all before them.
    """

    records: pa.Table
    delete_keys: pa.Array
    delete_ordering: list[pa.Array] | None = None


def upserts(rows: pa.Table, config: TableConfig) -> Changes:
    """Resolve duplicate keys by the merge mode and set soft deletes apart.

    Args:
        rows: prepared rows of one file group, in arrival order.
        config: merge mode and ordering fields.
    """
    ordering = ordering_of(rows, config)
    keep = winners(_one(rows.column(KEY)), ordering, None)
    if len(keep) < rows.num_rows:
        rows = rows.take(pa.array(np.sort(keep)))
    return split_soft_deletes(rows, config)


def split_soft_deletes(rows: pa.Table, config: TableConfig) -> Changes:
    """Set rows whose `_hoodie_is_deleted` is true apart as deletes with their ordering value."""
    nothing = pa.array([], pa.string())
    if DELETE_FLAG not in rows.schema.names or not pa.types.is_boolean(rows.schema.field(DELETE_FLAG).type):
        return Changes(rows, nothing)
    deleted = pc.fill_null(rows.column(DELETE_FLAG), False)
    if not pc.any(deleted).as_py():
        return Changes(rows, nothing)
    gone = rows.filter(deleted)
    return Changes(rows.filter(pc.invert(deleted)), _one(gone.column(KEY)), ordering_of(gone, config))


def deletes(rows: pa.Table) -> Changes:
    """Return the deletion of every key of the rows, which wins over all that was before."""
    return Changes(rows.slice(0, 0), pc.unique(_one(rows.column(KEY))))


def ordering_of(rows: pa.Table, config: TableConfig) -> list[pa.Array] | None:
    """Return the ordering columns, or None when the later record wins."""
    if config.merge_mode is not MergeMode.EVENT_TIME_ORDERING or rows.num_rows == 0:
        return None
    return [_one(rows.column(name)) for name in config.ordering_fields] or None


def _one(column: pa.ChunkedArray) -> pa.Array:
    combined = column.combine_chunks()
    return combined if isinstance(combined, pa.Array) else pa.concat_arrays(combined.chunks)
