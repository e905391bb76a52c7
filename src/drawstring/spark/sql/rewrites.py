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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeAlias

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame
from pyspark.sql.types import StructType

from drawstring.schema.meta import META_COLUMNS
from drawstring.spark.errors import analysed
from drawstring.spark.sql.driver import java
from drawstring.spark.sql.named import location_of, named_table
from drawstring.spark.sql.options import table_options

Run: TypeAlias = Callable[[str], DataFrame]

BEFORE: Final = r"\s*(?:(?:--[^\n]*\n|/\*(?:(?!\*/)[\s\S])*\*/)\s*)*"
"""Comments before a statement."""

_POLICY: Final = "spark.sql.storeAssignmentPolicy"
_INSERT: Final = re.compile(rf"{BEFORE}(?:WITH\b[\s\S]*\b)?INSERT\s+(?:INTO|OVERWRITE)\b", re.IGNORECASE)
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


def run_as_hudi(spark: SparkSession, text: str, run: Run) -> DataFrame:
    """Run a statement as Hudi understands it.

    Args:
        spark: a registered session.
        text: the statement.
        run: runs a statement by Spark.
    """
    if _INSERT.match(text):
        is_legacy = (spark.conf.get(_POLICY) or "").lower() == "legacy"
        with _ansi(spark, is_legacy):
            done = java(spark, "Rewrites").inserted(spark._jsparkSession, text, is_legacy)
        return run(text) if done is None else ClassicDataFrame(done, spark)
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
            done = java(spark, "Rewrites").cast(spark._jsparkSession, text)
        if done is None:
            raise
        return ClassicDataFrame(done, spark)


@contextmanager
def _ansi(spark: SparkSession, is_wanted: bool = True) -> Iterator[None]:
    """Let Spark resolve a statement on its tables, which it refuses to do under the legacy policy."""
    before = spark.conf.get(_POLICY)
    if not is_wanted or before is None:
        yield
        return
    spark.conf.set(_POLICY, "ANSI")
    try:
        yield
    finally:
        spark.conf.set(_POLICY, before)


def by_name(df: DataFrame, table: str) -> DataFrame:
    """Return rows to insert in the order of the table's columns, if their columns have the same names."""
    spark = df.sparkSession
    if location_of(spark, table) is None:
        return df
    given = {name.lower(): name for name in df.columns}
    wanted = spark.table(table).columns
    if len(given) != len(df.columns) or {name.lower() for name in wanted} != set(given):
        return df
    if [name.lower() for name in wanted] == list(given):
        return df
    return df.select(*(f"`{given[name.lower()]}`" for name in wanted))


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
    kept = {key: value.replace("'", r"\'") for key, value in own.items() if not _keys(key) & taken}
    options = ", ".join(f"'{key}' = '{value}'" for key, value in sorted(kept.items()))
    by = ", ".join(f"`{each}`" for each in partitioned)
    using = "hudi" if is_hudi else provider
    return " ".join(
        (
            f"CREATE TABLE {is_optional or ''}{name} ({columns.toDDL()}) USING {using}",
            f"OPTIONS ({options})" if options else "",
            f"PARTITIONED BY ({by})" if by else "",
            rest,
        )
    )


def _of_source(spark: SparkSession, source: str) -> tuple[dict[str, str], list[str]]:
    """Return the properties of a table of Hudi, and its partition columns."""
    found = json.loads(java(spark, "HudiCatalog").properties(spark._jsparkSession, source))
    given = {key.removeprefix("option."): value for key, value in found.items()}
    config = named_table(spark, source).table.config
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
