"""Run `UPDATE`, `DELETE`, `MERGE INTO` and `INSERT`: one commit each, of rows that Spark computes.

    slices ── workers ──> rows with their place ── Spark: condition, join, clauses ──> changes ──> write

Row changes: Spark reads the table with a hidden column that identifies each row (`records`), and returns
the rows to write with an operation each. A DELETE of whole partitions replaces their file groups and reads
nothing.

The plan of a statement has a snapshot of every table, taken when the statement was analyzed. Others may
commit before the write begins, so the rows of the target table are read again for each attempt of the write
(`snapshot_of_attempt`). The reads of the target table in the plan show its newest snapshot, and the write
conflicts with every commit that it may have missed.

Inserts and the rows of `CREATE TABLE ... AS SELECT`:

| statement | operation |
|---|---|
| INSERT INTO | `hoodie.spark.sql.insert.into.operation`: `insert` (default), `upsert` or `bulk_insert` |
| INSERT INTO with `hoodie.sql.insert.mode` alone | see `_mode_operation` |
| INSERT INTO with `hoodie.datasource.write.operation=delete` | `delete` of the keys of the rows |
| CREATE TABLE ... AS SELECT | `bulk_insert` as in Hudi, or what the options of INSERT INTO say |
| MERGE INTO that only inserts | `insert` of the records that the table lacks, of each key the one that wins |
| INSERT OVERWRITE of the whole table | `insert_overwrite_table` |
| INSERT OVERWRITE of partitions, static or dynamic | `insert_overwrite` |
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from drawstring.base.errors import InvalidError
from drawstring.config.options.registry import OPTION_OF_KEY
from drawstring.config.options.write_options import options_of
from drawstring.config.table_config import TableConfig
from drawstring.engine.protocol import Rows
from drawstring.expressions.evaluation import evaluated
from drawstring.filegroups.read_task import ReadTask
from drawstring.filegroups.write.changes import ACTION, RowAction
from drawstring.formats.filter import where_columns
from drawstring.query.replanning import Task
from drawstring.query.scan import Scan
from drawstring.schema.fields import META_COLUMNS, constants_of
from drawstring.services.table_services import after_commit
from drawstring.spark.engine import SparkRows
from drawstring.spark.jvm import java, refresh
from drawstring.spark.reading.dataframe import plan_name
from drawstring.spark.reading.filters import conditions
from drawstring.spark.reading.relation import Slices, relation
from drawstring.spark.sql.ddl import paths_like, paths_of_values, static_values
from drawstring.spark.sql.options import (
    BULK_INSERT,
    INSERT_MODE,
    INSERT_OPERATION,
    OPERATION,
    OVERWRITE_MODE,
    statement_option,
)
from drawstring.spark.sql.statement import StatementTable
from drawstring.spark.workers.rows import spark_schema
from drawstring.table import Table
from drawstring.txn.read_set import Groups, Reads, anywhere
from drawstring.txn.transaction import LockedTable
from drawstring.write.changed_rows import RECORD, BoundChanges, read_records, record_type
from drawstring.write.executor import write_source
from drawstring.write.plan import MERGE, UPDATE, VERBS, Verb, verb_of
from drawstring.write.source import BoundSource, InputRows
from drawstring.write.table_writes import drop_partitions
from drawstring.write.update import facts_for_change


class Attempt:
    """The snapshot that an attempt of a write reads from the table that it writes to.

    Args:
        path: root of the table.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._scan: Scan | None = None

    def begin(self) -> None:
        """Forget the snapshot of an earlier attempt."""
        self._scan = None

    def scan(self, path: str, read: Callable[[], Scan]) -> Scan | None:
        """Return the snapshot, taken when it is first asked for; None for other tables."""
        if path != self._path:
            return None
        if self._scan is None:
            self._scan = read()
        return self._scan


_attempt: Final[ContextVar[Attempt | None]] = ContextVar("attempt", default=None)


def current_attempt() -> Attempt | None:
    """Return the attempt that runs in this thread, if any."""
    return _attempt.get()


@contextmanager
def snapshot_of_attempt(path: str) -> Iterator[Attempt]:
    """Let reads of a table show its newest state, at the beginning of each attempt of a write."""
    attempt = Attempt(path)
    token = _attempt.set(attempt)
    try:
        yield attempt
    finally:
        _attempt.reset(token)


