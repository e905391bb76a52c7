"""Tables by their names in Spark's catalog."""

from __future__ import annotations

import json
from dataclasses import dataclass

from pyspark.sql import SparkSession

from drawstring.base.errors import InvalidError
from drawstring.spark.errors import analysed
from drawstring.spark.locations import storage_options
from drawstring.spark.spark_table import SparkTable
from drawstring.spark.spark_table import table as open_on_spark
from drawstring.spark.sql.driver import java
from drawstring.spark.sql.options import table_options, write_options
from drawstring.spark.sql.table import path_of


@dataclass(frozen=True, slots=True)
class NamedTable:
    """A table of the catalog, or at a path.

    Attributes:
        path: its root.
        table: the table.
        options: options of writes to it.
    """

    path: str
    table: SparkTable
    options: dict[str, str]


def location_of(spark: SparkSession, name: str) -> str | None:
    """Return the path of a table of Hudi by its name in the catalog, None if there is none."""
    found = java(spark, "HudiCatalog").location(spark._jsparkSession, name)
    return None if found is None else path_of(found)


def named_table(spark: SparkSession, name: str | None, path: str | None = None) -> NamedTable:
    """Open a table.

    Args:
        spark: a registered session.
        name: name in the catalog, with its database or without, or a path.
        path: the path, if there is no name.

    Raises:
        InvalidError: neither was given, or the catalog has no table of Hudi with this name.
        NoTableError: there is no table at the path.
    """
    if not (name or path):
        raise InvalidError("No table was given. Give table => its name, or path => its path.")
    if name and "/" in name:
        name, path = None, name
    root = location_of(spark, name) if name else path_of(path or "")
    if root is None:
        raise InvalidError(f"The catalog has no Hudi table {name}. SHOW TABLES names those that it has.")
    found = java(spark, "HudiCatalog").properties(spark._jsparkSession, name) if name else "{}"
    properties: dict[str, str] = json.loads(found)
    stored = storage_options(spark, root, table_options(properties))
    table = open_on_spark(spark, root, storage_options=stored)
    return NamedTable(root, table, write_options(spark, properties, {}))


def table_named(spark: SparkSession, name: str) -> SparkTable:
    """Open a table by its name in the session's catalog; see `drawstring.spark.table`.

    Args:
        spark: a session that was registered with `drawstring.spark.register`.
        name: name of the table, with its database or without.

    Returns:
        The table. Its methods accept DataFrames and everything that `drawstring.Table` accepts.

    Raises:
        InvalidError: the catalog has no table of Hudi with this name.
        NoTableError: the files of the table are gone.

    Example:
        >>> table = drawstring.spark.table_named(spark, "lake.rides")
        >>> table.update("city = 'lima'", {"fare": "fare * 2"}).updates
        2
    """
    with analysed():
        return named_table(spark, name).table
