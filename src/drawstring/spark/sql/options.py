"""Options of a table of the catalog: properties of `CREATE TABLE`, and settings of the session.

| of `CREATE TABLE` | of drawstring |
|---|---|
| PARTITIONED BY | `hoodie.datasource.write.partitionpath.field` |
| primaryKey | `hoodie.datasource.write.recordkey.field` |
| orderingFields, preCombineField | `hoodie.table.ordering.fields` |
| type | `hoodie.datasource.write.table.type` |
| payloadClass | `hoodie.datasource.write.payload.class` |
| recordMergeMode | `hoodie.record.merge.mode` |
| recordMergeStrategyId | `hoodie.write.record.merge.strategy.id` |

Of an option of writes that is given several times the last one counts: property of the table, `SET` in the
session, option of the write. As in Hudi, those that the table stores are its own once it exists. Of an option
of reads the property of the table wins over `SET` in the session.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pyspark.sql import SparkSession

from drawstring.base.errors import InvalidError
from drawstring.config.keys.read import DATA_SKIPPING, METADATA_ENABLE, QUERY_AS_RO, QUERY_TYPE, USE_POSITIONS
from drawstring.config.keys.write import COMMIT_METADATA_PREFIX
from drawstring.config.options.option import Scope, text_of
from drawstring.config.options.read_options import ReadOptions, options_in_session
from drawstring.config.options.registry import OPTION_OF_KEY
from drawstring.config.table.key_settings import TEXTS_OF_TIMESTAMPS
from drawstring.spark.jvm import java

RECORD_KEY: Final = "hoodie.datasource.write.recordkey.field"
PARTITION_PATH: Final = "hoodie.datasource.write.partitionpath.field"
ORDERING: Final = "hoodie.table.ordering.fields"
TABLE_TYPE: Final = "hoodie.datasource.write.table.type"
INSERT_OPERATION: Final = "hoodie.spark.sql.insert.into.operation"
INSERT_MODE: Final = "hoodie.sql.insert.mode"
BULK_INSERT: Final = "hoodie.sql.bulk.insert.enable"
OVERWRITE_MODE: Final = "hoodie.datasource.overwrite.mode"
OPERATION: Final = "hoodie.datasource.write.operation"
_OPTION_PREFIX: Final = "option."
_NAMES: Final = {
    "primarykey": RECORD_KEY,
    "orderingfields": ORDERING,
    "precombinefield": ORDERING,
    "type": TABLE_TYPE,
    "payloadclass": "hoodie.datasource.write.payload.class",
    "recordmergemode": "hoodie.record.merge.mode",
    "recordmergestrategyid": "hoodie.write.record.merge.strategy.id",
}
"""Hudi's own names of properties in `CREATE TABLE`, in lower case, as options."""

_SPELLINGS: Final = (
    "primaryKey", "orderingFields", "preCombineField", "payloadClass", "recordMergeMode",
    "recordMergeStrategyId",
)  # fmt: skip
_WRITTEN: Final = {name.lower(): name for name in _SPELLINGS}
_SLIP_RATIO: Final = 0.85
"""Similarity from which the name of a property counts as a misspelling: a letter or two differ."""

_TYPES: Final = {"cow": "COPY_ON_WRITE", "mor": "MERGE_ON_READ"}
INDEX_TYPE: Final = "hoodie.index.type"
_OF_STATEMENTS: Final = (INSERT_OPERATION, INSERT_MODE, BULK_INSERT, OVERWRITE_MODE, OPERATION)
_READS_OF_TABLES: Final = (METADATA_ENABLE, DATA_SKIPPING, USE_POSITIONS, QUERY_AS_RO)
"""Options of reads that a table's properties may set."""


