"""Pairing the rows of two sides by their keys, without a loop over rows."""

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
    """The distinct keys of the left side of a join, each with a number.

    The first column of a key is looked up among the keys that have the other columns in common: so
    each look-up goes to a small hash table, and none where nothing can be found.

    Attributes:
        on: names of the key columns.
        codes: number of the key of each row on the left.
        count: how many numbers there are.
        groups: by the values of the other columns, first columns of the keys and the first one's number.
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
        """Return the rows whose key is wanted, and the numbers of their keys.

        Args:
            batches: the right side, or a part of it.
            schema: columns to return.
        """
        kept, numbers = [], [np.zeros(0, dtype=np.int64)]
        for batch in batches:
            for key, part in split_by(batch, self.on[1:]):
                if key not in self.groups:
                    continue
                wanted, start = self.groups[key]
                found = pc.index_in(part.column(self.on[0]), value_set=wanted)
                kept.append(part.select(schema.names).filter(found.is_valid()))
                numbers.append(found.drop_null().to_numpy(zero_copy_only=False) + np.int64(start))
        return pa.Table.from_batches(kept, schema), np.concatenate(numbers)

    def unmatched(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of the right side whose key is not wanted."""
        parts = [
            part.filter(pc.invert(pc.is_in(part.column(self.on[0]), value_set=self.groups[key][0])))
            if key in self.groups
            else part
            for key, part in split_by(batch, self.on[1:])
        ]
        return pa.concat_batches(parts) if parts else batch


def with_null_left(rows: pa.RecordBatch, left: pa.Schema) -> pa.RecordBatch:
    """Return rows of the right side of a join that match nothing, null in the columns of the left side."""
    nothing = [pa.nulls(rows.num_rows, field.type) for field in left]
    schema = pa.schema([*left, *rows.schema])
    return pa.RecordBatch.from_arrays([*nothing, *rows.columns], schema=schema)


def left_pairs(left: Array, right: Array, keys: int) -> tuple[Array, Array]:
    """Return the pairs of rows of a left join.

    Args:
        left: number of the key of each row on the left, -1 for a key that the right side lacks.
        right: number of the key of each row on the right.
        keys: how many numbers there are.

    Returns:
        Rows of the left side, ascending, each at least once, and with each the row of the right
        side, -1 for none.
    """
    # The slot after the last key is that of -1, and stays empty.
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
