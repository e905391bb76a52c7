"""Marks in Spark's plans: which part of a plan is a read of a table, and how to read it anew.

    DataFrame of a read ──> View, with the pickled read in its properties ── relations of one snapshot

A `View` is what Spark puts around the plan of a temporary view. It has no part in a query: the optimizer
takes it out first. But it stays in plans that a user makes of the DataFrame, self-joins among them, so a
temporary view tells what of it can be read anew (`views`). What Py4J would need many calls for is Java text
that the driver compiles (`compiled`); a Spark that cannot compile it gets plans without marks.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from drawstring.query.scan import Scan
from drawstring.spark.compiled import compiled
from drawstring.spark.read.reading import SliceReading, dataframe

_NAME: Final = "DrawstringMarks"
_SOURCE: Final = f"""
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.IdentityHashMap;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogStorageFormat$;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.CatalogTable$;
import org.apache.spark.sql.catalyst.catalog.CatalogTableType$;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.View;
import org.apache.spark.sql.catalyst.plans.logical.View$;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.api.python.PythonUtils;
import scala.None$;
import scala.Option;
import scala.collection.immutable.Map;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractPartialFunction;

public class {_NAME} {{
    static final String KEY = "drawstring.read";

    /** Puts a mark around a plan. */
    public LogicalPlan marked(LogicalPlan plan, String read) throws Exception {{
        Map said = (Map) Map$.MODULE$.empty();
        said = (Map) said.updated("view.storingAnalyzedPlan", "true");
        said = (Map) said.updated(KEY, read);
        Object[] first = new Object[] {{
            new TableIdentifier("drawstring"), CatalogTableType$.MODULE$.VIEW(),
            CatalogStorageFormat$.MODULE$.empty(), new StructType()
        }};
        Object table = made(CatalogTable$.MODULE$, first, said);
        return (LogicalPlan) made(View$.MODULE$, new Object[] {{table, Boolean.TRUE, plan}}, null);
    }}

    /** Finds the reads in a plan: those with a mark, and tables of the Python data source. */
    public ArrayList reads(LogicalPlan plan) {{
        Reads found = new Reads(null);
        plan.transformDownWithSubqueries(found);
        return found.nodes;
    }}

    /** Tells how to read anew what `reads` found; null for the Python data source. */
    public String read(LogicalPlan node) {{
        return told(node);
    }}

    /** Finds the names of temporary views in a plan: of each the database, or null, and the name. */
    public ArrayList views(LogicalPlan plan) {{
        Views found = new Views();
        plan.transformDownWithSubqueries(found);
        return found.names;
    }}

    /** Puts other plans in the place of reads; each has columns of the same names. */
    public LogicalPlan replaced(LogicalPlan plan, ArrayList nodes, ArrayList by) {{
        IdentityHashMap others = new IdentityHashMap();
        for (int n = 0; n < nodes.size(); n++) {{
            others.put(nodes.get(n), renamed((LogicalPlan) nodes.get(n), (LogicalPlan) by.get(n)));
        }}
        return (LogicalPlan) plan.transformDownWithSubqueries(new Reads(others));
    }}

    /** Gives a plan the attributes that the rest of a plan knows. */
    static LogicalPlan renamed(LogicalPlan old, LogicalPlan by) {{
        ArrayList columns = new ArrayList();
        for (int n = 0; n < old.output().length(); n++) {{
            Attribute known = (Attribute) old.output().apply(n);
            Attribute found = (Attribute) by.output().apply(n);
            columns.add(new Alias(found, known.name(), known.exprId(), (Seq) Nil$.MODULE$,
                (Option) None$.MODULE$, (Seq) Nil$.MODULE$));
        }}
        return new Project(PythonUtils.toSeq(columns), by);
    }}

    static String told(Object node) {{
        if (!(node instanceof View)) {{
            return null;
        }}
        Option found = ((View) node).desc().properties().get(KEY);
        return found.isEmpty() ? null : (String) found.get();
    }}

    static boolean isRead(Object node) {{
        if (node instanceof DataSourceV2Relation) {{
            Object table = ((DataSourceV2Relation) node).table();
            String name = ((DataSourceV2Relation) node).table().name().toLowerCase();
            boolean ours = name.equals("hudi") || name.equals("drawstring");
            return ours && table.getClass().getSimpleName().equals("PythonTable");
        }}
        return told(node) != null;
    }}

