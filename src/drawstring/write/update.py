"""Rows of the table as source of a write that deletes or updates them.

slices that may match ── read with the condition ──> rows with key, partition, file id ── SET ──> write

The file group of each row is known, so the rows need no tagging.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.base.errors import InvalidError, UnsupportedError
from drawstring.config.table_config import KeyGeneratorType, TableConfig
from drawstring.config.table_types import columns_of
from drawstring.engine.protocol import Rows
from drawstring.expressions.columns import resolve_column
from drawstring.expressions.evaluation import evaluated
from drawstring.expressions.predicate import Where, condition_sql, load_parser, parse_value, parse_where
from drawstring.filegroups.file_slice_reader import ReadTask, read_slice
from drawstring.filegroups.log_scanner import record_keys, row_deletes
from drawstring.filegroups.read_task import InstantRange
from drawstring.index.protocol import LOCATION, Index, file_group_locations
from drawstring.index.tag_context import TagContext
from drawstring.merge.record_merger import merger_of
from drawstring.merge.record_version import combined_chunks, ordering_fields, ordering_of, wins_over
from drawstring.query.planner import Query, may_hold, query_of, snapshot_tasks
from drawstring.query.table_state import TableFacts, load_facts
from drawstring.schema.evolution import conform
from drawstring.schema.fields import PARTITION_PATH, RECORD_KEY
from drawstring.txn.read_set import Groups, Reads, anywhere
from drawstring.txn.table_context import TableContext
from drawstring.txn.transaction import LockedTable
from drawstring.write.placement import RepeatedRecords
from drawstring.write.plan import Verb, WritePlan


@dataclass(frozen=True, slots=True)
class MatchedRows:
    """The rows of the table that meet a condition, to delete or update.

    Attributes:
        where: the condition; None for all rows.
        changes: new value by column; None to delete the rows.
    """

    where: Where
    changes: Mapping[str, Any] | None = None

    @property
    def reads_once(self) -> bool:
        """Return False: the rows are those of the table."""
        return False

    def repeatable(self) -> MatchedRows:
        """Return the source: every attempt reads the rows of the table again."""
        load_parser(self.where, () if self.changes is None else self.changes.values())
        return self

    def bind(self, locked: LockedTable) -> BoundMatchedRows:
        """Check condition and changes against the table.

        Raises:
            InvalidError: a column does not exist or cannot be set, or a type does not fit.
        """
        facts = facts_for_change(locked)
        changes = None if self.changes is None else checked_changes(self.changes, facts.schema, facts.config)
        names = (*key_columns(facts.config), *(() if changes is None else facts.schema.names))
        query = query_for_change(facts, names, self.where)
        return BoundMatchedRows(locked.context, query, changes)


def facts_for_change(locked: LockedTable) -> TableFacts:
    """Load a table whose rows are to be changed.

    Raises:
        InvalidError: it has no columns yet.
        UnsupportedError: its files lack columns.
    """
    facts = load_facts(locked.context.storage, locked.context.clock, locked.context.uses_metadata)
    if not len(facts.schema):
        raise InvalidError("The table has no data yet, so there is nothing to change. Write rows first.")
    check_whole_rows(facts.config)
    return facts


def check_whole_rows(config: TableConfig) -> None:
    """Check that the files have all columns of the rows.

    Raises:
        UnsupportedError: they lack the partition columns.
    """
    if config.drop_partition_columns:
        raise UnsupportedError(
            "In a table whose files lack the partition columns, rows cannot be changed by a condition or"
            " merged yet. Upsert or delete them by their keys."
        )


def query_for_change(facts: TableFacts, columns: Iterable[str], where: Where) -> Query:
    """Return the query for rows as stored in the files, without partition values from folder names.

    Raises:
        InvalidError: the condition is invalid.
    """
    query = query_of(facts, tuple(columns), None, InstantRange.of(facts.timeline))
    condition = parse_where(where, facts.full_schema)
    wording = condition_sql(where, condition)
    return replace(query, schema=facts.full_schema, where=condition, wording=wording)


def slices_for_change(query: Query) -> Sequence[ReadTask]:
    """Return the tasks of such a query."""
    if prunes_for_change(query):
        return snapshot_tasks(query)
    whole = snapshot_tasks(replace(query, where=None))
    return [replace(task, where=query.where, partition_values={}) for task in whole]


def prunes_for_change(query: Query) -> bool:
    """Return whether partitions are ruled out by their values: formatted ones are not used."""
    return query.facts.config.path_generator is not KeyGeneratorType.TIMESTAMP


def key_columns(config: TableConfig) -> tuple[str, ...]:
    """Return the columns with the record keys."""
    return (RECORD_KEY,) if config.populate_meta_fields else config.record_key_fields


@dataclass(frozen=True, slots=True)
class BoundMatchedRows:
    """`MatchedRows` bound to a table.

    Attributes:
        context: the table.
        query: query for the rows.
        changes: new value by column; None to delete the rows.
    """

    context: TableContext
    query: Query
    changes: Mapping[str, pc.Expression] | None

    @property
    def schema(self) -> pa.Schema:
        """Columns of the table; no columns are added."""
        return self.query.facts.schema

    def reads(self, written: Groups) -> Reads:
        """Return the partitions and buckets that the condition does not rule out."""
        is_pruned = prunes_for_change(self.query)
        reach = partial(may_hold, self.query) if is_pruned else anywhere
        return Reads(reach, reach)

    def repeated(self, context: Callable[[], TagContext]) -> RepeatedRecords:
        """Return what refuses to change some of several records with a key."""
        return RepeatedRecords.of(context())

    @property
    def sets(self) -> tuple[str, ...]:
        """The columns that are set."""
        return tuple(self.changes or ())

    def acts_as(self, verb: Verb, config: TableConfig) -> Verb:
        """Return the operation: rows of a table have their keys."""
        return verb

    def prepared(self, plan: WritePlan) -> Rows:
        """Return the rows to write, each with its file group."""
        columns = plan.prepare.schema
        read = ReadForChange(columns, self.query.facts.config, plan.index)
        rows = self.context.engine.read(slices_for_change(self.query), read, read.schema)
        if not self.changes:
            return rows
        return rows.map_batches(Assign(self.changes, columns, self.query.facts.config), read.schema)

    def release(self) -> None:
        """Do nothing."""


@dataclass(frozen=True, slots=True)
class ReadForChange:
    """Reads the rows of a slice with their key, partition path and location.

    Attributes:
        columns: columns of the rows.
        config: the table.
        index: index of the write; unless it hashes, rows stay in their file groups.
    """

    columns: pa.Schema
    config: TableConfig
    index: Index

    @property
    def schema(self) -> pa.Schema:
        """Columns of the rows and the added columns."""
        return pa.schema(
            [*self.columns, *(pa.field(name, pa.string()) for name in (RECORD_KEY, PARTITION_PATH, LOCATION))]
        )

    def __call__(self, task: ReadTask) -> Iterator[pa.RecordBatch]:
        """Read one slice."""
        for batch in read_slice(task):
            keys = record_keys(batch, self.config)
            paths = pa.repeat(task.file_slice.partition, batch.num_rows)
            locations = self.index.locations(keys, paths)
            columns = [
                *conform(batch, self.columns).columns,
                keys,
                paths,
                file_group_locations(pa.repeat(task.file_slice.file_id, batch.num_rows))
                if locations is None
                else locations,
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=self.schema)


@dataclass(frozen=True, slots=True)
class Assign:
    """Batch function that sets columns.

    Attributes:
        changes: new value by column.
        columns: schema of the table.
        config: the table.
    """

    changes: Mapping[str, pc.Expression]
    columns: pa.Schema
    config: TableConfig

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Set the columns of a stream of batches; drop rows that would lose against their old versions.

        Raises:
            InvalidError: a value does not fit its column.
        """
        orders = not self.changes.keys().isdisjoint(columns_of(ordering_fields(self.config)))
        for before in batches:
            after = self._set(before)
            yield not_late(before, after, self.config) if orders else after

    def _set(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        values = assigned(pa.Table.from_batches([batch]), self.changes, self.columns)
        for name, column in zip(values.schema.names, values.columns, strict=True):
            place = batch.schema.get_field_index(name)
            batch = batch.set_column(place, batch.schema.field(name), column)
        return batch


def not_late(before: pa.RecordBatch, after: pa.RecordBatch, config: TableConfig) -> pa.RecordBatch:
    """Return the rows that win over their old versions; all rows if records merge by column.

    Args:
        before: rows of the table.
        after: the same rows with columns set.
        config: the table.
    """
    if not merger_of(config).chooses_whole_records:
        return after
    wins = wins_over(ordering_of(after, config), ordering_of(before, config))
    wins |= row_deletes(pa.Table.from_batches([after]), config)[1]
    return after if wins.all() else after.filter(pa.array(wins))


def assigned(rows: pa.Table, changes: Mapping[str, pc.Expression], columns: pa.Schema) -> pa.RecordBatch:
    """Return the new values of columns, cast to the column types.

    Args:
        rows: input of the expressions.
        changes: new value by column.
        columns: schema of the table.

    Raises:
        InvalidError: an expression fails on a row, or a value does not fit its column.
    """
    names = list(changes)
    try:
        values = evaluated(rows, list(changes.values()), names)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidError(
            f"Setting {', '.join(names)} fails on a row: {' '.join(str(error).split())}."
            " Correct the expression."
        ) from error
    whole = pa.RecordBatch.from_arrays([combined_chunks(column) for column in values.columns], names=names)
    return conform(whole, pa.schema([columns.field(name) for name in names]))


def checked_changes(
    changes: Mapping[str, Any], schema: pa.Schema, config: TableConfig
) -> dict[str, pc.Expression]:
    """Return the new values of columns as expressions over the rows of the table.

    Raises:
        InvalidError: nothing is set, a column does not exist or cannot be set, or a type does not fit.
    """
    names = settable(changes, schema, config)
    return {name: parse_value(changes[given], schema, schema.field(name)) for given, name in names.items()}


def settable(given: Iterable[str], schema: pa.Schema, config: TableConfig) -> dict[str, str]:
    """Return the table's spelling of the columns that an update sets, by given name.

    Raises:
        InvalidError: no column is given, or one does not exist, is given twice, or is a key or partition
            column.
    """
    names = {each: resolve_column([each], schema)[0] for each in given}
    if not names:
        raise InvalidError("The update sets no columns. Give at least one column and its value.")
    if len(set(names.values())) < len(names):
        raise InvalidError(f"A column is set twice: {', '.join(names)}. Set each column once.")
    for what, fixed in (
        ("record key", columns_of(config.record_key_fields)),
        ("partition path", columns_of(config.partition_fields)),
    ):
        if wrong := [name for name in names.values() if name in fixed]:
            raise InvalidError(
                f"Column {wrong[0]} is part of the {what} and cannot be set. Delete the row and insert"
                " another."
            )
    return names
