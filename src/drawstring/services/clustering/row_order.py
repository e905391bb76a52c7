"""The sort order of the rows of a clustering group: by columns, or along a space-filling curve."""

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
"""Greatest number of bytes of rows that sorting one group keeps in memory."""

_PLACE: Final = "_drawstring_place"
_SAMPLE_ROWS: Final = 2_048


@dataclass(frozen=True, slots=True)
class RowOrder:
    """A sort order of rows.

    Attributes:
        columns: the sort columns; none leaves rows in their order.
        layout: linear, or a space-filling curve through all columns.
        sampled: whether a curve goes through ranks of values, estimated from a sample.
    """

    columns: tuple[str, ...] = ()
    layout: str = Layout.LINEAR.value
    sampled: bool = False

    @staticmethod
    def of(parameters: Mapping[str, str], clustering: Clustering) -> RowOrder:
        """Return the order of a plan; Hudi's plans do not contain the kind of curve.

        Args:
            parameters: strategy parameters of the plan.
            clustering: the caller's options, used where the plan has no value.
        """
        layout = parameters.get(LAYOUT, clustering.layout).upper()
        method = parameters.get(CURVE_METHOD, clustering.curve_method)
        return RowOrder(split_list(parameters.get(SORT_COLUMNS, "")), layout, method.upper() == "SAMPLE")

    def check(self, schema: pa.Schema) -> None:
        """Refuse columns that rows cannot be sorted by.

        Raises:
            InvalidError: the table lacks a column, or its type has no order.
        """
        for name in self.columns:
            if name not in schema.names:
                raise InvalidError(
                    f"There is no column {name} to sort by. The columns of the table are {_listed(schema)}."
                )
            ordered_bits(pa.nulls(0, schema.field(name).type))

    @property
    def needs_sample(self) -> bool:
        """Whether rows have to be sampled before they are sorted."""
        return self.sampled and self._is_curve

    def sample(self, batches: Iterable[pa.RecordBatch]) -> dict[str, Bits]:
        """Return values that divide the values of each column evenly.

        Args:
            batches: all rows, with at least the sort columns.
        """
        samples: dict[str, list[Bits]] = {name: [] for name in self.columns}
        for batch in batches:
            step = max(1, batch.num_rows // _SAMPLE_ROWS)
            rows = pa.array(np.arange(0, batch.num_rows, step))
            for name in self.columns:
                samples[name].append(ordered_bits(batch.column(name).take(rows)))
        return {name: sample_cuts(np.concatenate(bits)) for name, bits in samples.items() if bits}

    def sorted(
        self, batches: Iterable[pa.RecordBatch], schema: pa.Schema, rank_bounds: Mapping[str, Bits]
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows in order; beyond `SORT_BYTES` they are spilled to disk.

        Args:
            batches: the rows.
            schema: of the rows.
            rank_bounds: result of `sample`, by column; empty for none.
        """
        if not self.columns:
            yield from batches
            return
        batches_with_place = self._placed(batches, rank_bounds) if self._is_curve else batches
        sort_columns = (_PLACE,) if self._is_curve else self.columns
        sorted_schema = pa.schema([*schema, *([self._place_field] if self._is_curve else [])])
        ranges = SortedRanges(sorted_schema, sort_columns, SORT_BYTES, parts=1)
        try:
            ranges.take(_as(each, sorted_schema) for each in batches_with_place)
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
        self, batches: Iterable[pa.RecordBatch], rank_bounds: Mapping[str, Bits]
    ) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            axes = [ordered_bits(batch.column(name)) for name in self.columns]
            if rank_bounds:
                axes = [ranks(bits, rank_bounds[name]) for name, bits in zip(self.columns, axes, strict=True)]
            places = curve(axes, hilbert=self.layout == Layout.HILBERT)
            yield batch.append_column(self._place_field, places)


def _as(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch with exactly the types of a schema: constant columns may come dictionary-encoded."""
    columns = [batch.column(field.name) for field in schema]
    plain = [
        column.cast(field.type) if column.type != field.type else column
        for column, field in zip(columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(plain, schema=schema)


def _listed(schema: pa.Schema) -> str:
    return ", ".join(schema.names)
