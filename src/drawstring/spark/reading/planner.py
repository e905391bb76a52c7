"""The strategy of Spark's planner that reads file slices with `mapInArrow`.

    optimized plan                             physical plan
    Project ── Filter ── scan of slices  ──>   Project ── Filter ── MapInArrow ── Range

A scan of a data source passes rows one by one through a reader, an iterator and counters. `MapInArrow` avoids
this. The strategy runs after the optimizer, so the scan knows the columns and rows that the query needs.

A strategy is an abstract class, which a Py4J proxy cannot implement. Therefore it is Java source that the
driver compiles with Spark's own compiler (`compiled`). It returns predicates as JSON, for which Py4J would
need about twenty calls each. Without the strategy queries return the same rows, but more slowly.
"""

from __future__ import annotations

import json
from typing import Any, Final

from pyspark.sql import SparkSession

from drawstring.spark.jvm import compiled
from drawstring.spark.reading.filters import METHODS

PLANS: Final = "java.util.function.Function"
"""Interface of a scan that plans itself: returns the plan for the scan's relation, or null."""

FILTERED: Final = "scala.Function2"
"""Interface of such a scan that takes the condition of a filter on it, too; the filter stays."""

_NAME: Final = "DrawstringSlices"
_SOURCE: Final = f"""
import {PLANS};
import {FILTERED};
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayList;
import java.util.HashMap;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MapInArrow;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Range;
import org.apache.spark.sql.catalyst.plans.logical.Range$;
import org.apache.spark.sql.connector.expressions.Cast;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Extract;
import org.apache.spark.sql.connector.expressions.GeneralScalarExpression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.execution.python.UserDefinedPythonFunction;
import scala.None$;
import scala.Option;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;

public class {_NAME} extends SparkStrategy {{
    public Seq apply(LogicalPlan plan) {{
        LogicalPlan planned = planned(plan);
        return planned == null ? (Seq) Nil$.MODULE$ : listOf(planLater(planned));
    }}

    public LogicalPlan reading(UserDefinedPythonFunction function, int parts, Seq columns) {{
        Range numbers = Range$.MODULE$.apply(0L, (long) parts, 1L, Math.max(parts, 1));
        Option none = (Option) None$.MODULE$;
        return new MapInArrow(function.builder(numbers.output()), columns, numbers, false, none);
    }}

    public String described(Predicate[] predicates) throws Exception {{
        return new ObjectMapper().writeValueAsString(treesOf(predicates));
    }}

    public String parsedDates(org.apache.spark.sql.catalyst.expressions.Expression condition)
            throws Exception {{
        ArrayList found = new ArrayList();
        addParsedDates(condition, found);
        return described((Predicate[]) found.toArray(new Predicate[0]));
    }}

    private static void addParsedDates(
            org.apache.spark.sql.catalyst.expressions.Expression condition, ArrayList found) {{
        if (condition instanceof And) {{
            addParsedDates(((And) condition).left(), found);
            addParsedDates(((And) condition).right(), found);
        }} else if (ofParsedDate(condition) != null) {{
            found.add(ofParsedDate(condition));
        }}
    }}

    private static ArrayList treesOf(Expression[] expressions) {{
        ArrayList trees = new ArrayList();
        for (int n = 0; n < expressions.length; n++) {{
            Expression each = expressions[n];
            HashMap tree = new HashMap();
            if (each instanceof NamedReference) {{
                tree.put("column", ((NamedReference) each).fieldNames());
            }} else if (each instanceof Literal) {{
                Object value = ((Literal) each).value();
                tree.put("type", ((Literal) each).dataType().simpleString());
                tree.put("value", value == null ? null : value.toString());
            }} else if (each instanceof Cast) {{
                tree.put("name", "CAST");
                tree.put("to", ((Cast) each).dataType().simpleString());
                tree.put("of", treesOf(each.children()));
            }} else if (each instanceof Extract) {{
                tree.put("name", ((Extract) each).field());
                tree.put("of", treesOf(each.children()));
            }} else if (each instanceof GeneralScalarExpression) {{
                tree.put("name", ((GeneralScalarExpression) each).name());
                tree.put("of", treesOf(each.children()));
            }}
            trees.add(tree);
        }}
        return trees;
    }}

    private static LogicalPlan planned(LogicalPlan plan) {{
        if (plan instanceof DataSourceV2ScanRelation) {{
            Object scan = ((DataSourceV2ScanRelation) plan).scan();
            return scan instanceof Function ? (LogicalPlan) ((Function) scan).apply(plan) : null;
        }}
        if (!(plan instanceof Project || plan instanceof Filter)) {{
            return null;
        }}
        LogicalPlan below = (LogicalPlan) plan.children().head();
        boolean isScan = below instanceof DataSourceV2ScanRelation;
        Object scan = isScan ? ((DataSourceV2ScanRelation) below).scan() : null;
        boolean takesFilter = plan instanceof Filter && scan instanceof Function2;
        LogicalPlan child = takesFilter
            ? (LogicalPlan) ((Function2) scan).apply(below, ((Filter) plan).condition())
            : planned(below);
        return child == null ? null : (LogicalPlan) plan.withNewChildren(listOf(child));
    }}

    private static Seq listOf(Object only) {{
        return Nil$.MODULE$.$colon$colon(only);
    }}
{METHODS}}}
"""


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
    return compiled(spark, _NAME, _SOURCE)