    /** Calls the `apply` of a case class, with what it has by default for what is not given. */
    static Object made(Object companion, Object[] first, Map properties) throws Exception {{
        Method[] methods = companion.getClass().getMethods();
        Method apply = null;
        for (int n = 0; n < methods.length; n++) {{
            boolean longer = apply == null || methods[n].getParameterCount() > apply.getParameterCount();
            if (methods[n].getName().equals("apply") && longer) {{
                apply = methods[n];
            }}
        }}
        Object[] all = new Object[apply.getParameterCount()];
        boolean told = properties == null;
        for (int n = 0; n < all.length; n++) {{
            if (n < first.length) {{
                all[n] = first[n];
            }} else if (!told && apply.getParameterTypes()[n] == Map.class) {{
                all[n] = properties;
                told = true;
            }} else {{
                all[n] = companion.getClass().getMethod("apply$default$" + (n + 1)).invoke(companion);
            }}
        }}
        return apply.invoke(companion, all);
    }}

    static class Reads extends AbstractPartialFunction {{
        final IdentityHashMap others;
        final ArrayList nodes = new ArrayList();

        Reads(IdentityHashMap others) {{
            this.others = others;
        }}

        public boolean isDefinedAt(Object node) {{
            return isRead(node);
        }}

        public Object applyOrElse(Object node, scala.Function1 otherwise) {{
            if (!isRead(node)) {{
                return otherwise.apply(node);
            }}
            if (others == null) {{
                nodes.add(node);
                return node;
            }}
            return others.containsKey(node) ? others.get(node) : node;
        }}
    }}

    static class Views extends AbstractPartialFunction {{
        final ArrayList names = new ArrayList();

        public boolean isDefinedAt(Object node) {{
            return node instanceof View && ((View) node).isTempView() && told(node) == null;
        }}

        public Object applyOrElse(Object node, scala.Function1 otherwise) {{
            if (!isDefinedAt(node)) {{
                return otherwise.apply(node);
            }}
            TableIdentifier name = ((View) node).desc().identifier();
            names.add(new String[] {{
                name.database().isEmpty() ? null : (String) name.database().get(), name.table()
            }});
            return node;
        }}
    }}
}}
"""


@dataclass(frozen=True, slots=True)
class Reread:
    """A read that can be done again.

    Attributes:
        path: the table's root.
        storage_options: options of the object store.
        scan: looks at the table and plans the query; a picklable function.
        where: SQL text of the rows to read, which Spark can evaluate itself.
    """

    path: str
    storage_options: Mapping[str, str]
    scan: Callable[[], Scan]
    where: str | None = None

    def dataframe(self, spark: SparkSession) -> DataFrame:
        """Return the rows as they are now."""
        return self.shown(spark, self.scan())

    def shown(self, spark: SparkSession, scan: Scan) -> DataFrame:
        """Return the rows of a scan of this read, with a mark in their plan."""
        reading = SliceReading(scan.schema, self.where)
        df = scan.use(lambda tasks: dataframe(spark, tasks, reading))
        marks = helper(spark)
        if marks is None:
            return df
        text = base64.b64encode(cloudpickle.dumps(self)).decode()
        return of_plan(spark, marks.marked(plan_of(df), text))


def reread_of(text: str) -> Reread:
    """Return the read that a mark tells."""
    found: Reread = cloudpickle.loads(base64.b64decode(text))
    return found


def plan_of(df: DataFrame) -> Any:
    """Return the analyzed plan of a DataFrame."""
    return df._jdf.queryExecution().analyzed()


def of_plan(spark: SparkSession, plan: Any) -> DataFrame:
    """Return the DataFrame of a plan."""
    jvm: Any = spark.sparkContext._jvm
    dataset = getattr(jvm, "org.apache.spark.sql.classic.Dataset$").__getattr__("MODULE$")
    return ClassicDataFrame(dataset.ofRows(spark._jsparkSession, plan), spark)


def helper(spark: SparkSession) -> Any | None:
    """Return what makes and finds marks in plans, None where this Spark cannot compile it."""
    return compiled(spark, _NAME, _SOURCE)
