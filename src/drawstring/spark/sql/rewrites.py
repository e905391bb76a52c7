"""Statements on Hudi tables that mean something else to Hudi than to Spark.

| statement | what happens |
|---|---|
| INSERT of a query whose columns have the names of the table's, in another order | they go in by name |
| INSERT under `spark.sql.storeAssignmentPolicy=legacy` | values are cast to the types of the columns |
| UPDATE and MERGE with values of other types | values are cast, fields of structs by position |
| CREATE TABLE t LIKE s | a CREATE TABLE with the columns, partition columns and properties of s |
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeAlias, cast

from py4j.java_collections import ListConverter, MapConverter
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame
from pyspark.sql.types import StructField, StructType

from drawstring.schema.fields import META_COLUMNS
from drawstring.schema.logical_types import HUDI_TYPE
from drawstring.spark.errors import analysed
from drawstring.spark.jvm import java
from drawstring.spark.sql.column_types import literal, with_stand_ins
from drawstring.spark.sql.options import table_options
from drawstring.spark.sql.tables import location_of, open_named_table

Run: TypeAlias = Callable[[str], DataFrame]
Parameters: TypeAlias = Mapping[str, Any] | Sequence[Any]

BEFORE: Final = r"\s*(?:(?:--[^\n]*\n|/\*(?:(?!\*/)[\s\S])*\*/)\s*)*"
"""Comments before a statement."""

_POLICY: Final = "spark.sql.storeAssignmentPolicy"
_INSERT: Final = re.compile(
    rf"{BEFORE}(?:(?:WITH|FROM)\b[\s\S]*\b)?INSERT\s+(?:INTO|OVERWRITE)\b", re.IGNORECASE
)
_CHANGE: Final = re.compile(
    rf"{BEFORE}(?:UPDATE|MERGE\s+(?:WITH\s+SCHEMA\s+EVOLUTION\s+)?INTO)\b", re.IGNORECASE
)
_WRONG_TYPE: Final = re.compile(
    "INVALID_ROW_LEVEL_OPERATION_ASSIGNMENTS|INCOMPATIBLE_DATA_FOR_TABLE"
    "|store assignment policy is disallowed"
)
_NAME: Final = r"((?:`[^`]+`|\w+)(?:\.(?:`[^`]+`|\w+))*)"
_LIKE: Final = re.compile(
    rf"{BEFORE}CREATE\s+TABLE\s+(IF\s+NOT\s+EXISTS\s+)?{_NAME}\s+LIKE\s+{_NAME}\s*(?:USING\s+(\S+)\s*)?([\s\S]*?);?\s*",
    re.IGNORECASE,
)
_HUDI: Final = ("hudi", "org.apache.hudi")


def run_as_hudi(spark: SparkSession, text: str, run: Run, parameters: Parameters) -> DataFrame:
    """Run a statement as Hudi understands it.

    Args:
        spark: a registered session.
        text: the statement.
        run: runs a statement by Spark, with the parameters.
        parameters: values of the statement's parameters: by name, or a list.
    """
    if _INSERT.match(text):
        is_legacy = (spark.conf.get(_POLICY) or "").lower() == "legacy"
        with _ansi(spark, is_legacy):
            done = _rewritten(spark, "inserted", text, parameters, is_legacy)
        return run(text) if done is None else done
    if like := _LIKE.fullmatch(text):
        created = _created_like(spark, like)
        return run(text if created is None else created)
    if not _CHANGE.match(text):
        return run(text)
    try:
        return run(text)
    except AnalysisException as error:
        if not _WRONG_TYPE.search(str(error)):
            raise
        with _ansi(spark):
            done = _rewritten(spark, "cast", text, parameters)
        if done is None:
            raise
        return done


def _rewritten(
    spark: SparkSession, method: str, text: str, parameters: Parameters, *options: bool
) -> DataFrame | None:
    """Run a statement that a method of the class Rewrites changes; None, and nothing is run, for others."""
    values = _java_parameters(spark, parameters)
    done = getattr(java(spark, "Rewrites"), method)(spark._jsparkSession, text, values, *options)
    return None if done is None else ClassicDataFrame(done, spark)


def partition_spec(spark: SparkSession, text: str, parameters: Parameters) -> dict[str, str | None]:
    """Return the values by column, as texts, of PARTITION in a SHOW PARTITIONS; null is None.

    Args:
        spark: a registered session.
        text: the statement.
        parameters: values of the statement's parameters: by name, or a list.

    Raises:
        ParseException: the statement is not Spark's.
    """
    values = _java_parameters(spark, parameters)
    found = java(spark, "Rewrites").partitionSpec(spark._jsparkSession, text, values)
    spec: dict[str, str | None] = json.loads(found)
    return spec


def _java_parameters(spark: SparkSession, parameters: Parameters) -> Any:
    client: Any = cast(Any, spark.sparkContext._gateway)._gateway_client
    if isinstance(parameters, Mapping):
        columns = {name: _java_column(value) for name, value in parameters.items()}
        return MapConverter().convert(columns, client)
    return ListConverter().convert([_java_column(value) for value in parameters], client)


def _java_column(value: Any) -> Any:
    return cast(Any, F.lit(value))._jc


@contextmanager
def _ansi(spark: SparkSession, is_wanted: bool = True) -> Iterator[None]:
    """Let Spark resolve a statement on its tables, which it refuses to do under the legacy policy."""
    before = spark.conf.getAll.get(_POLICY)
    if not is_wanted:
        yield
        return
    spark.conf.set(_POLICY, "ANSI")
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(_POLICY)
        else:
            spark.conf.set(_POLICY, before)


def by_name(df: DataFrame, table: str) -> DataFrame:
    """Return rows to insert in the order of the table's columns, if their columns have the same names."""
    ordered = java(df.sparkSession, "Rewrites").ordered(df.sparkSession._jsparkSession, df._jdf, table)
    return df if ordered is None else ClassicDataFrame(ordered, df.sparkSession)