@dataclass(frozen=True, slots=True)
class StatementRows:
    """Rows to write that depend on rows of the table.

    Attributes:
        rows: the rows, which are computed again for each attempt.
        attempt: the snapshot that they are computed from.
    """

    rows: Rows
    attempt: Attempt

    @property
    def reads_once(self) -> bool:
        """Return False: Spark computes them again."""
        return False

    def repeatable(self) -> StatementRows:
        """Return these rows."""
        return self

    def bind(self, locked: LockedTable) -> BoundSource:
        """Begin an attempt."""
        self.attempt.begin()
        return _BoundStatementRows(self.rows)


class _BoundStatementRows(InputRows):
    """`StatementRows` bound to a table."""

    def reads(self, written: Groups) -> Reads:
        """Return the whole table: which rows the plan read is Spark's."""
        return Reads(anywhere, anywhere)

    @property
    def schema(self) -> pa.Schema:
        """Columns of the rows."""
        return self.rows.schema


_TRUE: Final = "true"
_OPERATION: Final = "__row_operation"
_ACTIONS: Final = {1: RowAction.DELETE, 2: RowAction.UPDATE, 3: RowAction.INSERT}
"""Actions by Spark's numbers of operations on rows."""

_VERBS: Final[Mapping[str, Verb]] = {"DELETE": VERBS["delete"], "UPDATE": UPDATE, "MERGE": MERGE}


def record_json(schema: pa.Schema, config: TableConfig) -> str:
    """Return Spark's type of the column that identifies each row, as JSON."""
    return spark_schema(pa.schema([(RECORD, record_type(schema, config))]))[RECORD].dataType.json()


def records(table: StatementTable, scan: Scan) -> DataFrame:
    """Return the rows of a scan with the column that identifies each."""
    kind = record_type(scan.schema, table.open().config)
    columns = spark_schema(scan.schema.append(pa.field(RECORD, kind, nullable=False)))
    name = plan_name(table.path)

    def shown(tasks: Sequence[Task]) -> DataFrame:
        return relation(table.spark, Slices(tuple(tasks), columns, name, read=read_records, added=(RECORD,)))

    return scan.use(shown)


def change(table: StatementTable, how: Mapping[str, Any], rows: Any) -> None:
    """Write the changes of a statement in one commit.

    Args:
        table: the table.
        how: `command`: `UPDATE`, `DELETE` or `MERGE`; `equalled`: the columns that each part of the ON
            condition sets equal to something, None for other parts; `options` of the write.
        rows: Spark's rows: operation, columns of the table, the record that is changed.

    Raises:
        ConflictError: another writer was there first; nothing was written.
        InvalidError: the changes do not fit the table; nothing was written.
    """
    command = how["command"]
    verb, target = _VERBS[command], table.for_writes()
    options = options_of(verb.operation.lower(), table.write_options(how["options"]))
    changes = _changes(ClassicDataFrame(rows, table.spark), command)
    matched_on = None if None in how["equalled"] else frozenset(how["equalled"])
    with snapshot_of_attempt(table.path) as attempt, target._errors():
        source = StatementChanges(SparkRows.of(changes), attempt, matched_on)
        after_commit(write_source(target._context, source, verb, options))
    refresh(table.spark, table.path)


def _changes(df: DataFrame, command: str) -> DataFrame:
    """Return the changed rows; of a merge with the action of each."""
    df = df.drop(*META_COLUMNS)
    if command != "MERGE":
        kept = [RECORD] if command == "DELETE" else [name for name in df.columns if name != _OPERATION]
        return df.select(*(F.col(f"`{name}`") for name in kept))
    action = F.lit(None)
    for number, meaning in _ACTIONS.items():
        action = F.when(F.col(_OPERATION) == number, F.lit(int(meaning))).otherwise(action)
    return df.withColumn(ACTION, action.cast("tinyint")).drop(_OPERATION)


@dataclass(frozen=True, slots=True)
class StatementChanges:
    """Changes that a statement makes of rows of the table.

    Attributes:
        rows: the changes, which are computed again for each attempt.
        attempt: the snapshot that they are computed from.
        matched_on: as in `BoundChanges`.
    """

    rows: Rows
    attempt: Attempt
    matched_on: frozenset[str] | None

    @property
    def reads_once(self) -> bool:
        """Return False: Spark computes them again."""
        return False

    def repeatable(self) -> StatementChanges:
        """Return these changes."""
        return self

    def bind(self, locked: LockedTable) -> BoundChanges:
        """Begin an attempt."""
        self.attempt.begin()
        return BoundChanges(self.rows, facts_for_change(locked).schema, self.matched_on)


