"""`UPDATE`, `DELETE` and `MERGE INTO`: one commit each, of rows that Spark makes by its own rules.

    slices ── workers ──> rows with their place ── Spark: condition, join, clauses ──> changes ──> write

Spark reads the table with a hidden column that identifies each row (`RECORD`), and hands back the rows to
write with an operation each. A DELETE of whole partitions replaces their file groups and reads nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from drawstring.config.options.write_options import options_of
from drawstring.config.table.config import TableConfig
from drawstring.engine.protocol import Rows
from drawstring.expressions.evaluation import evaluated
from drawstring.filegroups.read.tasks import ReadTask
from drawstring.filegroups.write.changes import ACTION, RowAction
from drawstring.formats.conditions import where_columns
from drawstring.formats.partition_match import typed
from drawstring.query.replanning import Task
from drawstring.query.scan import Scan
from drawstring.schema.meta import META_COLUMNS
from drawstring.services.maintenance_tasks import after_commit
from drawstring.spark.engine.spark_engine import SparkRows
from drawstring.spark.engine.types import spark_schema
from drawstring.spark.reading.dataframe import plan_name
from drawstring.spark.reading.pushed_filters import conditions
from drawstring.spark.reading.relation import Slices, relation
from drawstring.spark.sql.driver import refresh
from drawstring.spark.sql.partitions import paths_like
from drawstring.spark.sql.statement_rows import Attempt, attempting
from drawstring.txn.transaction import LockedTable
from drawstring.write.merge.changed_rows import RECORD, BoundChanges, read_records, record_type
from drawstring.write.merge.matched_rows import facts_for_change
from drawstring.write.run import write_source
from drawstring.write.table_writes import drop_partitions
from drawstring.write.verbs import MERGE, UPDATE, VERBS, Verb
from drawstring.write.write_source import InputRows

if TYPE_CHECKING:
    from drawstring.spark.sql.table import TablePeer

_TRUE: Final = "true"
_OPERATION: Final = "__row_operation"
_ACTIONS: Final = {1: RowAction.DELETE, 2: RowAction.UPDATE, 3: RowAction.INSERT}
"""Actions by Spark's numbers of operations on rows."""

_VERBS: Final[Mapping[str, Verb]] = {"DELETE": VERBS["delete"], "UPDATE": UPDATE, "MERGE": MERGE}


def record_json(schema: pa.Schema, config: TableConfig) -> str:
    """Return Spark's type of the column that identifies each row, as JSON."""
    return spark_schema(pa.schema([(RECORD, record_type(schema, config))]))[RECORD].dataType.json()


def records(table: TablePeer, scan: Scan) -> DataFrame:
    """Return the rows of a scan with the column that identifies each."""
    kind = record_type(scan.schema, table.open().config)
    columns = spark_schema(scan.schema.append(pa.field(RECORD, kind, nullable=False)))
    name = plan_name(table.path)

    def shown(tasks: Sequence[Task]) -> DataFrame:
        return relation(table.spark, Slices(tuple(tasks), columns, name, read=read_records, added=(RECORD,)))

    return scan.use(shown)


def change(table: TablePeer, how: Mapping[str, Any], rows: Any) -> None:
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
    with attempting(table.path) as attempt, target._errors():
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


def can_drop(table: TablePeer, where: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether the rows that meet a condition are whole partitions, or the table.

    Partitions with a pending compaction are not dropped: their rows are deleted as others.
    """
    if where_all(where):
        return True
    partitions = dropped(table, where)
    if partitions is None:
        return False
    view = table.open()._facts().view
    pending = (*view.pending_compactions(), *view.pending_log_compactions())
    return not {partition for partition, _ in pending} & set(partitions)


def where_all(where: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether a condition holds for every row."""
    return all(each.get("value") == _TRUE for each in where)


def dropped(table: TablePeer, where: Sequence[Mapping[str, Any]]) -> list[str] | None:
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
    values = {task.file_slice.partition: typed(task.partition_values, schema) for task in tasks}
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


def drop(table: TablePeer, where: Sequence[Mapping[str, Any]]) -> None:
    """Delete the rows that meet a condition that holds for whole partitions, or for all rows."""
    target, options = table.for_writes(), table.write_options({})
    with target._errors():
        if where_all(where):
            truncate(table)
            return
        partitions = dropped(table, where)
        if partitions:
            after_commit(drop_partitions(target._context, partitions, options, exact=True))


def drop_by_texts(table: TablePeer, partitions: Sequence[Sequence[str | None]]) -> bool:
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


def truncate(table: TablePeer) -> None:
    """Delete all rows of a table, which earlier times still have."""
    target = table.for_writes()
    operation = "insert_overwrite_table"
    options = options_of(operation, table.write_options({}))
    with target._errors():
        context, rows = target._rows_of(target.schema.empty_table())
        after_commit(write_source(context, InputRows(rows), VERBS[operation], options))
