"""Define the sources of a write: rows of the caller, or rows derived from those of the table.

A `WriteSource` is bound to the table under the table lock, so that no other write can change the rows that
it read. `batches_of` opens data of the caller as batches.

A partial update has rows with some of the columns of the table, and leaves the other columns unchanged:

    MERGE_ON_READ, version 8 and later, event-time ordering
                      log blocks with these columns only; readers merge them into the record
    everything else   a merge: the record is read and written as a whole
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from drawstring.base.errors import InvalidError, no_text
from drawstring.base.resources import BATCH_ROWS
from drawstring.config.table_config import TableConfig
from drawstring.config.table_types import columns_of
from drawstring.engine.local import LocalEngine
from drawstring.engine.protocol import Rows
from drawstring.expressions.columns import check_columns
from drawstring.filegroups.write.changes import RowAction
from drawstring.schema.fields import without_meta
from drawstring.timeline.schema import table_schema
from drawstring.txn.read_set import NO_ROWS, Groups, Reads
from drawstring.txn.table_context import TableContext
from drawstring.txn.transaction import LockedTable
from drawstring.write.merge import MergeRows, RequestedClause, When
from drawstring.write.plan import Verb, WritePlan, partial_columns
from drawstring.write.update import check_whole_rows

if TYPE_CHECKING:
    from drawstring.index.tag_context import TagContext
    from drawstring.write.placement import RepeatedRecords


def batches_of(data: Any) -> tuple[pa.Schema, Iterable[pa.RecordBatch]]:
    """Open user data as batches.

    The C interfaces truncate column names at a NUL, so pyarrow objects are not read through them.

    Args:
        data: an object with the Arrow C stream or array interface (pyarrow, polars, DuckDB and others), or a
            pandas DataFrame.

    Returns:
        The schema and the batches, each of at most `BATCH_ROWS` rows: an iterator, or for data in memory
        batches that can be read several times.

    Raises:
        InvalidError: the object has another type.
    """
    if _is_pandas_frame(data):
        data = _from_pandas(data)
    reader = _reader(data)
    in_memory = isinstance(data, pa.Table | pa.RecordBatch)
    return reader.schema, _InMemory(data) if in_memory else _bounded(reader)


@dataclass(frozen=True, slots=True)
class _InMemory:
    """Batches of a table in memory."""

    data: pa.Table | pa.RecordBatch

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return _bounded(_reader(self.data))


def _reader(data: Any) -> pa.RecordBatchReader:
    try:
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
        raise _unreadable(data, error) from error
    if isinstance(data, list) and data and isinstance(data[0], dict):
        raise InvalidError("Rows cannot be read from a list of dicts. Give pyarrow.Table.from_pylist(rows).")
    raise InvalidError(
        f"Rows cannot be read from {type(data).__name__}. Give a pyarrow Table or RecordBatchReader,"
        " a pandas or polars DataFrame, or another object with the Arrow C stream interface."
    )


def _from_pandas(frame: Any) -> pa.Table:
    try:
        return pa.Table.from_pandas(frame, preserve_index=_index_to_keep(frame))
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise _unreadable(frame, error) from error


def _unreadable(data: Any, error: Exception) -> InvalidError:
    reason = no_text(error).message if isinstance(error, UnicodeEncodeError) else f"{error}."
    return InvalidError(f"Rows of this {type(data).__name__} cannot be read: {reason}")


def _check_names(data: Any) -> None:
    """Check for column names that the C interfaces truncate, if the object has names, as polars frames do."""
    names = getattr(data, "columns", None)
    for name in names if isinstance(names, list) else ():
        if isinstance(name, str) and "\0" in name:
            raise InvalidError(f"The name of column {name!r} contains NUL. Rename the column.")


def _is_pandas_frame(data: Any) -> bool:
    kinds = (f"{kind.__module__.partition('.')[0]}.{kind.__name__}" for kind in type(data).__mro__)
    return "pandas.DataFrame" in kinds


def _index_to_keep(frame: Any) -> bool | None:
    """Return pyarrow's `preserve_index`: a named index becomes columns, row numbers do not."""
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
        raise InvalidError(f"Reading the given rows failed: {error}.") from error


class WriteSource(Protocol):
    """Rows to write, not yet bound to the table."""

    @property
    def reads_once(self) -> bool:
        """Whether the rows can be read only once."""
        ...

    def repeatable(self) -> WriteSource:
        """Return the source for several attempts of the write."""
        ...

    def bind(self, locked: LockedTable) -> BoundSource:
        """Check the write against the table without changing it.

        Raises:
            InvalidError: the rows or the options do not fit the table.
        """
        ...


class BoundSource(Protocol):
    """Rows to write, bound to the locked table."""

    @property
    def schema(self) -> pa.Schema:
        """Columns of the rows."""
        ...

    def reads(self, written: Groups) -> Reads:
        """Return which rows of the table the rows depend on, once they were written.

        Args:
            written: the file groups that they were written to.
        """
        ...

    def repeated(self, context: Callable[[], TagContext]) -> RepeatedRecords | None:
        """Return what refuses to change some of several records with a key; None if rows mean all of them."""
        ...

    @property
    def sets(self) -> tuple[str, ...]:
        """The columns that updates set; empty for whole rows."""
        ...

    def acts_as(self, verb: Verb, config: TableConfig) -> Verb:
        """Return the operation that results for these rows on a table."""
        ...

    def prepared(self, plan: WritePlan) -> Rows:
        """Return the rows with keys, partition paths and, if known, locations and actions."""
        ...

    def release(self) -> None:
        """Release persisted rows."""
        ...


