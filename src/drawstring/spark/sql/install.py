"""Installation of SQL in a session."""

from __future__ import annotations

import logging
from typing import Any, Final

from py4j.java_collections import ListConverter
from pyspark import SparkContext
from pyspark.sql import SparkSession

from drawstring.model.event import Event
from drawstring.spark.blobs import register_read_blob
from drawstring.spark.reading import planning
from drawstring.spark.sql.catalog import CatalogPeer
from drawstring.spark.sql.driver import java, load, refresh
from drawstring.spark.sql.statement_rows import current_attempt
from drawstring.spark.sql.table import path_of
from drawstring.spark.sql.table_functions import FUNCTIONS
from drawstring.txn.events import add_listener

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
    if not (planning.install(spark) and load(spark, CatalogPeer())):
        _LOG.warning(
            "SQL on Hudi tables by name is off: the driver of this Spark does not load compiled classes. Use"
            " DataFrames, or PySpark 4.0 to 4.3."
        )
        return False
    planning.add_strategy(spark, java(spark, "Statements")())
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
