package drawstring.sql;

import java.util.ArrayList;
import java.util.HashMap;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.EqualNullSafe;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeRows;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import scala.None$;
import scala.Option;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;

/** Plans of rows that take the place of a relation of a statement. */
public class Plans {
    /** Returns rows with the attributes of a statement, found by name; other columns keep their own. */
    public static LogicalPlan under(LogicalPlan plan, Seq attributes, boolean keepsOthers) {
        HashMap wanted = new HashMap();
        for (int n = 0; n < attributes.length(); n++) {
            wanted.put(((Attribute) attributes.apply(n)).name().toLowerCase(), attributes.apply(n));
        }
        ArrayList columns = new ArrayList();
        for (int n = 0; n < plan.output().length(); n++) {
            Attribute column = (Attribute) plan.output().apply(n);
            Attribute as = (Attribute) wanted.get(column.name().toLowerCase());
            if (as != null) {
                columns.add(alias(column, as));
            } else if (keepsOthers) {
                columns.add(column);
            }
        }
        return new Project(PythonUtils.toSeq(columns), plan);
    }

    /** Returns the optimized plan of the rows of a relation that conditions leave, with its attributes. */
    public static LogicalPlan narrowed(LogicalPlan rows, DataSourceV2ScanRelation relation, Seq conditions) {
        LogicalPlan plan = under(rows, relation.relation().output(), false);
        for (int n = 0; n < conditions.length(); n++) {
            plan = new Filter((Expression) conditions.apply(n), plan);
        }
        plan = new Project((Seq) relation.output(), plan);
        Dataset narrowed = (Dataset) Dataset$.MODULE$.ofRows(Calls.session(), plan);
        return renamed(narrowed.queryExecution().optimizedPlan(), (Seq) relation.output());
    }

    /** Returns conditions with the parts of a filter that can be evaluated in another plan, too. */
    public static Seq withPlain(Seq conditions, Expression filter) {
        ArrayList all = new ArrayList();
        for (int n = 0; n < conditions.length(); n++) {
            all.add(conditions.apply(n));
        }
        addPlain(filter, all);
        return PythonUtils.toSeq(all);
    }

    private static void addPlain(Expression condition, ArrayList found) {
        if (condition instanceof And) {
            addPlain((Expression) condition.children().apply(0), found);
            addPlain((Expression) condition.children().apply(1), found);
        } else if (condition.deterministic() && !SubqueryExpression$.MODULE$.hasSubquery(condition)) {
            found.add(condition);
        }
    }

    /** Returns rows with other attributes, by position: the optimizer drops aliases that repeat a name. */
    private static LogicalPlan renamed(LogicalPlan plan, Seq attributes) {
        ArrayList columns = new ArrayList();
        for (int n = 0; n < attributes.length(); n++) {
            columns.add(alias((Attribute) plan.output().apply(n), (Attribute) attributes.apply(n)));
        }
        return new Project(PythonUtils.toSeq(columns), plan);
    }

    private static Alias alias(Attribute column, Attribute as) {
        return new Alias(column, as.name(), as.exprId(), (Seq) Nil$.MODULE$, (Option) None$.MODULE$,
            (Seq) Nil$.MODULE$);
    }

    /** Returns the table of a plan that is a relation, whatever wraps it; null if it is none of Hudi. */
    public static HudiTable tableOf(LogicalPlan plan) {
        DataSourceV2Relation relation = relationOf(plan);
        Object table = relation == null ? null : relation.table();
        return table instanceof HudiTable ? (HudiTable) table : null;
    }

    public static DataSourceV2Relation relationOf(LogicalPlan plan) {
        if (plan instanceof DataSourceV2ScanRelation) {
            return (DataSourceV2Relation) ((DataSourceV2ScanRelation) plan).relation();
        }
        if (plan instanceof DataSourceV2Relation) {
            return (DataSourceV2Relation) plan;
        }
        return plan.children().length() == 1 ? relationOf((LogicalPlan) plan.children().head()) : null;
    }

    /** Returns the columns that each part of a conjunction sets equal to something; null for other parts. */
    public static ArrayList equalled(Expression condition, Seq columns) {
        ArrayList names = new ArrayList();
        if (condition instanceof And) {
            names.addAll(equalled((Expression) condition.children().apply(0), columns));
            names.addAll(equalled((Expression) condition.children().apply(1), columns));
            return names;
        }
        String name = null;
        boolean isEquality = condition instanceof EqualTo || condition instanceof EqualNullSafe;
        for (int n = 0; isEquality && n < 2; n++) {
            Object side = condition.children().apply(n);
            Expression other = (Expression) condition.children().apply(1 - n);
            for (int c = 0; side instanceof Attribute && c < columns.length(); c++) {
                Attribute column = (Attribute) columns.apply(c);
                boolean isOfBoth = other.references().contains(column);
                name = column.exprId().equals(((Attribute) side).exprId()) && !isOfBoth ? column.name() : name;
            }
        }
        names.add(name);
        return names;
    }

    /** Returns the plan of a MERGE that lets several rows of its source change a row of the table. */
    public static LogicalPlan withRepeated(LogicalPlan plan) {
        ArrayList children = new ArrayList();
        for (int n = 0; n < plan.children().length(); n++) {
            children.add(withRepeated((LogicalPlan) plan.children().apply(n)));
        }
        TreeNode changed = plan.withNewChildren(PythonUtils.toSeq(children));
        if (!(plan instanceof MergeRows)) {
            return (LogicalPlan) changed;
        }
        Object[] all = new Object[changed.productArity()];
        for (int n = 0; n < all.length; n++) {
            all[n] = changed.productElement(n) instanceof Boolean ? Boolean.FALSE : changed.productElement(n);
        }
        return (LogicalPlan) changed.makeCopy(all);
    }

    /** Returns whether a plan, or a subquery in it, reads the table at a path. */
    public static boolean reads(LogicalPlan plan, String path) {
        Readers readers = new Readers(path);
        plan.transformDownWithSubqueries(readers);
        return readers.found;
    }

    static class Readers extends scala.runtime.AbstractPartialFunction {
        final String path;
        boolean found = false;

        Readers(String path) {
            this.path = path;
        }

        public boolean isDefinedAt(Object node) {
            boolean isRelation = node instanceof DataSourceV2Relation || node instanceof DataSourceV2ScanRelation;
            HudiTable table = isRelation ? tableOf((LogicalPlan) node) : null;
            found = found || (table != null && path.equals(table.path()));
            return false;
        }

        public Object applyOrElse(Object node, scala.Function1 otherwise) {
            isDefinedAt(node);
            return otherwise.apply(node);
        }
    }
}
