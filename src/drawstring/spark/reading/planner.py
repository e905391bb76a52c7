"""The strategy of Spark's planner that reads file slices with `mapInArrow`.

    optimized plan                             physical plan
    Project ── Filter ── scan of slices  ──>   Project ── Filter ── MapInArrow ── Range

A scan of a data source passes rows one by one through a reader, an iterator and counters. `MapInArrow` avoids
this. The strategy runs after the optimizer, so the scan knows the columns and rows that the query needs.

A strategy is an abstract class, which a Py4J proxy cannot implement. Therefore it is Java source
(`SliceStrategy`) that the driver compiles (`spark.jvm`). It returns predicates as JSON, for which Py4J would
need about twenty calls each. Without the strategy queries return the same rows, but more slowly.
"""

from __future__ import annotations

import json
from typing import Any, Final

from pyspark.sql import SparkSession

from drawstring.spark.jvm import instance

PLANS: Final = "java.util.function.Function"
"""Interface of a scan that plans itself: returns the plan for the scan's relation, or null."""

FILTERED: Final = "scala.Function2"
"""Interface of such a scan that takes the condition of a filter on it, too; the filter stays."""


def install(spark: SparkSession) -> bool:
    """Add the strategy to a session's planner.

    Args:
        spark: a classic session.

    Returns:
        Whether the planner has the strategy; False if this Spark cannot compile it.
    """
    strategy = _strategy(spark)
    if strategy is None:
        return False
    add_strategy(spark, strategy)
    return True


def add_strategy(spark: SparkSession, strategy: Any) -> None:
    """Add a strategy to a session's planner, unless it has one of the same class."""
    methods = spark._jsparkSession.experimental()
    present = methods.extraStrategies()
    name = strategy.getClass().getName()
    if not any(present.apply(n).getClass().getName() == name for n in range(present.length())):
        getattr(methods, "extraStrategies_$eq")(present.appended(strategy))


def described(spark: SparkSession, predicates: Any) -> list[dict[str, Any]]:
    """Return Spark's predicates as trees, with one call to Java.

    Args:
        spark: a classic session.
        predicates: Java array of data source predicates.

    Returns:
        Mappings with `column`, with `type` and `value`, or with `name` and `of` (the operands), and of casts
        `to`.
    """
    strategy = _strategy(spark)
    trees: list[dict[str, Any]] = [] if strategy is None else json.loads(strategy.described(predicates))
    return trees


def parsed_dates(spark: SparkSession, condition: Any) -> list[dict[str, Any]]:
    """Return the comparisons of dates in texts by a pattern in a condition of a plan; see `described`.

    Args:
        spark: a classic session in which `install` returned True.
        condition: Spark's expression.
    """
    strategy = _strategy(spark)
    assert strategy is not None
    trees: list[dict[str, Any]] = json.loads(strategy.parsedDates(condition))
    return trees


def reading(spark: SparkSession, function: Any, parts: int, columns: Any) -> Any:
    """Return the plan in which a Python function reads parts by their numbers.

    Args:
        spark: a classic session in which `install` returned True.
        function: Spark's user-defined function.
        parts: number of parts; each is a task, and none is one without rows.
        columns: attributes of the result.
    """
    strategy = _strategy(spark)
    assert strategy is not None
    return strategy.reading(function, parts, columns)


def _strategy(spark: SparkSession) -> Any | None:
    return instance(spark, "SliceStrategy")