def can_drop(table: StatementTable, where: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether the rows that meet a condition are whole partitions, or the table.

    Partitions with a pending compaction are not dropped: their rows are deleted as others.
    """
    if where_all(where):
        return True
    partitions = dropped(table, where)
    if partitions is None:
        return False
    view = table.open()._calls.facts().view
    pending = (*view.pending_compactions(), *view.pending_log_compactions())
    return not {partition for partition, _ in pending} & set(partitions)


def where_all(where: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether a condition holds for every row."""
    return all(each.get("value") == _TRUE for each in where)


def dropped(table: StatementTable, where: Sequence[Mapping[str, Any]]) -> list[str] | None:
    """Return the partitions whose rows all meet a condition; None if it may hold for parts of partitions.

    Args:
        table: the table.
        where: the parts of the condition, as trees of columns, values and operators.
    """
    tasks = [task for task in table.scan.tasks() if isinstance(task, ReadTask)]
    parts = [conditions([each], table.scan.schema) for each in where]
    if not tasks or any(part is None for part in parts):
        return None
    schema, fields = tasks[0].schema, tasks[0].config.partition_fields
    condition = conditions(where, schema)
    values = {task.file_slice.partition: constants_of(task.partition_values, schema) for task in tasks}
    names = [] if condition is None else where_columns(condition, schema)
    if not set(names) <= set(fields) or not names:
        return None
    if any(each.get(name) is None or not each[name].is_valid for each in values.values() for name in names):
        return None
    known = pa.table(
        {
            name: pa.array([each[name].as_py() for each in values.values()], schema.field(name).type)
            for name in names
        }
    )
    holds = evaluated(known, [condition], ["holds"]).column(0).to_pylist()
    return [path for path, holds_there in zip(values, holds, strict=True) if holds_there]


def drop(table: StatementTable, where: Sequence[Mapping[str, Any]]) -> None:
    """Delete the rows that meet a condition that holds for whole partitions, or for all rows."""
    target, options = table.for_writes(), table.write_options({})
    with target._errors():
        if where_all(where):
            truncate(table)
            return
        partitions = dropped(table, where)
        if partitions:
            after_commit(drop_partitions(target._context, partitions, options, exact=True))


def drop_by_texts(table: StatementTable, partitions: Sequence[Sequence[str | None]]) -> bool:
    """Delete the rows of partitions in one write; return whether there was any of them.

    Args:
        table: the table.
        partitions: the texts of the values of each; `*` in them stands for any text, as in Hudi.
    """
    target = table.for_writes()
    with target._errors():
        paths = list(dict.fromkeys(path for texts in partitions for path in paths_like(target, texts)))
        options = table.write_options({})
        outcome = drop_partitions(target._context, paths, options, exact=True)
        after_commit(outcome)
    return bool(outcome.result.partitions_dropped)


def truncate(table: StatementTable) -> None:
    """Delete all rows of a table, which earlier times still have."""
    target = table.for_writes()
    operation = "insert_overwrite_table"
    options = options_of(operation, table.write_options({}))
    with target._errors():
        context, rows = target._rows_of(target.schema.empty_table())
        after_commit(write_source(context, InputRows(rows), VERBS[operation], options))


_DROP_DUPLICATES: Final = "hoodie.datasource.write.insert.drop.duplicates"
_NON_STRICT: Final = "non-strict"
_INSERTING: Final = ("insert", "upsert", "bulk_insert")
_OVERWRITING: Final = ("insert_overwrite", "insert_overwrite_table")
_DELETE: Final = "delete"
_NEW: Final = "new"
_CREATED: Final = "created"
_DYNAMIC: Final = "dynamic"
_STATIC: Final = "static"


def insert(table: StatementTable, how: Mapping[str, Any], rows: Any) -> None:
    """Write the rows of a query to a table in one commit.

    Args:
        table: the table.
        how: `mode`: `append`, `created` (of CREATE TABLE ... AS SELECT), `new` (of a MERGE that only
            inserts), `table` (overwrite all), `dynamic` (overwrite the partitions of the rows), `partitions`
            (overwrite those of `where`), or `exists` (of a table that was to be created); `options` of the
            write.
        rows: Spark's rows, with the columns of the table and perhaps meta columns.

    Raises:
        ConflictError: another writer was there first; nothing was written.
        InvalidError: the rows or the options do not fit; nothing was written.
    """
    if how["mode"] == "exists":
        raise InvalidError(
            "The location of CREATE TABLE ... AS SELECT has a table. Use another location, or CREATE TABLE"
            " and INSERT INTO.",
            table=table.path,
        )
    given = ClassicDataFrame(rows, table.spark)
    df = given.drop(*(name for name in META_COLUMNS if name in given.columns))
    target = table.for_writes()
    verb = _verb(table, target, how)
    given_options = table.write_options(how["options"])
    if how["mode"] == _NEW and target.config.record_key_fields:
        given_options |= {_DROP_DUPLICATES: "true"}
    options = options_of(verb.name, given_options)
    with snapshot_of_attempt(table.path) as attempt, target._errors():
        is_own = java(table.spark, "Plans").reads(_plan(df), table.path)
        written = SparkRows.of(df)
        source = StatementRows(written, attempt) if is_own else InputRows(written)
        after_commit(write_source(target._context, source, verb, options))
    refresh(table.spark, table.path)


def _plan(df: DataFrame) -> Any:
    return df._jdf.queryExecution().analyzed()


def _verb(table: StatementTable, target: Table, how: Mapping[str, Any]) -> Verb:
    """Return the rules of the operation of an insert."""

    def said(*keys: str) -> str:
        return (statement_option(table.spark, table.properties, how["options"], keys) or "").lower()

    operation = said(OPERATION)
    if how["mode"] == _NEW:
        return verb_of("insert")
    chosen = operation or said(INSERT_OPERATION)
    if how["mode"] == _CREATED:
        default = "bulk_insert"
    else:
        default = "insert" if chosen else _mode_operation(said, table.path)
        if how["mode"] != "append":
            return _overwriting(table, target, how, operation)
    if operation == _DELETE:
        return verb_of(_DELETE)
    operation = chosen or default
    if operation not in (*_INSERTING, *_OVERWRITING):
        raise InvalidError(
            f"The operation is {operation}, which INSERT INTO does not do. Use one of"
            f" {', '.join((*_INSERTING, *_OVERWRITING))} ({OPERATION}, {INSERT_OPERATION}), or {_DELETE}"
            f" ({OPERATION})."
        )
    return verb_of(operation)


def _mode_operation(said: Callable[..., str], path: str) -> str:
    """Return the operation that `hoodie.sql.insert.mode` chooses, `insert` where a session does not set it.

    Apache Hudi 1.2.0 reads `hoodie.sql.bulk.insert.enable` only together with the mode. Its modes upsert and
    strict insert rows, unless `hoodie.combine.before.insert` is true.
    """
    mode = said(INSERT_MODE)
    if not mode:
        return "insert"
    modes = OPTION_OF_KEY[INSERT_MODE].choices
    if mode not in modes:
        raise InvalidError(f"{INSERT_MODE} is {mode}, which there is not. Use one of {', '.join(modes)}.")
    if said(BULK_INSERT) == "true":
        if mode != _NON_STRICT:
            raise InvalidError(
                f"{BULK_INSERT}=true needs {INSERT_MODE}={_NON_STRICT}; it is {mode}. SET it so, or RESET"
                f" {BULK_INSERT}.",
                table=path,
            )
        return "bulk_insert"
    is_combined = said("hoodie.combine.before.insert") == "true" and said(_DROP_DUPLICATES) != "true"
    return "upsert" if mode != _NON_STRICT and is_combined else "insert"


def _overwriting(table: StatementTable, target: Table, how: Mapping[str, Any], operation: str) -> Verb:
    """Return the rules of an overwrite: an operation that overwrites wins over the modes."""
    if operation in _OVERWRITING:
        return verb_of(operation)
    if operation == _DELETE:
        raise InvalidError(
            f"The operation is {_DELETE}, which INSERT OVERWRITE does not do. Use INSERT INTO, or RESET"
            f" {OPERATION}."
        )
    mode = statement_option(table.spark, table.properties, how["options"], (OVERWRITE_MODE,))
    mode = (mode or "").lower()
    if mode not in ("", _STATIC, _DYNAMIC):
        raise InvalidError(f"{OVERWRITE_MODE} is {mode}, which there is not. Use {_STATIC} or {_DYNAMIC}.")
    if not target.config.partition_fields:
        return verb_of("insert_overwrite_table")
    if mode == _STATIC and how["mode"] == _DYNAMIC:
        raise InvalidError(
            f"{OVERWRITE_MODE} is static, but spark.sql.sources.partitionOverwriteMode is dynamic, with which"
            " Spark does not pass on the partitions that a statement names. Set both to the same."
        )
    if _DYNAMIC in (mode, how["mode"]):
        return verb_of("insert_overwrite")
    if how["mode"] == "partitions":
        named = paths_of_values(target._calls.facts(), static_values(how["where"], target.schema))
        return replace(verb_of("insert_overwrite"), named=named)
    return verb_of("insert_overwrite_table")
