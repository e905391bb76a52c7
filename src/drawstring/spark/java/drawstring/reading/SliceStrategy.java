package drawstring.reading;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.function.Function;
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
import scala.Function2;
import scala.None$;
import scala.Option;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;

/** Plans scans of file slices as `mapInArrow`, and describes the predicates that Spark pushes down. */
public class SliceStrategy extends SparkStrategy {
    public Seq apply(LogicalPlan plan) {
        LogicalPlan planned = planned(plan);
        return planned == null ? (Seq) Nil$.MODULE$ : listOf(planLater(planned));
    }

    public LogicalPlan reading(UserDefinedPythonFunction function, int parts, Seq columns) {
        Range numbers = Range$.MODULE$.apply(0L, (long) parts, 1L, Math.max(parts, 1));
        Option none = (Option) None$.MODULE$;
        return new MapInArrow(function.builder((Seq) numbers.output()), columns, numbers, false, none);
    }

    public String described(Predicate[] predicates) throws Exception {
        return new ObjectMapper().writeValueAsString(treesOf(predicates));
    }

    public String parsedDates(org.apache.spark.sql.catalyst.expressions.Expression condition)
            throws Exception {
        ArrayList found = new ArrayList();
        addParsedDates(condition, found);
        return described((Predicate[]) found.toArray(new Predicate[0]));
    }

    private static void addParsedDates(
            org.apache.spark.sql.catalyst.expressions.Expression condition, ArrayList found) {
        if (condition instanceof And) {
            addParsedDates(((And) condition).left(), found);
            addParsedDates(((And) condition).right(), found);
        } else if (ParsedDates.of(condition) != null) {
            found.add(ParsedDates.of(condition));
        }
    }

    private static ArrayList treesOf(Expression[] expressions) {
        ArrayList trees = new ArrayList();
        for (int n = 0; n < expressions.length; n++) {
            Expression each = expressions[n];
            HashMap tree = new HashMap();
            if (each instanceof NamedReference) {
                tree.put("column", ((NamedReference) each).fieldNames());
            } else if (each instanceof Literal) {
                Object value = ((Literal) each).value();
                tree.put("type", ((Literal) each).dataType().simpleString());
                tree.put("value", value == null ? null : value.toString());
            } else if (each instanceof Cast) {
                tree.put("name", "CAST");
                tree.put("to", ((Cast) each).dataType().simpleString());
                tree.put("of", treesOf(each.children()));
            } else if (each instanceof Extract) {
                tree.put("name", ((Extract) each).field());
                tree.put("of", treesOf(each.children()));
            } else if (each instanceof GeneralScalarExpression) {
                tree.put("name", ((GeneralScalarExpression) each).name());
                tree.put("of", treesOf(each.children()));
            }
            trees.add(tree);
        }
        return trees;
    }

    private static LogicalPlan planned(LogicalPlan plan) {
        if (plan instanceof DataSourceV2ScanRelation) {
            Object scan = ((DataSourceV2ScanRelation) plan).scan();
            return scan instanceof Function ? (LogicalPlan) ((Function) scan).apply(plan) : null;
        }
        if (!(plan instanceof Project || plan instanceof Filter)) {
            return null;
        }
        LogicalPlan below = (LogicalPlan) plan.children().head();
        boolean isScan = below instanceof DataSourceV2ScanRelation;
        Object scan = isScan ? ((DataSourceV2ScanRelation) below).scan() : null;
        boolean takesFilter = plan instanceof Filter && scan instanceof Function2;
        LogicalPlan child = takesFilter
            ? (LogicalPlan) ((Function2) scan).apply(below, ((Filter) plan).condition())
            : planned(below);
        return child == null ? null : (LogicalPlan) plan.withNewChildren(listOf(child));
    }

    private static Seq listOf(Object only) {
        return Nil$.MODULE$.$colon$colon(only);
    }
}
