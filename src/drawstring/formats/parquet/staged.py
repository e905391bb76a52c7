"""A Parquet file of which a reader decides, row group by row group, what to decode next.

footer ── bounds of columns, may rows match? ──> row groups ── columns, as often as wanted ──> batches
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from drawstring.base.resources import BATCH_ROWS
from drawstring.formats.bloom_footer import may_hold_any
from drawstring.formats.errors import about_file
from drawstring.formats.filter import with_table_types
from drawstring.formats.parquet.reader import (
    ParquetQuery,
    columns_of,
    fetch_if_small,
    group_rows,
    groups_that_may_match,
    open_for_condition,
    open_in_table_units,
    spans,
    types_of,
)
from drawstring.schema.fields import RECORD_KEY
from drawstring.storage.protocol import Storage


@dataclass(frozen=True, slots=True)
class StagedFile:
    """An open file.

    Attributes:
        path: path of the file, for errors.
        file: the file.
        parquet: the same, opened.
        fragment: the same, for tests of its statistics; None if it is not worth it or there is no condition.
        schema: its columns.
        constants: columns with a known value.
    """

    path: str
    file: pa.NativeFile
    parquet: pq.ParquetFile
    fragment: ds.ParquetFileFragment | None
    schema: pa.Schema
    constants: Mapping[str, pa.Scalar]

    @property
    def groups(self) -> range:
        """The numbers of the row groups."""
        return range(self.parquet.metadata.num_row_groups)

    def rows_of(self, group: int) -> int:
        """Return the number of rows of a row group."""
        return int(self.parquet.metadata.row_group(group).num_rows)

    def may_match(self, where: pc.Expression, bound: pa.Schema) -> list[int]:
        """Return the row groups whose statistics do not exclude a match.

        Args:
            where: the predicate.
            bound: its columns, with their types in its evaluation.
        """
        if self.fragment is None:
            return list(self.groups)
        present = with_table_types(self.schema, types_of(self.constants))
        with about_file(self.path):
            return groups_that_may_match(self.fragment, where, bound, present)

    def may_hold_any(self, keys: Sequence[str]) -> bool:
        """Return whether the footer does not exclude all of some record keys."""
        with about_file(self.path):
            return may_hold_any(self.parquet.metadata.metadata or {}, keys)

    def bounds(self, group: int, column: str) -> tuple[Any, Any] | None:
        """Return the smallest and the largest value of a column in a row group, as they are stored.

        Args:
            group: number of the row group.
            column: a top-level column that is not nested.

        Returns:
            Integers for dates, times and integers, bytes for texts; None if they are not known.
        """
        place = self.schema.get_field_index(column)
        leaves = self.parquet.metadata.num_columns
        if place < 0 or leaves != len(self.schema):
            place = next((at for at in range(leaves) if self._path(at) == column), -1)
        stored = None if place < 0 else self.parquet.metadata.row_group(group).column(place).statistics
        if stored is None or not stored.has_min_max:
            return None
        return stored.min_raw, stored.max_raw

    def may_have_any(self, group: int, keys: pa.Array) -> bool:
        """Return whether the bounds of a row group do not exclude all of some record keys.

        Args:
            group: number of the row group.
            keys: the record keys (binary).
        """
        bounds = self.bounds(group, RECORD_KEY)
        if bounds is None or not all(isinstance(bound, bytes) for bound in bounds):
            return True
        lowest, highest = bounds
        ends = pc.min_max(keys).values()
        if any(end.is_valid and lowest <= end.as_py() <= highest for end in ends):
            return True
        inside = pc.and_(pc.greater_equal(keys, lowest), pc.less_equal(keys, highest))
        return bool(pc.any(inside).as_py())

    def spans(self, groups: Sequence[int]) -> Iterator[list[int]]:
        """Return row groups in runs, in each of which they are read together."""
        return spans(self.parquet.metadata, groups)

    def largest_group_bytes(self) -> int:
        """Return the decoded size of the largest row group, all columns together."""
        metadata = self.parquet.metadata
        return max((metadata.row_group(group).total_byte_size for group in self.groups), default=0)

    def rows(
        self, groups: Sequence[int], names: Sequence[str], batch_rows: int = BATCH_ROWS
    ) -> Iterator[pa.RecordBatch]:
        """Yield some columns of the rows of row groups; those that the file lacks are omitted.

        Args:
            groups: numbers of the row groups.
            names: top-level columns.
            batch_rows: largest number of rows in a batch.

        Raises:
            CorruptTableError: the file is damaged.
        """
        stored = {*self.schema.names}
        present = [name for name in names if name in stored]
        with about_file(self.path):
            query = ParquetQuery(batch_rows=batch_rows)
            yield from group_rows(self.file, self.parquet, groups, present, query)

    def _path(self, place: int) -> str:
        return str(self.parquet.metadata.schema.column(place).path)


@contextmanager
def staged(
    storage: Storage, path: str, types: pa.Schema, constants: Mapping[str, pa.Scalar] | None
) -> Iterator[StagedFile]:
    """Open a file.

    Args:
        storage: storage of the table.
        path: path of the file, relative to the storage's root.
        types: the columns of the table.
        constants: columns with a known value, whatever the file has; None if no condition will be tested.

    Raises:
        CorruptTableError: the file is missing or damaged.
    """
    with about_file(path):
        opened = storage.open(path)
    with opened:
        with about_file(path):
            file = fetch_if_small(opened)
            query = ParquetQuery(types=types, constants=constants or {})
            if constants is None:
                parquet, fragment = open_in_table_units(file, query), None
            else:
                parquet, fragment = open_for_condition(file, query)
            schema = columns_of(parquet)
        yield StagedFile(path, file, parquet, fragment, schema, constants or {})
