"""Merging of the versions of a metadata record (specification: Metadata Table; payload of Apache Hudi 1.2.0).

bloom filters, indexes   the newest version of a key; an entry of a delete block removes the key
statistics               the same, except that two live versions of one file's statistics are combined
files                    the file names of all versions together; a tombstone removes a name
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.merge.record_version import Array, combined_chunks, number_keys
from drawstring.metadata.table import FILE_INFOS, IS_REMOVED, KEY, NAME, SIZE

_TOMBSTONE: Final = -1
_NOT_LISTED: Final = -2


def newest(rows: pa.Table) -> pa.Table:
    """Return the newest version of each key that is not removed, sorted by key.

    Args:
        rows: versions of records, oldest first, with the column `is_removed`.
    """
    codes, distinct = number_keys(rows.column(KEY))
    last = _last(codes, np.ones(len(codes), np.bool_), distinct)
    live = last[~is_true(rows.column(IS_REMOVED))[last]]
    return rows.take(pa.array(live)).drop_columns([IS_REMOVED]).sort_by(KEY)


def removed_keys(rows: pa.Table) -> pa.Array:
    """Return the distinct keys that a version of a record removes, in their order.

    Args:
        rows: versions of records, with the column `is_removed`.
    """
    removed = rows.column(KEY).filter(rows.column(IS_REMOVED))
    return combined_chunks(removed).unique().sort()


def listed_files(rows: pa.Table) -> pa.Table:
    """Return the files that records of `files` list, as columns `key`, `name` and `size_bytes`.

    The size of a name that several versions list is the greatest since its last tombstone.

    Args:
        rows: versions of records, oldest first, with the column `is_removed`.
    """
    return _listed(_mentions(rows), combined_chunks(rows.column(KEY)), is_true(rows.column(IS_REMOVED)))


def mentioned_files(rows: pa.Table) -> pa.Table:
    """Return what log records of `files` say together, as `listed_files` does; a tombstone has no size.

    Args:
        rows: versions of records, oldest first, with the column `is_removed`.
    """
    keys, is_removed = combined_chunks(rows.column(KEY)), is_true(rows.column(IS_REMOVED))
    return _listed(_mentions(rows), keys, is_removed, keeps_tombstones=True)


def listed_after(listed: pa.Table, rows: pa.Table, few: int = 10_000) -> pa.Table:
    """Return the files that are listed after further records; of many, those of other keys stay as they are.

    Args:
        listed: the result of `listed_files` for the records before.
        rows: versions of records as for `listed_files`, all newer.
        few: number of listed files up to which merging all takes less time than taking them apart.
    """
    keys = combined_chunks(rows.column(KEY))
    if not len(keys):
        return listed
    old, others = listed, listed.slice(0, 0)
    if listed.num_rows > few:
        is_touched = pc.is_in(listed.column(KEY), value_set=keys.unique())
        old, others = listed.filter(is_touched), listed.filter(pc.invert(is_touched))
    mentions = _mentions(rows).after(
        combined_chunks(old.column(NAME)), combined_chunks(old.column(SIZE)).to_numpy()
    )
    is_removed = np.concatenate([np.zeros(old.num_rows, np.bool_), is_true(rows.column(IS_REMOVED))])
    touched = _listed(mentions, pa.concat_arrays([combined_chunks(old.column(KEY)), keys]), is_removed)
    return _spliced(others, touched) if others.num_rows else touched


def _spliced(one: pa.Table, other: pa.Table) -> pa.Table:
    """Return the rows of two tables in the order of their keys; both are in order, and share no key."""
    keys = combined_chunks(one.column(KEY))
    first = np.flatnonzero(np.diff(number_keys(other.column(KEY))[0], prepend=-1)).tolist()
    pieces, done = [], 0
    for start, end in pairwise([*first, other.num_rows]):
        key = other.column(KEY)[start].as_py()
        place = bisect_left(range(len(keys)), key, done, key=lambda at: keys[at].as_py())
        pieces += [one.slice(done, place - done), other.slice(start, end - start)]
        done = place
    return pa.concat_tables([*pieces, one.slice(done)])


def _listed(
    mentions: _Mentions, keys: pa.Array, is_removed: Array, *, keeps_tombstones: bool = False
) -> pa.Table:
    """Return the files that are listed after all mentions, by the keys of records and which are removed."""
    key_codes, distinct_keys = number_keys(keys)
    name_codes, distinct_names = number_keys(mentions.names)
    pairs = key_codes[mentions.row].astype(np.int64) * max(1, distinct_names) + name_codes
    files, first, codes = np.unique(pairs, return_index=True, return_inverse=True)
    removed_at = _last(key_codes, is_removed, distinct_keys)
    gone_at = _last(codes, mentions.is_gone, len(files))
    is_valid = mentions.row > removed_at[key_codes[mentions.row]]
    counts = is_valid & (np.arange(len(codes)) > gone_at[codes])
    size = np.full(len(files), _NOT_LISTED, np.int64)
    np.maximum.at(size, codes[counts], mentions.size[counts])
    if keeps_tombstones:
        gone = codes[is_valid & mentions.is_gone]
        size[gone] = np.maximum(size[gone], _TOMBSTONE)
    chosen = np.flatnonzero(size > _NOT_LISTED)
    columns = {
        KEY: keys.take(pa.array(mentions.row[first[chosen]])),
        NAME: mentions.names.take(pa.array(first[chosen])),
        SIZE: pa.array(size[chosen], mask=size[chosen] == _TOMBSTONE),
    }
    return pa.table(columns).sort_by([(KEY, "ascending"), (NAME, "ascending")])


@dataclass(frozen=True, slots=True)
class _Mentions:
    """All file names in records of `files`, oldest first, with the row of the record."""

    row: Array
    names: pa.Array
    size: Array
    is_gone: Array

    def after(self, names: pa.Array, sizes: Array) -> _Mentions:
        """Return these mentions after those of files that are listed, each by a record of its own."""
        return _Mentions(
            np.concatenate([np.arange(len(names)), self.row + len(names)]),
            pa.concat_arrays([names, self.names]),
            np.concatenate([sizes, self.size]),
            np.concatenate([np.zeros(len(names), np.bool_), self.is_gone]),
        )


def _mentions(rows: pa.Table) -> _Mentions:
    column = rows.column(FILE_INFOS)
    has_files = np.flatnonzero(is_true(column.is_valid()))
    maps = combined_chunks(column.drop_null())
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
    known = combined_chunks(column)
    known = known.fill_null(False) if known.null_count else known
    return np.asarray(known.to_numpy(zero_copy_only=False), np.bool_)
