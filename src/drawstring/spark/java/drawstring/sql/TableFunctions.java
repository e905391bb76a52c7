package drawstring.sql;

import java.util.ArrayList;
import java.util.HashMap;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import scala.collection.immutable.Seq;

/** A table-valued function: the plan of its rows is Python's, for arguments that are constants. */
public class TableFunctions extends scala.runtime.AbstractFunction1 {
    final String name;

    TableFunctions(String name) {
        this.name = name;
    }

    /** Gives a session the functions. */
    public static void register(SparkSession session, ArrayList names) {
        for (int n = 0; n < names.size(); n++) {
            String name = (String) names.get(n);
            session.sessionState().tableFunctionRegistry()
                .createOrReplaceTempFunction(name, new TableFunctions(name), "scala_udf");
        }
    }

    public Object apply(Object arguments) {
        Seq expressions = (Seq) arguments;
        ArrayList values = new ArrayList();
        for (int n = 0; n < expressions.length(); n++) {
            Object value = ((Expression) expressions.apply(n)).eval(null);
            values.add(value == null ? null : value.toString());
        }
        HashMap asked = new HashMap();
        asked.put("name", name);
        asked.put("values", values);
        return (LogicalPlan) Calls.ask(
            HudiCatalog.peer, "function", new Object[] {Calls.json(asked), Calls.session()});
    }
}
