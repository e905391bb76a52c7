"""A strategy of Spark's planner that reads file slices by `mapInArrow`.

    optimized plan                             physical plan
    Project ── Filter ── scan of slices  ──>   Project ── Filter ── MapInArrow ── Range

A scan of a data source hands rows on one by one through a reader, an iterator and counters on each.
`MapInArrow` does without. When this strategy is asked the optimizer
is through, so the scan knows which columns and rows the query needs.

A strategy is an abstract class, which a proxy cannot be, so this one is Java text for the compiler that Spark
carries for its own generated code. It runs in the driver only. Without it queries give the same answers, more
slowly.
"""

from __future__ import annotations

from typing import Any, Final

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

PLANS: Final = "java.util.function.Function"
"""What a scan implements that plans itself: from the scan in the optimized plan to what reads it, or null."""

_NAME: Final = "DrawstringSlices"
_SOURCE: Final = f"""
import {PLANS};
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;

public class {_NAME} extends SparkStrategy {{
    public Seq apply(LogicalPlan plan) {{
        LogicalPlan planned = planned(plan);
        return planned == null ? (Seq) Nil$.MODULE$ : listOf(planLater(planned));
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
    try:
        methods = spark._jsparkSession.experimental()
        present = methods.extraStrategies()
        if not any(present.apply(n).getClass().getName() == _NAME for n in range(present.length())):
            setter = getattr(methods, "extraStrategies_$eq")
            setter(present.appended(_strategy(spark)))
    except Py4JError:
        return False
    return True


def _strategy(spark: SparkSession) -> Any:
    """Compile the strategy and make one."""
    jvm: Any = spark.sparkContext._jvm
    gateway: Any = spark.sparkContext._gateway
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
    compiler.cook(_SOURCE)
    compiled = compiler.getClassLoader().loadClass(_NAME)
    none = gateway.new_array(jvm.java.lang.Class, 0)
    return compiled.getConstructor(none).newInstance(gateway.new_array(jvm.java.lang.Object, 0))