@dataclass(frozen=True, slots=True)
class InputRows:
    """Rows of the caller.

    Attributes:
        rows: rows in the engine.
    """

    rows: Rows

    @property
    def schema(self) -> pa.Schema:
        """Columns of the rows."""
        return self.rows.schema

    def reads(self, written: Groups) -> Reads:
        """Return nothing: the rows do not depend on the table."""
        return NO_ROWS

    def repeated(self, context: Callable[[], TagContext]) -> None:
        """Return None: rows of the caller mean all records with their keys."""

    @property
    def sets(self) -> tuple[str, ...]:
        """Empty: the rows are whole."""
        return ()

    @property
    def reads_once(self) -> bool:
        """Whether the rows can be read only once."""
        return self.rows.reads_once

    def repeatable(self) -> InputRows:
        """Return the source with rows that can be read several times."""
        return InputRows(self.rows.repeatable())

    def bind(self, locked: LockedTable) -> InputRows:
        """Return the rows: they do not depend on the table."""
        return self

    def acts_as(self, verb: Verb, config: TableConfig) -> Verb:
        """Return the operation: in a table without key columns, rows without keys are new."""
        return verb.on(config, self.schema.names)

    def prepared(self, plan: WritePlan) -> Rows:
        """Return the rows with keys and partition paths, and locations if the index hashes."""
        return self.rows.map_batches(plan.prepare, plan.prepare.output_schema)

    def release(self) -> None:
        """Do nothing."""


def local_rows(context: TableContext, data: Any) -> tuple[TableContext, Rows]:
    """Read rows of the caller's process in the embedded engine, and return the table with that engine.

    Args:
        context: the table; if it has another engine, the embedded engine runs this write instead.
        data: see `batches_of`.

    Returns:
        The table with the embedded engine, and the rows in it.

    Raises:
        InvalidError: the object has no rows that can be read.
    """
    schema, batches = batches_of(data)
    engine = context.engine
    local = engine if isinstance(engine, LocalEngine) else LocalEngine()
    table = context if local is engine else replace(context, engine=local)
    return table, local.rows(schema, batches)


_ALIASES = ("source", "target")


@dataclass(frozen=True, slots=True)
class PartialRows:
    """Rows of a partial update.

    Attributes:
        rows: rows with key, partition and ordering columns, and the columns to set.
    """

    rows: Rows

    @property
    def reads_once(self) -> bool:
        """Whether the rows can be read only once."""
        return self.rows.reads_once

    def repeatable(self) -> PartialRows:
        """Return the source with rows that can be read several times."""
        return PartialRows(self.rows.repeatable())

    def bind(self, locked: LockedTable) -> BoundSource:
        """Choose how the rows are written.

        Raises:
            InvalidError: the rows have a column that the table lacks, lack a key, partition or ordering
                column, or set no column.
            UnsupportedError: the files of the table lack columns.
        """
        config, incoming = locked.config, without_meta(self.rows.schema)
        if not config.record_key_fields:
            raise InvalidError("The table has no key columns. Update its rows by a condition.")
        check_whole_rows(config)
        set_columns = _set_columns(incoming, config)
        _check_identified(incoming, config)
        current = table_schema(locked.context.storage, locked.store, locked.store.load(), config)
        if len(current):
            check_columns(incoming.names, current)
        if not len(current) or partial_columns(incoming, current, config):
            return InputRows(self.rows)
        fixed = dict.fromkeys((*config.record_key_fields, *config.partition_fields))
        clauses = (
            RequestedClause(When.MATCHED, RowAction.UPDATE, None, _from_source(set_columns)),
            RequestedClause(When.NOT_MATCHED, RowAction.INSERT, None, _from_source(incoming.names)),
        )
        return MergeRows(self.rows, tuple(fixed), _ALIASES, clauses, is_upsert=True).bind(locked)


def _check_identified(incoming: pa.Schema, config: TableConfig) -> None:
    """Check that rows say which record they change, and how new they are."""
    roles = {
        **dict.fromkeys(columns_of(config.ordering_fields), "the ordering column"),
        **dict.fromkeys(columns_of(config.partition_fields), "a partition column"),
        **dict.fromkeys(columns_of(config.record_key_fields), "a record key column"),
    }
    there = {name.lower() for name in incoming.names}
    missing = [name for name in roles if name.lower() not in there]
    if missing:
        lacked = ", and ".join(f"{name}, {roles[name]}" for name in missing[::-1])
        raise InvalidError(f"The rows lack {lacked}. Add {'it' if len(missing) == 1 else 'them'}.")


def _set_columns(incoming: pa.Schema, config: TableConfig) -> list[str]:
    names = [name for name in incoming.names if name not in config.key_columns]
    if not names:
        raise InvalidError("The rows have only key and partition columns. Add the columns to update.")
    return names


def _from_source(names: list[str]) -> dict[str, str]:
    return {name: f"`{_ALIASES[0]}`.`{name}`" for name in names}
