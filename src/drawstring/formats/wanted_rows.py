"""Which rows of a file a reader needs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.bounds import BATCH_ROWS


@dataclass(frozen=True, slots=True)
class KeyRange:
    """A range of record keys, as a condition on one column with which all versions of a record agree.

    Attributes:
        column: the column: `_hoodie_record_key`, or the key column of the table.
        condition: the range.
    """

    column: str
    condition: pc.Expression


@dataclass(frozen=True, slots=True)
class WantedRows:
    """The rows of a log file to read; others may be left out.

    Attributes:
        keys: the only record keys whose rows are needed, text; None for all.
        key_range: the range of keys whose rows are needed; None for all.
        batch_rows: largest number of rows in a batch.
        ahead_bytes: size of small row groups that are read together; 0 for one at a time, None for what is
            fastest.
    """

    keys: pa.Array | None = None
    key_range: KeyRange | None = None
    batch_rows: int = BATCH_ROWS
    ahead_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class AskedRows:
    """Rows to read of a file in a format other than Parquet; others may be among those that are read.

    Attributes:
        columns: top-level columns to yield, in this order, of which those that the file lacks are left out;
            None for all.
        where: condition of the rows; None for all.
        bound: its columns, with their types in its evaluation.
        constants: those of them of which the values in the file do not count.
        keys: the only record keys that rows of `where` can have; None for any.
        batch_rows: largest number of rows in a batch.
    """

    columns: Sequence[str] | None = None
    where: pc.Expression | None = None
    bound: pa.Schema = field(default_factory=lambda: pa.schema([]))
    constants: Collection[str] = ()
    keys: Sequence[str] | None = None
    batch_rows: int = BATCH_ROWS

    @property
    def are_all(self) -> bool:
        """Whether no row may be left out."""
        return self.where is None and self.keys is None


EVERY_ROW: Final = WantedRows()
