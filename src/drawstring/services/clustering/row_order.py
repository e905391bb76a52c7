"""The order in which a clustering puts the rows of a group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from drawstring.base.errors import InvalidError
from drawstring.config.keys.clustering import Clustering, Layout
from drawstring.config.table.kinds import split_list
from drawstring.engine.curves import Bits, curve, ordered_bits, ranks, sample_cuts
from drawstring.engine.ranges import SortedRanges
from drawstring.services.clustering.plan import CURVE_METHOD, LAYOUT, SORT_COLUMNS

SORT_BYTES: Final = 256 << 20
"""Bytes of rows that sorting one group keeps in memory."""

_PLACE: Final = "_drawstring_place"
_SAMPLE_ROWS: Final = 2_048


@dataclass(frozen=True, slots=True)
class RowOrder:
    """How rows are sorted.

    Attributes:
        columns: by which columns; none leaves them as they come.
        layout: one after the other, or a curve through all of them.
        sampled: whether a curve goes through ranks.
    """

    columns: tuple[str, ...] = ()
    layout: str = Layout.LINEAR.value
    sampled: bool = False

    @staticmethod
    def of(parameters: Mapping[str, str], asked: Clustering) -> RowOrder:
        """Return what a plan says; of a curve, plans of Hudi's say nothing.

        Args:
            parameters: of the plan's strategy.
            asked: the caller's options, where the plan says nothing.
        """
        layout = parameters.get(LAYOUT, asked.layout).upper()
        method = parameters.get(CURVE_METHOD, asked.curve_method)
        return RowOrder(split_list(parameters.get(SORT_COLUMNS, "")), layout, method.upper() == "SAMPLE")

    def check(self, schema: pa.Schema) -> None:
        """Refuse columns that rows cannot be sorted by.

        Raises:
            InvalidError: the table lacks one, or its values have no order.
        """
        for name in self.columns:
            if name not in schema.names:
                raise InvalidError(f"there is no column {name} to sort by: the table has {_listed(schema)}")
            ordered_bits(pa.nulls(0, schema.field(name).type))

    @property
    def needs_sample(self) -> bool:
        """Whether rows have to be looked at before they are sorted."""
        return self.sampled and self._is_curve

    def sample(self, batches: Iterable[pa.RecordBatch]) -> dict[str, Bits]:
        """Return what divides the values of each column evenly.

        Args:
            batches: all rows, the sort columns at least.
        """
        drawn: dict[str, list[Bits]] = {name: [] for name in self.columns}
        for batch in batches:
            step = max(1, batch.num_rows // _SAMPLE_ROWS)
            rows = pa.array(np.arange(0, batch.num_rows, step))
            for name in self.columns:
                drawn[name].append(ordered_bits(batch.column(name).take(rows)))
        return {name: sample_cuts(np.concatenate(bits)) for name, bits in drawn.items() if bits}

    def sorted(
        self, batches: Iterable[pa.RecordBatch], schema: pa.Schema, cuts: Mapping[str, Bits]
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows in order; beyond a bound they are kept on disk meanwhile.

        Args:
            batches: the rows.
            schema: their columns.
            cuts: of a sample, by column; empty for none.
        """
        if not self.columns:
            yield from batches
            return
        placed = self._placed(batches, cuts) if self._is_curve else batches
        by = (_PLACE,) if self._is_curve else self.columns
        kept = pa.schema([*schema, *([self._place_field] if self._is_curve else [])])
        ranges = SortedRanges(kept, by, SORT_BYTES, parts=1)
        try:
            ranges.take(_as(each, kept) for each in placed)
            for part in ranges.parts():
                for batch in part:
                    yield batch.select(schema.names)
        finally:
            ranges.close()

    @property
    def _is_curve(self) -> bool:
        return self.layout != Layout.LINEAR and len(self.columns) > 1

    @property
    def _place_field(self) -> pa.Field:
        return pa.field(_PLACE, pa.binary(8 * len(self.columns)))

    def _placed(
        self, batches: Iterable[pa.RecordBatch], cuts: Mapping[str, Bits]
    ) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            axes = [ordered_bits(batch.column(name)) for name in self.columns]
            if cuts:
                axes = [ranks(bits, cuts[name]) for name, bits in zip(self.columns, axes, strict=True)]
            places = curve(axes, hilbert=self.layout == Layout.HILBERT)
            yield batch.append_column(self._place_field, places)


def _as(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch with the very types of a schema: constant columns may come dictionary-encoded."""
    columns = [batch.column(field.name) for field in schema]
    plain = [
        column.cast(field.type) if column.type != field.type else column
        for column, field in zip(columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(plain, schema=schema)


def _listed(schema: pa.Schema) -> str:
    return ", ".join(schema.names)
