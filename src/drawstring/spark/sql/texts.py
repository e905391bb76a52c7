"""Statements of Hudi that Spark's grammar lacks, in `spark.sql` of registered sessions.

| statement | what happens |
|---|---|
| SHOW INDEXES FROM t | the rows come from the table |
| TIMESTAMP AS OF '20240131120000000' | becomes VERSION AS OF: an instant is no timestamp to Spark |
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from drawstring.base.errors import InvalidError
from drawstring.spark.errors import analysed
from drawstring.spark.spark_table import table as open_on_spark
from drawstring.spark.sql.driver import java
from drawstring.spark.sql.indexes import SHOWN, shown
from drawstring.spark.sql.table import path_of

_SHOW_INDEXES: Final = re.compile(
    r"\s*SHOW\s+INDEX(?:ES)?\s+(?:FROM|IN)\s+(?:TABLE\s+)?(\S+?)\s*;?\s*", re.IGNORECASE
)
_AS_OF_INSTANT: Final = re.compile(
    r"\b(?:SYSTEM_TIME|TIMESTAMP)\s+AS\s+OF\s+'(\d{14}(?:\d{3})?)'", re.IGNORECASE
)


def follow_statements(is_registered: Callable[[SparkSession], bool]) -> None:
    """Let `spark.sql` of registered sessions know the statements; install once per process.

    Args:
        is_registered: returns whether a session is registered.
    """
    own_sql = SparkSession.sql

    @wraps(own_sql)
    def sql(spark: SparkSession, sqlQuery: str, *args: Any, **kwargs: Any) -> DataFrame:
        asks = _SHOW_INDEXES.fullmatch(sqlQuery)
        travels = _AS_OF_INSTANT.search(sqlQuery)
        if (asks or travels) and is_registered(spark):
            if asks:
                return show_indexes(spark, asks[1])
            sqlQuery = _AS_OF_INSTANT.sub(r"VERSION AS OF '\1'", sqlQuery)
        return own_sql(spark, sqlQuery, *args, **kwargs)

    SparkSession.sql = sql  # type: ignore[method-assign, assignment]


@analysed()
def show_indexes(spark: SparkSession, name: str) -> DataFrame:
    """Return the indexes of a table by its name in the catalog."""
    return spark.createDataFrame([shown(each) for each in opened(spark, name).indexes()], SHOWN)


def opened(spark: SparkSession, name: str) -> Any:
    """Open a table by its name in the catalog, with its database or without.

    Raises:
        InvalidError: the catalog has no table of Hudi with this name.
    """
    found = java(spark, "HudiCatalog").location(spark._jsparkSession, name)
    if found is None:
        raise InvalidError(f"The catalog has no Hudi table {name}. SHOW TABLES names those that it has.")
    return open_on_spark(spark, path_of(found))
