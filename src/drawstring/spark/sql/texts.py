"""Statements of Hudi that Spark's grammar lacks, in `spark.sql` of registered sessions.

| statement | what happens |
|---|---|
| SHOW INDEXES FROM t | the rows come from the table |
| CALL of an unknown procedure | the nearest names |
| TIMESTAMP AS OF '20240131120000000' | becomes VERSION AS OF: an instant is no timestamp to Spark |
| ANALYZE TABLE t, MSCK REPAIR TABLE t | nothing: statistics and partitions are always those of the files |
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from typing import Any, Final

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from drawstring.spark.errors import analysed
from drawstring.spark.sql.indexes import SHOWN, shown
from drawstring.spark.sql.named import location_of, named_table
from drawstring.spark.sql.procedures.calls import procedure_of

_BEFORE: Final = r"\s*(?:(?:--[^\n]*\n|/\*(?:(?!\*/)[\s\S])*\*/)\s*)*"
"""Comments before a statement."""

_SHOW_INDEXES: Final = re.compile(
    rf"{_BEFORE}SHOW\s+INDEX(?:ES)?\s+(?:FROM|IN)\s+(?:TABLE\s+)?(\S+?)\s*;?\s*", re.IGNORECASE
)
_CALL: Final = re.compile(rf"{_BEFORE}CALL\s+(?:spark_catalog\.)?(?:system\.)?(\w+)\s*\(", re.IGNORECASE)
_AS_OF_INSTANT: Final = re.compile(
    r"\b(?:SYSTEM_TIME|TIMESTAMP)\s+AS\s+OF\s+'(\d{14}(?:\d{3})?)'", re.IGNORECASE
)
_NOTHING_TO_DO: Final = re.compile(
    rf"{_BEFORE}(?:ANALYZE\s+TABLE\s+(\S+)\s+.*COMPUTE\s.*|(?:MSCK\s+)?REPAIR\s+TABLE\s+([^\s;]+).*)",
    re.IGNORECASE | re.DOTALL,
)
_NO_ROWS: Final = StructType([])


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
        upkeep = _NOTHING_TO_DO.fullmatch(sqlQuery)
        if upkeep and is_registered(spark) and location_of(spark, upkeep[1] or upkeep[2]) is not None:
            return spark.createDataFrame([], _NO_ROWS)
        try:
            return own_sql(spark, sqlQuery, *args, **kwargs)
        except AnalysisException as error:
            called = _CALL.match(sqlQuery)
            if called and "UNRESOLVED_ROUTINE" in str(error) and is_registered(spark):
                with analysed():
                    procedure_of(called[1])
            raise

    SparkSession.sql = sql  # type: ignore[method-assign, assignment]


@analysed()
def show_indexes(spark: SparkSession, name: str) -> DataFrame:
    """Return the complete indexes of a table by its name in the catalog."""
    indexes = named_table(spark, name).table.indexes()
    return spark.createDataFrame([shown(each) for each in indexes if each.is_complete], SHOWN)
