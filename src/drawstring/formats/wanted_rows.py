"""Which rows of a file a reader needs, by their record keys."""

from __future__ import annotations

from dataclasses import dataclass
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


EVERY_ROW: Final = WantedRows()
