package drawstring.reading;

import java.util.ArrayList;
import java.util.IdentityHashMap;
import org.apache.spark.api.python.PythonUtils;
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
import scala.None$;
import scala.Option;
import scala.collection.immutable.Map;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractPartialFunction;

/** Marks the parts of a plan that read a table, finds marked parts, and replaces them. */
public class PlanMarks {
    static final String KEY = "drawstring.read";

    /** Wraps a plan into a mark. */
    public LogicalPlan marked(LogicalPlan plan, String read) throws Exception {
        Map properties = (Map) Map$.MODULE$.empty();
        properties = (Map) properties.updated("view.storingAnalyzedPlan", "true");
        properties = (Map) properties.updated(KEY, read);
        Object[] first = new Object[] {
            new TableIdentifier("drawstring"), CatalogTableType$.MODULE$.VIEW(),
            CatalogStorageFormat$.MODULE$.empty(), new StructType()
        };
        Object table = CaseClasses.create(CatalogTable$.MODULE$, first, properties);
        Object[] fields = new Object[] {table, Boolean.TRUE, plan};
        return (LogicalPlan) CaseClasses.create(View$.MODULE$, fields, null);
    }

    /** Finds the reads in a plan: marked ones, and tables of the Python data source. */
    public ArrayList reads(LogicalPlan plan) {
        Reads reads = new Reads(null);
        plan.transformDownWithSubqueries(reads);
        return reads.nodes;
    }

    /** Returns the pickled read of a node from `reads`; null for the Python data source. */
    public String read(LogicalPlan node) {
        return mark(node);
    }

    /** Finds the temporary views in a plan: database, or null, and name of each. */
    public ArrayList views(LogicalPlan plan) {
        Views views = new Views();
        plan.transformDownWithSubqueries(views);
        return views.names;
    }

    /** Replaces reads by other plans with columns of the same names. */
    public LogicalPlan replaced(LogicalPlan plan, ArrayList nodes, ArrayList by) {
        IdentityHashMap others = new IdentityHashMap();
        for (int n = 0; n < nodes.size(); n++) {
            others.put(nodes.get(n), renamed((LogicalPlan) nodes.get(n), (LogicalPlan) by.get(n)));
        }
        return (LogicalPlan) plan.transformDownWithSubqueries(new Reads(others));
    }

    /** Renames the columns of a new plan to the attributes that the old one has. */
    static LogicalPlan renamed(LogicalPlan old, LogicalPlan by) {
        ArrayList columns = new ArrayList();
        for (int n = 0; n < old.output().length(); n++) {
            Attribute before = (Attribute) old.output().apply(n);
            Attribute after = (Attribute) by.output().apply(n);
            columns.add(new Alias(after, before.name(), before.exprId(), (Seq) Nil$.MODULE$,
                (Option) None$.MODULE$, (Seq) Nil$.MODULE$));
        }
        return new Project(PythonUtils.toSeq(columns), by);
    }

    static String mark(Object node) {
        if (!(node instanceof View)) {
            return null;
        }
        Option read = ((View) node).desc().properties().get(KEY);
        return read.isEmpty() ? null : (String) read.get();
    }

    static boolean isRead(Object node) {
        if (node instanceof DataSourceV2Relation) {
            Object table = ((DataSourceV2Relation) node).table();
            String name = ((DataSourceV2Relation) node).table().name().toLowerCase();
            boolean ours = name.equals("hudi") || name.equals("drawstring");
            return ours && table.getClass().getSimpleName().equals("PythonTable");
        }
        return mark(node) != null;
    }


    static class Reads extends AbstractPartialFunction {
        final IdentityHashMap others;
        final ArrayList nodes = new ArrayList();

        Reads(IdentityHashMap others) {
            this.others = others;
        }

        public boolean isDefinedAt(Object node) {
            return isRead(node);
        }

        public Object applyOrElse(Object node, scala.Function1 otherwise) {
            if (!isRead(node)) {
                return otherwise.apply(node);
            }
            if (others == null) {
                nodes.add(node);
                return node;
            }
            return others.containsKey(node) ? others.get(node) : node;
        }
    }

    static class Views extends AbstractPartialFunction {
        final ArrayList names = new ArrayList();

        public boolean isDefinedAt(Object node) {
            return node instanceof View && ((View) node).isTempView() && mark(node) == null;
        }

        public Object applyOrElse(Object node, scala.Function1 otherwise) {
            if (!isDefinedAt(node)) {
                return otherwise.apply(node);
            }
            TableIdentifier name = ((View) node).desc().identifier();
            names.add(new String[] {
                name.database().isEmpty() ? null : (String) name.database().get(), name.table()
            });
            return node;
        }
    }
}
