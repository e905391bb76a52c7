"""The merger that calls a user's registered function.

Round n merges the n-th version of every key, oldest first, into the result of the previous rounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from drawstring.base.errors import DrawstringError, InvalidError
from drawstring.config.table.mergers import RecordMerger
from drawstring.merge.order import Array
from drawstring.merge.versions import Versions
from drawstring.schema.evolve import conform_table
from drawstring.schema.meta import IS_DELETED_COLUMN


@dataclass(frozen=True, slots=True)
class CustomMerger:
    """Merges versions with a registered function.

    Attributes:
        function: merges two records into one, for whole tables of pairs.
        name: the name under which it is registered, for errors.
    """

    chooses_whole_records: ClassVar[bool] = False
    can_merge_logs_alone: ClassVar[bool] = False
    supports_cdc: ClassVar[bool] = False

    function: RecordMerger
    name: str

    def merge(self, versions: Versions, codes: Array, distinct: int) -> Versions:
        """Merge the versions of each key into one."""
        order = np.argsort(codes, kind="stable")
        firsts = np.searchsorted(codes[order], np.arange(distinct))
        counts = np.bincount(codes, minlength=distinct)
        pieces, held = [versions.rows], versions.rows.num_rows
        at, is_delete = order[firsts], versions.is_delete[order[firsts]]
        for number in range(1, int(counts.max(initial=1))):
            codes = np.flatnonzero(counts > number)
            newer = order[firsts[codes] + number]
            both = ~is_delete[codes] & ~versions.is_delete[newer]
            is_delete[codes], old = versions.is_delete[newer], at[codes]
            at[codes] = newer
            if both.any():
                table = pa.concat_tables(pieces)
                merged, gone = self._merged(
                    table.take(pa.array(old[both])), table.take(pa.array(newer[both]))
                )
                at[codes[both]] = held + np.arange(merged.num_rows)
                is_delete[codes[both]] = gone
                pieces.append(merged)
                held += merged.num_rows
        nothing = np.zeros(distinct, dtype=bool)
        rows = pa.concat_tables(pieces).take(pa.array(at))
        origin = np.where(at < versions.rows.num_rows, at, -1)
        keys = versions.keys.take(pa.array(order[firsts]))
        return Versions(rows, keys, (), is_delete, nothing, origin=origin)

    def _merged(self, older: pa.Table, newer: pa.Table) -> tuple[pa.Table, Array]:
        """Return the function's results for pairs, and which of them are deletes."""
        try:
            merged = self.function(older, newer)
        except DrawstringError:
            raise
        except Exception as error:
            raise InvalidError(
                f"The merger {self.name!r} failed: {type(error).__name__}: {error}. Correct its function."
            ) from error
        if not isinstance(merged, pa.Table) or merged.num_rows != newer.num_rows:
            what = f"{merged.num_rows} rows" if isinstance(merged, pa.Table) else f"a {type(merged).__name__}"
            raise InvalidError(
                f"The merger {self.name!r} returned {what} for {newer.num_rows} pairs."
                " Return a pyarrow.Table with one row for each, in the same order."
            )
        gone = np.zeros(merged.num_rows, dtype=bool)
        if IS_DELETED_COLUMN in merged.column_names:
            gone = merged.column(IS_DELETED_COLUMN).fill_null(False).to_numpy()
        return self._fitted(merged, newer.schema), gone

    def _fitted(self, merged: pa.Table, schema: pa.Schema) -> pa.Table:
        present = {*merged.column_names}
        missing = [name for name in schema.names if name not in present]
        if missing:
            raise InvalidError(
                f"The merger {self.name!r} returned no column {', '.join(missing)}. Return all columns."
            )
        try:
            return conform_table(merged.select(schema.names), schema)
        except (InvalidError, pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
            raise InvalidError(
                f"The merger {self.name!r} returned columns of other types ({error}). Cast them back."
            ) from error
