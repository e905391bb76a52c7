package drawstring.sql;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.catalyst.analysis.NameParameterizedQuery;
import org.apache.spark.sql.catalyst.analysis.PosParameterizedQuery;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;

/** Parameters of statements: columns by name (:name), or a list of them (?). */
class Parameters {
    /** Returns the plan of a statement; Spark 4.1 and later take parameters in the place of any literal. */
    static LogicalPlan parsed(SparkSession session, String text, Object parameters) throws Exception {
        ParserInterface parser = session.sessionState().sqlParser();
        Method[] methods = ParserInterface.class.getMethods();
        for (int n = 0; n < methods.length; n++) {
            if (methods[n].getName().equals("parsePlanWithParameters")) {
                try {
                    return (LogicalPlan) methods[n].invoke(parser, new Object[] {text, context(session, parameters)});
                } catch (InvocationTargetException error) {
                    return parser.parsePlan(text);
                }
            }
        }
        return parser.parsePlan(text);
    }

    private static Object context(SparkSession session, Object parameters) throws Exception {
        boolean isNamed = parameters instanceof Map;
        Object values = isNamed ? PythonUtils.toScalaMap(named(session, (Map) parameters))
            : PythonUtils.toSeq(listed(session, (List) parameters));
        return Class.forName("org.apache.spark.sql.catalyst.parser."
            + (isNamed ? "NamedParameterContext" : "PositionalParameterContext"))
            .getConstructors()[0].newInstance(new Object[] {values});
    }

    private static LinkedHashMap named(SparkSession session, Map parameters) {
        LinkedHashMap values = new LinkedHashMap();
        Iterator all = parameters.entrySet().iterator();
        while (all.hasNext()) {
            Map.Entry each = (Map.Entry) all.next();
            values.put(each.getKey(), session.expression((Column) each.getValue()));
        }
        return values;
    }

    private static ArrayList listed(SparkSession session, List parameters) {
        ArrayList values = new ArrayList();
        Iterator all = parameters.iterator();
        while (all.hasNext()) {
            values.add(session.expression((Column) all.next()));
        }
        return values;
    }

    /** Returns a plan whose parameters have their values. */
    static LogicalPlan bound(SparkSession session, LogicalPlan plan, Object parameters) {
        if (parameters instanceof Map) {
            LinkedHashMap named = named(session, (Map) parameters);
            return named.isEmpty() ? plan : new NameParameterizedQuery(plan,
                PythonUtils.toSeq(new ArrayList(named.keySet())), PythonUtils.toSeq(new ArrayList(named.values())));
        }
        ArrayList listed = listed(session, (List) parameters);
        return listed.isEmpty() ? plan : new PosParameterizedQuery(plan, PythonUtils.toSeq(listed));
    }
}
