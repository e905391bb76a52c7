"""Install the catalog of Hudi tables in a session, and answer what its Java class asks.

CREATE TABLE ── define ──> columns, properties ── Spark's catalog ── create ──> table at its location
SELECT, INSERT, ... ── table ──> TablePeer
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

from py4j.java_collections import ListConverter
from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from drawstring.base.errors import DrawstringError, InvalidError, NoTableError
from drawstring.config.keys.read import QUERY_AS_RO
from drawstring.config.options.write_options import WriteOptions, check_place
from drawstring.config.table.key_settings import SLASHED_DATES
from drawstring.entry import open as open_table
from drawstring.model.result import Event
from drawstring.schema.fields import META_COLUMNS
from drawstring.schema.logical_types import declared
from drawstring.spark.engine import ExecutorEngine
from drawstring.spark.jvm import Peer, java, load, refresh, session_of
from drawstring.spark.reading import planner
from drawstring.spark.sql.blobs import register_read_blob
from drawstring.spark.sql.ddl import partitions_last
from drawstring.spark.sql.dml import current_attempt
from drawstring.spark.sql.options import (
    ORDERING,
    PARTITION_PATH,
    RECORD_KEY,
    check_names,
    check_reads,
    session_options,
    table_options,
)
from drawstring.spark.sql.procedures.registry import PROCEDURES, call, facts_of
from drawstring.spark.sql.table_functions import FUNCTIONS, plan_of_function
from drawstring.spark.sql.tables import TablePeer
from drawstring.spark.storage_options import path_of, storage_options
from drawstring.spark.workers.rows import commented_schema, spark_schema, without_lengths
from drawstring.spark.writing.save import Target
from drawstring.storage import open_storage
from drawstring.table import Table
from drawstring.txn.events import add_listener


class CatalogPeer(Peer):
    """Answers of the catalog; the same for all sessions."""

    def __init__(self) -> None:
        self.answers = {
            "define": lambda given: _define(json.loads(given[0]), session_of(given[1])),
            "create": lambda given: _create(json.loads(given[0]), session_of(given[1])),
            "purge": lambda given: _purge(given[0], session_of(given[1])),
            "table": lambda given: TablePeer(session_of(given[1]), json.loads(given[0])),
            "function": lambda given: plan_of_function(json.loads(given[0]), session_of(given[1])),
            "procedure": facts_of,
            "procedures": lambda _: json.dumps(sorted(PROCEDURES)),
            "call": lambda given: _called(json.loads(given[0]), session_of(given[1])),
        }


def _define(given: Mapping[str, Any], spark: SparkSession) -> str:
    """Return the columns, partition columns and properties that the catalog gets for a new table.

    Of a table that is there they are its own.

    Raises:
        InvalidError: the statement does not describe a table.
    """
    properties: dict[str, str] = given["properties"]
    columns = StructType.fromJson(json.loads(without_lengths(given["schema"])))
    columns = StructType([each for each in columns if each.name not in META_COLUMNS])
    partitioned_by = _identities(given["transforms"])
    check_names(properties)
    options = table_options(properties)
    check_reads(options)
    location = properties.get("location")
    existing = _existing(location, spark) if location else None
    if QUERY_AS_RO in options:
        _check_has_logs(existing)
    if existing is not None:
        columns, partitioned_by = _of_existing(existing, columns, partitioned_by)
    elif not len(columns):
        raise InvalidError(
            "CREATE TABLE names no columns, and there is no table at its location. Name the columns, or use"
            f" the location of a table{f' ({location} has none)' if location else ''}."
        )
    else:
        columns, partitioned_by = _of_new(columns, partitioned_by)
        options = _spelled(options, columns)
        WriteOptions.parse({**options, PARTITION_PATH: ",".join(partitioned_by)})
    return json.dumps(
        {
            "schema": columns.json(),
            "partitioned_by": partitioned_by,
            "properties": {},
            "options": options,
            "exists": existing is not None,
        }
    )


def _check_has_logs(existing: Table | None) -> None:
    """Check that there is a table of which another name in the catalog shows base files, or all rows.

    Raises:
        InvalidError: there is none, or it has base files only.
    """
    if existing is None:
        raise InvalidError(
            f"{QUERY_AS_RO} is for another name of a table that is there, but there is none at the location."
            " Create the table without the property first, then this one at its LOCATION."
        )
    if not existing.config.is_merge_on_read:
        raise InvalidError(
            f"{QUERY_AS_RO} is for MERGE_ON_READ tables, and this one is COPY_ON_WRITE. Leave the property"
            " out: all queries read base files.",
            table=existing.uri,
        )


def _identities(transforms: Sequence[tuple[str, str | None]]) -> list[str]:
    """Return the columns of PARTITIONED BY."""
    for name, column in transforms:
        if name != "identity" or column is None:
            raise InvalidError(
                f"PARTITIONED BY has a transform ({name}), but Hudi's tables are partitioned by columns. Name"
                " columns only."
            )
    return [column for _, column in transforms if column is not None]


def _of_new(columns: StructType, by: Sequence[str]) -> tuple[StructType, list[str]]:
    """Return the columns of a new table in the order of SQL, and its partition columns as they spell them.

    Raises:
        InvalidError: a partition column is none of the columns.
    """
    ordered, named = partitions_last(columns, by)
    if len(named) < len(by):
        names = {each.lower() for each in named}
        missing = next(each for each in by if each.lower() not in names)
        raise InvalidError(f"Column {missing} of PARTITIONED BY is no column of the table. Add it.")
    return ordered, named


def _spelled(options: Mapping[str, str], columns: StructType) -> dict[str, str]:
    """Return options whose key and ordering columns are spelled as the columns are."""
    names = {each.lower(): each for each in columns.names}

    def spelled(fields: str) -> str:
        return ",".join(names.get(each.strip().lower(), each.strip()) for each in fields.split(","))

    return {**options, **{key: spelled(options[key]) for key in (RECORD_KEY, ORDERING) if options.get(key)}}


def _existing(location: str, spark: SparkSession) -> Table | None:
    path = path_of(location)
    try:
        return open_table(path, storage_options=storage_options(spark, path, {}))
    except NoTableError:
        return None


def _of_existing(
    table: Table, columns: StructType, partitioned_by: list[str]
) -> tuple[StructType, list[str]]:
    """Return the columns and partition columns of a table; those of the statement must not differ."""
    own = spark_schema(table.schema)
    fields = list(table.config.partition_fields)
    if len(columns):
        names = {each.name.lower(): each.dataType for each in own}
        asked = spark_schema(declared(commented_schema(columns)))
        wrong = [each.name for each in asked if names.get(each.name.lower()) != each.dataType]
        if wrong:
            raise InvalidError(
                f"Column {wrong[0]} of CREATE TABLE is not in the table at its location, or has another type"
                " there. Leave the columns out: they are the table's.",
                table=table.uri,
            )
    if partitioned_by and partitioned_by != fields:
        raise InvalidError(
            f"The table at this location is partitioned by {', '.join(fields) or 'nothing'}, not by"
            f" {', '.join(partitioned_by)}. Leave PARTITIONED BY out.",
            table=table.uri,
        )
    return own, partitions_last(own, fields)[1]


def _create(given: Mapping[str, Any], spark: SparkSession) -> None:
    """Create the table at its location, unless it is there."""
    if given["exists"]:
        return
    path = path_of(given["path"])
    database, name = given["name"]
    options = {
        "hoodie.table.name": name,
        "hoodie.database.name": database,
        # In Hudi, too, the word that dates have no slashes means plain folders.
        "hoodie.datasource.write.hive_style_partitioning": str(SLASHED_DATES not in given["options"]).lower(),
        **{key: value for key, value in session_options(spark).items() if key.startswith("hoodie.table.")},
        **given["options"],
    }
    if given["partitioned_by"]:
        options.setdefault(PARTITION_PATH, ",".join(given["partitioned_by"]))
    try:
        parsed = WriteOptions.parse(options)
        stored = storage_options(spark, path, options)
        check_place(options, path)
        target = Target(path, open_storage(path, stored), stored, ExecutorEngine(spark))
        target.create(commented_schema(StructType.fromJson(json.loads(given["schema"]))), parsed, options)
    except DrawstringError as error:
        raise error.at(table=path) from error.__cause__


def _called(given: Mapping[str, Any], spark: SparkSession) -> Any:
    """Call a procedure, after which cached queries show what it did."""
    try:
        return call(given, spark)
    finally:
        refresh(spark, None)


def _purge(path: str, spark: SparkSession) -> None:
    """Delete the files of a table that was dropped."""
    root = path_of(path)
    open_storage(root, storage_options(spark, root, {})).delete_tree("")


CATALOG: Final = "spark.sql.catalog.spark_catalog"
_OURS: Final = "drawstring.sql.HudiCatalog"
_REPLACED: Final = ("", "builtin", _OURS, "org.apache.spark.sql.hudi.catalog.HoodieCatalog")
"""Values of the setting that are replaced: none, Spark's own, this one, and that of Hudi's bundle."""

_LOG: Final = logging.getLogger("drawstring.spark")


def install(spark: SparkSession) -> bool:
    """Let the catalog of a session hold Hudi tables.

    Args:
        spark: a classic session.

    Returns:
        Whether SQL works; False, with a warning that says why, if the session has another catalog or its
        driver loads no classes.
    """
    configured = spark.conf.get(CATALOG, "") or ""
    if configured not in _REPLACED:
        _LOG.warning(
            "SQL on Hudi tables by name is off in this session: %s is %s. Unset it to use CREATE TABLE ..."
            " USING hudi.",
            CATALOG,
            configured,
        )
        return False
    if not (planner.install(spark) and load(spark, CatalogPeer())):
        _LOG.warning(
            "SQL on Hudi tables by name is off: the driver of this Spark does not load compiled classes. Use"
            " DataFrames, or PySpark 4.0 to 4.3."
        )
        return False
    planner.add_strategy(spark, java(spark, "Statements")())
    gateway: Any = spark.sparkContext._gateway
    names = ListConverter().convert(list(FUNCTIONS), gateway._gateway_client)
    java(spark, "TableFunctions").register(spark._jsparkSession, names)
    register_read_blob(spark)
    spark.conf.set(CATALOG, _OURS)
    add_listener(_refresh_cached)
    return True


def _refresh_cached(event: Event) -> None:
    """Let cached queries of a table show what a commit of this process wrote.

    A statement of SQL, whose reads show one snapshot while it runs, does so at its end.
    """
    if current_attempt() is not None:
        return
    session = SparkSession.getActiveSession() or SparkSession._instantiatedSession
    if session is not None and SparkContext._active_spark_context is not None:
        refresh(session, path_of(event.table).removeprefix("file://"))
