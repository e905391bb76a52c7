"""Merging of the versions of a metadata record (specification: Metadata Table; payload of Apache Hudi 1.2.0).

bloom filters, indexes   the newest version of a key; an entry of a delete block removes the key
statistics               the same, except that two live versions of one file's statistics are combined
files                    the file names of all versions together; a tombstone removes a name
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from drawstring.merge.order import Array, number_keys
from drawstring.merge.versions import flat
from drawstring.metadata.partitions import FILE_INFOS, IS_REMOVED, KEY, NAME, SIZE


def newest(rows: pa.Table) -> pa.Table:
    """Return the newest version of each key that is not removed, sorted by key.

    Args:
        rows: versions of records, oldest first, with the column `is_removed`.
    """
    codes, distinct = number_keys(rows.column(KEY))
    last = _last(codes, np.ones(len(codes), np.bool_), distinct)
    live = last[~is_true(rows.column(IS_REMOVED))[last]]
    return rows.take(pa.array(live)).drop_columns([IS_REMOVED]).sort_by(KEY)


def listed_files(rows: pa.Table) -> pa.Table:
    """Return the files that records of `files` list, as columns `key`, `name` and `size_bytes`.

    The size of a name that several versions list is the greatest since its last tombstone.

    Args:
        rows: versions of records, oldest first, with the column `is_removed`.
    """
    keys, distinct_keys = number_keys(rows.column(KEY))
    mentions = _mentions(rows)
    name_codes, distinct_names = number_keys(mentions.names)
    pairs = keys[mentions.row].astype(np.int64) * max(1, distinct_names) + name_codes
    files, first, codes = np.unique(pairs, return_index=True, return_inverse=True)
    removed_at = _last(keys, is_true(rows.column(IS_REMOVED)), distinct_keys)
    gone_at = _last(codes, mentions.is_gone, len(files))
    counts = np.arange(len(codes)) > gone_at[codes]
    counts &= mentions.row > removed_at[keys[mentions.row]]
    size = np.full(len(files), -1, np.int64)
    np.maximum.at(size, codes[counts], mentions.size[counts])
    live = np.flatnonzero(size >= 0)
    columns = {
        KEY: flat(rows.column(KEY)).take(pa.array(mentions.row[first[live]])),
        NAME: mentions.names.take(pa.array(first[live])),
        SIZE: pa.array(size[live]),
    }
    return pa.table(columns).sort_by([(KEY, "ascending"), (NAME, "ascending")])


@dataclass(frozen=True, slots=True)
class _Mentions:
    """All file names in records of `files`, oldest first, with the row of the record."""

    row: Array
    names: pa.Array
    size: Array
    is_gone: Array


def _mentions(rows: pa.Table) -> _Mentions:
    column = rows.column(FILE_INFOS)
    has_files = np.flatnonzero(is_true(column.is_valid()))
    maps = flat(column.drop_null())
    infos = maps.items
    return _Mentions(
        np.repeat(has_files, np.diff(maps.offsets.to_numpy())),
        maps.keys,
        infos.field("size").to_numpy(),
        is_true(infos.field("isDeleted")),
    )


def _last(codes: Array, chosen: Array, distinct: int) -> Array:
    """Return the last chosen place of each code, -1 for none."""
    last = np.full(distinct, -1, np.int64)
    last[codes[chosen]] = np.flatnonzero(chosen)
    return last


def is_true(column: pa.Array | pa.ChunkedArray) -> Array:
    """Return which values of a boolean column are true; null is not."""
    known = flat(column)
    known = known.fill_null(False) if known.null_count else known
    return np.asarray(known.to_numpy(zero_copy_only=False), np.bool_)
