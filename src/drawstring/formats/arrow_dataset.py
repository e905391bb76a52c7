"""Arrow's dataset interface, by which DuckDB and DataFusion push columns and conditions into a scan."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

OpenReader: TypeAlias = Callable[[Sequence[str] | None, pc.Expression | None], pa.RecordBatchReader]
"""Reads columns (None for all) of the rows that meet a condition."""


class ScannedDataset(ds.Dataset):  # type: ignore[misc]  # pyarrow has no types
    """A dataset whose rows are read by a function; it has no files that others could read themselves.

    Args:
        schema: columns of the rows.
        open_reader: reads rows.
    """

    def __init__(self, schema: pa.Schema, open_reader: OpenReader) -> None:
        self._columns = schema
        self._open_reader = open_reader

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return self._columns

    def scanner(
        self, columns: Sequence[str] | None = None, filter: pc.Expression | None = None, **settings: Any
    ) -> DatasetScanner:
        """Return a scanner of some columns and rows; settings of Arrow's own readers have no effect.

        Args:
            columns: names of columns, all by default.
            filter: the condition.
            settings: such as `batch_size`.
        """
        return DatasetScanner(self, None if columns is None else tuple(columns), filter)

    def get_fragments(self, filter: pc.Expression | None = None) -> Iterator[DatasetFragment]:
        """Yield the dataset as one fragment, which is read with the condition that its scanner is given.

        Args:
            filter: a condition; a scan meets it by itself.
        """
        yield DatasetFragment(self)

    def to_batches(self, **arguments: Any) -> Iterator[pa.RecordBatch]:
        """Yield the rows; arguments as for `scanner`."""
        yield from self.scanner(**arguments).to_reader()

    def to_table(self, **arguments: Any) -> pa.Table:
        """Return the rows; arguments as for `scanner`."""
        return self.scanner(**arguments).to_table()

    def head(self, num_rows: int, **arguments: Any) -> pa.Table:
        """Return the first rows; further arguments as for `scanner`."""
        return self.scanner(**arguments).head(num_rows)

    def count_rows(self, filter: pc.Expression | None = None, **settings: Any) -> int:
        """Return how many rows meet a condition."""
        return self.scanner(filter=filter).count_rows()

    def __reduce__(self) -> tuple[Any, ...]:
        return ScannedDataset, (self._columns, self._open_reader)


@dataclass(frozen=True, slots=True)
class DatasetFragment:
    """A dataset as the only fragment of itself: DataFusion reads fragments."""

    dataset: ScannedDataset

    def scanner(self, schema: pa.Schema | None = None, **arguments: Any) -> DatasetScanner:
        """Return a scanner; further arguments as for that of the dataset.

        Args:
            schema: that of the dataset.
        """
        return self.dataset.scanner(**arguments)


@dataclass(frozen=True, slots=True)
class DatasetScanner:
    """Columns and a condition of a dataset, with the reading methods of Arrow's scanners.

    Attributes:
        dataset: of which.
        columns: None for all.
        condition: None for all rows.
    """

    dataset: ScannedDataset
    columns: tuple[str, ...] | None
    condition: pc.Expression | None

    @property
    def projected_schema(self) -> pa.Schema:
        """The columns that are read."""
        schema = self.dataset.schema
        return schema if self.columns is None else pa.schema([schema.field(name) for name in self.columns])

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows as they are read."""
        return self.dataset._open_reader(self.columns, self.condition)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        yield from self.to_reader()

    def to_table(self) -> pa.Table:
        """Return all rows."""
        return self.to_reader().read_all()

    def head(self, num_rows: int) -> pa.Table:
        """Return the first rows."""
        batches, missing = [], num_rows
        for batch in self.to_reader():
            batches.append(batch.slice(0, missing))
            missing -= batches[-1].num_rows
            if missing == 0:
                break
        return pa.Table.from_batches(batches, self.projected_schema)

    def count_rows(self) -> int:
        """Return how many rows there are."""
        names = self.projected_schema.names[:1]
        reader = self.dataset._open_reader(names, self.condition)
        return sum(batch.num_rows for batch in reader)