@analysed()
def _created_like(spark: SparkSession, like: re.Match[str]) -> str | None:
    """Return the CREATE TABLE of a table like another one; None if neither is one of Hudi."""
    is_optional, name, source, provider, rest = like.groups()
    path, provider = location_of(spark, source), (provider or "").strip("`'\"").lower()
    is_hudi = provider in _HUDI or (path is not None and not provider)
    if path is None and not is_hudi:
        return None
    columns = StructType([each for each in spark.table(source).schema if each.name not in META_COLUMNS])
    own, partitioned = _of_source(spark, source) if path else ({}, _partition_columns(spark, source))
    own = own if is_hudi else {}
    taken = _keys(*re.findall(r"['\"`]?([\w.]+)['\"`]?\s*=", rest))
    kept = {key: literal(value) for key, value in own.items() if not _keys(key) & taken}
    options = ", ".join(f"'{key}' = {value}" for key, value in sorted(kept.items()))
    by = ", ".join(f"`{each}`" for each in partitioned)
    using = "hudi" if is_hudi else provider
    defined = ", ".join(map(_defined, columns)) if is_hudi else columns.toDDL()
    created = " ".join(
        (
            f"CREATE TABLE {is_optional or ''}{name} ({defined}) USING {using}",
            f"OPTIONS ({options})" if options else "",
            f"PARTITIONED BY ({by})" if by else "",
            rest,
        )
    )
    return with_stand_ins(created) if is_hudi else created


def _defined(column: StructField) -> str:
    """Return the definition of a column, whose type of Hudi stands for itself (`column_types`)."""
    own = StructField(column.name, column.dataType, column.nullable)
    kind = (column.metadata or {}).get(HUDI_TYPE)
    comment = (column.metadata or {}).get("comment")
    name = column.name.replace("`", "``")
    defined = (
        f"`{name}` {kind}{'' if column.nullable else ' NOT NULL'}" if kind else StructType([own]).toDDL()
    )
    return defined + (f" COMMENT {literal(comment)}" if comment else "")


def _of_source(spark: SparkSession, source: str) -> tuple[dict[str, str], list[str]]:
    """Return the properties of a table of Hudi, and its partition columns."""
    found = json.loads(java(spark, "HudiCatalog").properties(spark._jsparkSession, source))
    given = {key.removeprefix("option."): value for key, value in found.items()}
    config = open_named_table(spark, source).table.config
    stored = {
        "primaryKey": ",".join(config.record_key_fields),
        "orderingFields": ",".join(config.ordering_fields),
        "type": "mor" if config.is_merge_on_read else "cow",
    }
    kept = {key: value for key, value in given.items() if table_options({key: value})}
    known = _keys(*kept)
    kept |= {key: value for key, value in stored.items() if value and not _keys(key) & known}
    return kept, list(config.partition_fields)


def _partition_columns(spark: SparkSession, source: str) -> list[str]:
    return [each.name for each in spark.catalog.listColumns(source) if each.isPartition]


def _keys(*names: str) -> set[str]:
    """Return the options that properties of some names set."""
    return {key for name in names for key in table_options({name: "cow"})}
