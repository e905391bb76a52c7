"""A table of a database as a source, as HoodieStreamer's `JdbcSource` has it.

checkpoint    the greatest value of a column, as text; the next batch has the rows with greater values.
              Without a column every run has all rows, and the checkpoint stays
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import pyarrow as pa

from drawstring.base.clock import Clock
from drawstring.base.errors import InvalidError
from drawstring.ingestion.checkpoints import Checkpoint
from drawstring.ingestion.sources.database import DatabaseTable, text_of_value, value_of_text
from drawstring.ingestion.sources.protocol import Reading, SourceBatch

LIMIT_ROWS: Final = 5_000_000


@dataclass(slots=True)
class JdbcSource:
    """The rows of a table.

    Attributes:
        table: the table.
        column: the column whose values grow; None to read all rows.
        clock: tells when all rows were read.
    """

    table: DatabaseTable
    column: str | None
    clock: Clock
    _is_read: bool = False

    @property
    def unit(self) -> str:
        return "rows"

    def after(self, checkpoint: Checkpoint | None, limit: int | None) -> SourceBatch | None:
        key = checkpoint.key if checkpoint is not None else ""
        if self.column is None:
            return self._whole(key)
        column = self.table.column(self.column)
        last = self._value(key) if key else None
        size, left, end = self._found(column, last, LIMIT_ROWS if limit is None else limit)
        if end is None:
            return None
        read = partial(self._rows, column, last, end)
        return SourceBatch(Checkpoint(text_of_value(end)), size, left, read)

    def committed(self, checkpoint: Checkpoint) -> None:
        """Do nothing: the database keeps its rows."""

    def close(self) -> None:
        self.table.close()

    def _whole(self, key: str) -> SourceBatch | None:
        """Return all rows as one batch, once a run."""
        from sqlalchemy import func, select

        if self._is_read:
            return None
        self._is_read = True
        (size,) = self.table.one(select(func.count()).select_from(self.table.table))
        everything = select(self.table.table)
        checkpoint = Checkpoint(key, state=str(self.clock.now_ms()))
        return SourceBatch(checkpoint, size, 0, lambda _: self.table.rows(everything))

    def _found(self, column: Any, last: Any, limit: int) -> tuple[int, int, Any]:
        """Return the numbers of rows in a batch and after it, and the greatest value in it."""
        from sqlalchemy import func, select

        values = select(column).where(column.is_not(None) if last is None else column > last)
        taken = values.order_by(column).limit(limit).subquery()
        (end,) = self.table.one(select(func.max(taken.c[0])), column.name)
        if end is None:
            return 0, 0, None
        every = values.subquery()
        upto = func.count().filter(every.c[0] <= end)
        size, count = self.table.one(select(upto, func.count()).select_from(every))
        return size, count - size, end

    def _rows(self, column: Any, last: Any, end: Any, reading: Reading) -> pa.RecordBatchReader:
        """Return the rows up to a value; the first batch has those without a value as well."""
        from sqlalchemy import or_, select

        upto = or_(column <= end, column.is_(None)) if last is None else (column > last) & (column <= end)
        return self.table.rows(select(self.table.table).where(upto).order_by(column))

    def _value(self, text: str) -> Any:
        column = self.table.column(self.column or "")
        kind = self.table.schema.field(column.name).type
        try:
            return value_of_text(text, kind, has_zone=bool(getattr(column.type, "timezone", False)))
        except (ValueError, ArithmeticError) as error:
            raise InvalidError(
                f"The checkpoint {text!r} is no value of column {self.column} ({kind}): the rows came from"
                " another source. Give checkpoint, or ignore_checkpoint to begin with the whole table."
            ) from error
