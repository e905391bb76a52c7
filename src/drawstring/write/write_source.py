"""Sources of a write: rows that the caller hands over, or rows made of those in the table.

A feed is bound to the table while the table is locked, so that what was read is what is changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from drawstring.base.bounds import BATCH_ROWS
from drawstring.base.errors import InvalidError
from drawstring.config.table.config import TableConfig
from drawstring.engine.local import LocalEngine
from drawstring.engine.protocol import Rows
from drawstring.txn.table_context import TableContext
from drawstring.txn.transaction import LockedTable
from drawstring.write.plan import WritePlan
from drawstring.write.verbs import Verb


def batches_of(data: Any) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Open user data as a stream.

    The C interfaces end a column's name at its first NUL, so what pyarrow has is taken without them.

    Args:
        data: an object with the Arrow C stream or array interface (pyarrow, polars, DuckDB, ...),
            or a pandas DataFrame.

    Returns:
        The schema and the batches, each of at most `BATCH_ROWS` rows; read once.

    Raises:
        InvalidError: the object is none of these.
    """
    reader = _reader(data)
    return reader.schema, _bounded(reader)


def _reader(data: Any) -> pa.RecordBatchReader:
    try:
        if _is_pandas_frame(data):
            return pa.Table.from_pandas(data, preserve_index=_index_to_keep(data)).to_reader()
        if isinstance(data, pa.RecordBatchReader):
            return data
        if isinstance(data, pa.Table):
            return data.to_reader()
        if isinstance(data, pa.RecordBatch):
            return pa.RecordBatchReader.from_batches(data.schema, [data])
        _check_names(data)
        if hasattr(data, "__arrow_c_stream__"):
            return pa.RecordBatchReader.from_stream(data)
        if hasattr(data, "__arrow_c_array__"):
            batch = pa.record_batch(data)
            return pa.RecordBatchReader.from_batches(batch.schema, [batch])
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InvalidError(f"cannot read rows from this {type(data).__name__}: {error}") from error
    raise InvalidError(
        f"cannot read rows from {type(data).__name__}: hand over a pyarrow Table or RecordBatchReader,"
        " a pandas or polars DataFrame, or anything with the Arrow C stream interface"
    )


def _check_names(data: Any) -> None:
    """Refuse columns whose names the C interfaces cut off, where the object tells names: polars frames do."""
    names = getattr(data, "columns", None)
    for name in names if isinstance(names, list) else ():
        if isinstance(name, str) and "\0" in name:
            raise InvalidError(f"Column {name!r} has a NUL in its name: rename it.")


def _is_pandas_frame(data: Any) -> bool:
    kinds = (f"{kind.__module__.partition('.')[0]}.{kind.__name__}" for kind in type(data).__mro__)
    return "pandas.DataFrame" in kinds


def _index_to_keep(frame: Any) -> bool | None:
    """Tell pyarrow which index makes columns: one with names does, row numbers do not."""
    is_named = all(name is not None and name not in frame.columns for name in frame.index.names)
    return None if is_named else False


def _bounded(reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    while (batch := _next(reader)) is not None:
        for start in range(0, batch.num_rows, BATCH_ROWS):
            yield batch.slice(start, BATCH_ROWS)


def _next(reader: pa.RecordBatchReader) -> pa.RecordBatch | None:
    try:
        return reader.read_next_batch()
    except StopIteration:
        return None
    except pa.ArrowException as error:
        raise InvalidError(f"the rows handed over cannot be read to their end: {error}") from error


class WriteSource(Protocol):
    """Rows to write, before the table is known."""

    def bind(self, session: LockedTable) -> BoundSource:
        """Check against the table what is to be done; nothing on it changes.

        Raises:
            InvalidError: it cannot be done.
        """
        ...


class BoundSource(Protocol):
    """Rows to write to a table as it was found under its lock."""

    @property
    def schema(self) -> pa.Schema:
        """Columns that the rows bring."""
        ...

    @property
    def sets(self) -> tuple[str, ...]:
        """The only columns that updates set, while others stay; none where rows say all."""
        ...

    def acts_as(self, verb: Verb, config: TableConfig) -> Verb:
        """Return what an operation comes to with these rows on a table."""
        ...

    def prepared(self, plan: WritePlan) -> Rows:
        """Return the rows with keys, partition paths and what else is known: locations, actions."""
        ...

    def release(self) -> None:
        """Let go of what was kept."""
        ...


@dataclass(frozen=True, slots=True)
class InputRows:
    """Rows that a caller hands over.

    Attributes:
        rows: in the engine.
    """

    rows: Rows

    @property
    def schema(self) -> pa.Schema:
        """Columns that the rows bring."""
        return self.rows.schema

    @property
    def sets(self) -> tuple[str, ...]:
        """None: rows say all."""
        return ()

    def bind(self, session: LockedTable) -> InputRows:
        """Return the rows: they are what they are, whatever the table."""
        return self

    def acts_as(self, verb: Verb, config: TableConfig) -> Verb:
        """Return what an operation comes to: without key columns, rows that say no key are new."""
        return verb.on(config, self.schema.names)

    def prepared(self, plan: WritePlan) -> Rows:
        """Return the rows with their keys and partition paths, and locations from an index that hashes."""
        return self.rows.map_batches(plan.prepare, plan.prepare.output_schema)

    def release(self) -> None:
        """Keep nothing."""


def local_rows(context: TableContext, data: Any) -> tuple[TableContext, Rows]:
    """Return rows that a caller hands over, and the table with the engine that has them.

    Args:
        context: the table; another engine than the embedded one leaves such a write to that one.
        data: see `batches_of`.

    Raises:
        InvalidError: these are no rows.
    """
    schema, batches = batches_of(data)
    engine = context.engine
    local = engine if isinstance(engine, LocalEngine) else LocalEngine()
    table = context if local is engine else TableContext(context.storage, local)
    return table, local.rows(schema, batches)
