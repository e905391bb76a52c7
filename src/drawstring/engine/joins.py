"""The hash join of two sides by their keys, without a loop over rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.engine.grouping import GroupKey, group_codes, split_by

Array: TypeAlias = "np.ndarray[Any, Any]"


@dataclass(frozen=True, slots=True)
class WantedKeys:
    """The distinct keys of the left side of a join, numbered from 0.

    Keys are grouped by all columns but the first, and the first column is looked up within its group: each
    lookup uses a small hash table, and none is needed for groups that the left side lacks.

    Attributes:
        on: names of the key columns.
        codes: number of the key of each row on the left.
        count: number of distinct keys.
        groups: by the values of the other columns, the distinct values of the first column and the number
            of the first of them; the others follow.
    """

    on: tuple[str, ...]
    codes: Array
    count: int
    groups: dict[GroupKey, tuple[pa.Array, int]]

    @staticmethod
    def of(batches: Iterator[pa.RecordBatch], on: Sequence[str]) -> WantedKeys:
        """Number the keys of a stream.

        Args:
            batches: rows with the key columns, text without nulls.
            on: names of the key columns.
        """
        first, *others = on
        texts: dict[GroupKey, list[pa.Array]] = defaultdict(list)
        places: dict[GroupKey, list[Array]] = defaultdict(list)
        rows = 0
        for batch in batches:
            members, keys = group_codes(batch, others)
            order = np.argsort(members, kind="stable")
            ends = np.cumsum(np.bincount(members, minlength=len(keys)))
            ordered = batch.column(first).take(pa.array(order))
            for key, start, end in zip(keys, (0, *ends[:-1].tolist()), ends.tolist(), strict=True):
                texts[key].append(ordered.slice(start, end - start))
                places[key].append(order[start:end] + rows)
            rows += batch.num_rows
        codes = np.zeros(rows, dtype=np.int64)
        groups: dict[GroupKey, tuple[pa.Array, int]] = {}
        count = 0
        for key, parts in texts.items():
            encoded = pc.dictionary_encode(pa.concat_arrays(parts))
            codes[np.concatenate(places[key])] = encoded.indices.to_numpy(zero_copy_only=False) + count
            groups[key] = (encoded.dictionary, count)
            count += len(encoded.dictionary)
        return WantedKeys(tuple(on), codes, count, groups)

    def matches(self, batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> tuple[pa.Table, Array]:
        """Return the rows of the right side whose key is on the left, and the numbers of their keys.

        Args:
            batches: the right side, or a part of it.
            schema: the columns to return.
        """
        matched, numbers = [], [np.zeros(0, dtype=np.int64)]
        for batch in batches:
            for key, part in split_by(batch, self.on[1:]):
                if key not in self.groups:
                    continue
                values, start = self.groups[key]
                positions = pc.index_in(part.column(self.on[0]), value_set=values)
                matched.append(part.select(schema.names).filter(positions.is_valid()))
                numbers.append(positions.drop_null().to_numpy(zero_copy_only=False) + np.int64(start))
        return pa.Table.from_batches(matched, schema), np.concatenate(numbers)

    def unmatched(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of the right side whose key is not on the left."""
        parts = [
            part.filter(pc.invert(pc.is_in(part.column(self.on[0]), value_set=self.groups[key][0])))
            if key in self.groups
            else part
            for key, part in split_by(batch, self.on[1:])
        ]
        return pa.concat_batches(parts) if parts else batch


def with_null_left(rows: pa.RecordBatch, left: pa.Schema) -> pa.RecordBatch:
    """Return unmatched rows of the right side of a join, with null in the columns of the left side."""
    nulls = [pa.nulls(rows.num_rows, field.type) for field in left]
    schema = pa.schema([*left, *rows.schema])
    return pa.RecordBatch.from_arrays([*nulls, *rows.columns], schema=schema)


def left_pairs(left: Array, right: Array, keys: int) -> tuple[Array, Array]:
    """Return the pairs of row numbers of a left join.

    Args:
        left: number of the key of each row on the left, -1 for a key that the right side lacks.
        right: number of the key of each row on the right.
        keys: number of distinct keys.

    Returns:
        Row numbers of the left side, ascending, each at least once, and for each the row number of the
        right side, -1 for none.
    """
    # The slot after the last key belongs to -1 and stays empty.
    counts = np.bincount(right, minlength=keys + 1)
    rows = np.arange(len(left), dtype=np.int64)
    if counts.max(initial=0) <= 1:
        partner_of = np.full(keys + 1, -1, dtype=np.int64)
        partner_of[right] = np.arange(len(right))
        return rows, partner_of[left]
    times = np.maximum(counts[left], 1)
    rows = np.repeat(rows, times)
    nth = np.arange(len(rows)) - np.repeat(np.cumsum(times) - times, times)
    starts = np.cumsum(counts) - counts
    by_key = np.append(np.argsort(right, kind="stable"), -1)
    is_paired = counts[left[rows]] > 0
    places = np.where(is_paired, starts[left[rows]] + nth, len(right))
    return rows, by_key[places]
