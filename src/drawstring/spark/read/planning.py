"""A strategy of Spark's planner that reads file slices by `mapInArrow`.

    optimized plan                             physical plan
    Project ── Filter ── scan of slices  ──>   Project ── Filter ── MapInArrow ── Range

A scan of a data source hands rows on one by one through a reader, an iterator and counters on each.
`MapInArrow` does without. When this strategy is asked the optimizer
is through, so the scan knows which columns and rows the query needs.

A strategy is an abstract class, which a proxy cannot be, so this one is Java text for the compiler that Spark
carries for its own generated code (`compiled`). It runs in the driver only, and tells predicates as JSON, for
which Py4J would ask twenty times each. Without it queries give the same answers, more slowly.
"""

from __future__ import annotations

import json
from typing import Any, Final

from pyspark.sql import SparkSession

from drawstring.spark.compiled import compiled

PLANS: Final = "java.util.function.Function"
"""What a scan implements that plans itself: from the scan in the optimized plan to what reads it, or null."""

_NAME: Final = "DrawstringSlices"
_SOURCE: Final = f"""
import {PLANS};
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayList;
import java.util.HashMap;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MapInArrow;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Range;
import org.apache.spark.sql.catalyst.plans.logical.Range$;
import org.apache.spark.sql.connector.expressions.Expression;
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
        Range numbers = Range$.MODULE$.apply(0L, (long) parts, 1L, parts);
        Option none = (Option) None$.MODULE$;
        return new MapInArrow(function.builder(numbers.output()), columns, numbers, false, none);
    }}

    public String described(Predicate[] predicates) throws Exception {{
        return new ObjectMapper().writeValueAsString(facts(predicates));
    }}

    private static ArrayList facts(Expression[] expressions) {{
        ArrayList found = new ArrayList();
        for (int n = 0; n < expressions.length; n++) {{
            Expression each = expressions[n];
            HashMap told = new HashMap();
            if (each instanceof NamedReference) {{
                told.put("column", ((NamedReference) each).fieldNames());
            }} else if (each instanceof Literal) {{
                Object value = ((Literal) each).value();
                told.put("type", ((Literal) each).dataType().simpleString());
                told.put("value", value == null ? null : value.toString());
            }} else if (each instanceof Predicate) {{
                told.put("name", ((Predicate) each).name());
                told.put("of", facts(each.children()));
            }}
            found.add(told);
        }}
        return found;
    }}

    private static LogicalPlan planned(LogicalPlan plan) {{
        if (plan instanceof DataSourceV2ScanRelation) {{
            Object scan = ((DataSourceV2ScanRelation) plan).scan();
            return scan instanceof Function ? (LogicalPlan) ((Function) scan).apply(plan) : null;
        }}
        if (!(plan instanceof Project || plan instanceof Filter)) {{
            return null;
        }}
        LogicalPlan child = planned((LogicalPlan) plan.children().head());
        return child == null ? null : (LogicalPlan) plan.withNewChildren(listOf(child));
    }}

    private static Seq listOf(Object only) {{
        return Nil$.MODULE$.$colon$colon(only);
    }}
}}
"""


def install(spark: SparkSession) -> bool:
    """Have a session's planner ask scans how to read them; tell whether it does.

    Args:
        spark: a classic session.
    """
    strategy = _strategy(spark)
    if strategy is None:
        return False
    methods = spark._jsparkSession.experimental()
    present = methods.extraStrategies()
    if not any(present.apply(n).getClass().getName() == _NAME for n in range(present.length())):
        getattr(methods, "extraStrategies_$eq")(present.appended(strategy))
    return True


def described(spark: SparkSession, predicates: Any) -> list[dict[str, Any]]:
    """Return what Spark's predicates are, by one call: `column`, `type` and `value`, or `name` and `of`.

    Args:
        spark: a classic session.
        predicates: an array of those of data sources.
    """
    strategy = _strategy(spark)
    found: list[dict[str, Any]] = [] if strategy is None else json.loads(strategy.described(predicates))
    return found


def reading(spark: SparkSession, function: Any, parts: int, columns: Any) -> Any:
    """Return the plan in which a Python function reads parts by their numbers.

    Args:
        spark: a classic session that `install` was successful in.
        function: Spark's user-defined function.
        parts: how many there are; a task each.
        columns: the attributes that it yields.
    """
    strategy = _strategy(spark)
    assert strategy is not None
    return strategy.reading(function, parts, columns)


def _strategy(spark: SparkSession) -> Any | None:
    return compiled(spark, _NAME, _SOURCE)