def table_options(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the options among the properties of `CREATE TABLE`, under Hudi's keys.

    Args:
        properties: as Spark passes them; those of OPTIONS have a prefix.

    Raises:
        InvalidError: a type of table that there is not.
    """
    options: dict[str, str] = {}
    for name, value in properties.items():
        key = name.removeprefix(_OPTION_PREFIX).lower()
        if key in _NAMES:
            options[_NAMES[key]] = _type_of(value) if key == "type" else value
        elif key.startswith(("hoodie.", "drawstring.")):
            options[key] = value
    return options


def check_names(properties: Mapping[str, str]) -> None:
    """Check that no property of `CREATE TABLE` is a misspelling of those that say what a record is.

    Other properties are the user's own. One of these would make a table without keys or without an order.

    Raises:
        InvalidError: one is.
    """
    for name in properties:
        key = name.removeprefix(_OPTION_PREFIX).lower()
        if key in _NAMES or "." in key:
            continue
        if near := difflib.get_close_matches(key, _WRITTEN, n=1, cutoff=_SLIP_RATIO):
            raise InvalidError(f"There is no property {name!r}. Did you mean {_WRITTEN[near[0]]!r}?")


def _type_of(text: str) -> str:
    name = _TYPES.get(text.lower(), text.upper())
    if name not in _TYPES.values():
        raise InvalidError(f"There is no table type {text!r}. Use type 'cow' or 'mor'.")
    return name


def session_options(spark: SparkSession) -> dict[str, str]:
    """Return the options that were set in a session with `SET`."""
    found: dict[str, str] = {}
    for prefix in ("hoodie.", "drawstring."):
        found |= json.loads(java(spark, "Calls").settings(spark._jsparkSession, prefix))
    return found


def check_reads(options: Mapping[str, str]) -> None:
    """Check that properties of a table say nothing of single queries.

    Raises:
        InvalidError: a property would choose what queries read, which properties of tables do not.
    """
    for key, value in options.items():
        option = OPTION_OF_KEY.get(key)
        if option is None or option.scope is not Scope.READ or option.key in _READS_OF_TABLES:
            continue
        if option.parse(key, value) not in (option.default, None, ""):
            raise InvalidError(
                f"{key}={text_of(value)} is an option of queries, which properties of tables do not set."
                f" SET it in the session, or create the table with {QUERY_AS_RO}=true to read its base files"
                " only."
            )


def read_options(spark: SparkSession, properties: Mapping[str, str], as_of: str | None = None) -> ReadOptions:
    """Return the options of a query of a table of the catalog.

    Args:
        spark: the session.
        properties: properties of the table in the catalog.
        as_of: a time to travel to, None for the latest records.

    Raises:
        InvalidError: an option is not valid, or a changed row has other columns than the table (CDC).
    """
    given = {key: text for key, text in table_options(properties).items() if key in _READS_OF_TABLES}
    if as_of is not None:
        given["as.of.instant"] = as_of
    options = options_in_session(session_options(spark), given)
    if options.query_type == "incremental" and options.is_cdc:
        raise InvalidError(
            "hoodie.datasource.query.incremental.format=cdc was SET, but changes have other columns than the"
            " table. RESET it, and query hudi_table_changes(table, 'cdc', begin)."
        )
    return options


def check_reads_latest(spark: SparkSession, properties: Mapping[str, str], *, has_logs: bool) -> None:
    """Check that a statement that changes rows finds the latest ones.

    Args:
        spark: the session.
        properties: properties of the table in the catalog.
        has_logs: whether the table may have log files, so that base files alone can be out of date.

    Raises:
        InvalidError: the session or the table says that queries read others.
    """
    options = read_options(spark, properties)
    if options.query_type != "snapshot" and (has_logs or options.query_type != "read_optimized"):
        raise InvalidError(
            f"UPDATE, DELETE and MERGE change the latest rows, but queries are {options.query_type} here."
            f" RESET {QUERY_TYPE} and {QUERY_AS_RO}, or use a table of the catalog without these properties."
        )


def write_options(
    spark: SparkSession, properties: Mapping[str, str], given: Mapping[str, str]
) -> dict[str, str]:
    """Return the options of a write to a table that exists.

    Whether keys show timestamps as texts, and by which index a write finds records, is up to each write, as
    in Hudi; the write checks both against the table.

    Args:
        spark: the session.
        properties: properties of the table in the catalog.
        given: options of the write itself.
    """
    in_session = session_options(spark)
    if prefix := in_session.get(COMMIT_METADATA_PREFIX):
        in_session |= json.loads(java(spark, "Calls").settings(spark._jsparkSession, prefix))
    of_write = {**in_session, **table_options(given)}
    options = {**table_options(properties), **of_write}
    return {
        key: value
        for key, value in options.items()
        if key == TEXTS_OF_TIMESTAMPS
        or (key == INDEX_TYPE and key in of_write)
        or not (is_stored(key) or key in _OF_STATEMENTS)
    }


def is_stored(key: str) -> bool:
    """Return whether an option describes the table, which has its own value of it."""
    option = OPTION_OF_KEY.get(key)
    return key in (RECORD_KEY, PARTITION_PATH, ORDERING, TABLE_TYPE) or (
        option is not None and bool(option.stored_as)
    )


def statement_option(
    spark: SparkSession, properties: Mapping[str, str], given: Mapping[str, str], keys: Sequence[str]
) -> str | None:
    """Return the value of an option that says what a statement does, None if it is not set.

    Args:
        spark: the session.
        properties: properties of the table in the catalog.
        given: options of the write itself.
        keys: the option and its alternatives, the first of which wins.
    """
    options: dict[str, Any] = {
        **table_options(properties),
        **session_options(spark),
        **table_options(given),
    }
    return next((str(options[key]) for key in keys if options.get(key)), None)
