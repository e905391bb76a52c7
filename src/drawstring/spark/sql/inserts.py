"""`INSERT INTO`, `INSERT OVERWRITE`, and the rows of `CREATE TABLE ... AS SELECT`.

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

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import DataFrame
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from drawstring.base.errors import InvalidError
from drawstring.config.options.registry import OPTION_OF_KEY
from drawstring.config.options.write_options import options_of
from drawstring.schema.meta import META_COLUMNS
from drawstring.services.maintenance_tasks import after_commit
from drawstring.spark.engine.spark_engine import SparkRows
from drawstring.spark.sql.driver import java, refresh
from drawstring.spark.sql.options import (
    BULK_INSERT,
    INSERT_MODE,
    INSERT_OPERATION,
    OPERATION,
    OVERWRITE_MODE,
    statement_option,
)
from drawstring.spark.sql.partitions import paths_of_values, static_values
from drawstring.spark.sql.statement_rows import StatementRows, attempting
from drawstring.table import Table
from drawstring.write.run import write_source
from drawstring.write.verbs import Verb, verb_of
from drawstring.write.write_source import InputRows

if TYPE_CHECKING:
    from drawstring.spark.sql.table import TablePeer

_DROP_DUPLICATES: Final = "hoodie.datasource.write.insert.drop.duplicates"
_NON_STRICT: Final = "non-strict"
_INSERTING: Final = ("insert", "upsert", "bulk_insert")
_OVERWRITING: Final = ("insert_overwrite", "insert_overwrite_table")
_DELETE: Final = "delete"
_NEW: Final = "new"
_CREATED: Final = "created"
_DYNAMIC: Final = "dynamic"
_STATIC: Final = "static"


def insert(table: TablePeer, how: Mapping[str, Any], rows: Any) -> None:
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
    with attempting(table.path) as attempt, target._errors():
        is_own = java(table.spark, "Plans").reads(_plan(df), table.path)
        written = SparkRows.of(df)
        source = StatementRows(written, attempt) if is_own else InputRows(written)
        after_commit(write_source(target._context, source, verb, options))
    refresh(table.spark, table.path)


def _plan(df: DataFrame) -> Any:
    return df._jdf.queryExecution().analyzed()


def _verb(table: TablePeer, target: Table, how: Mapping[str, Any]) -> Verb:
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


def _overwriting(table: TablePeer, target: Table, how: Mapping[str, Any], operation: str) -> Verb:
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
        named = paths_of_values(target._facts(), static_values(how["where"], target.schema))
        return replace(verb_of("insert_overwrite"), named=named)
    return verb_of("insert_overwrite_table")
