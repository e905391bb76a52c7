package drawstring.sql;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.function.BiFunction;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.classic.SparkSession$;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.unsafe.Platform;

/** Calls of Python objects on the driver, which answer with texts, plans, or the exception to throw. */
public class Calls {
    public static Object ask(BiFunction peer, String what, Object given) {
        Object answer = peer.apply(what, given);
        if (answer instanceof Throwable) {
            Platform.throwException((Throwable) answer);
        }
        return answer;
    }

    public static Map map(Object json) {
        return (Map) read(json, Map.class);
    }

    public static List list(Object json) {
        return (List) read(json, List.class);
    }

    private static Object read(Object json, Class kind) {
        try {
            return new ObjectMapper().readValue((String) json, kind);
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }

    public static String json(Object value) {
        try {
            return new ObjectMapper().writeValueAsString(value);
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }

    public static SparkSession session() {
        return (SparkSession) SparkSession$.MODULE$.active();
    }

    /** Returns the settings of a session whose names begin with a prefix, as JSON. */
    public static String settings(SparkSession session, String prefix) {
        HashMap found = new HashMap();
        scala.collection.Iterator all = session.sessionState().conf().getAllConfs().iterator();
        while (all.hasNext()) {
            scala.Tuple2 each = (scala.Tuple2) all.next();
            if (((String) each._1()).startsWith(prefix)) {
                found.put(each._1(), each._2());
            }
        }
        return json(found);
    }

    /** Returns expressions of a data source as trees of columns, values and names with operands. */
    public static ArrayList trees(Expression[] expressions) {
        ArrayList trees = new ArrayList();
        for (int n = 0; expressions != null && n < expressions.length; n++) {
            Expression each = expressions[n];
            HashMap tree = new HashMap();
            if (each instanceof NamedReference) {
                tree.put("column", ((NamedReference) each).fieldNames());
            } else if (each instanceof Literal) {
                Object value = ((Literal) each).value();
                tree.put("type", ((Literal) each).dataType().simpleString());
                tree.put("value", value == null ? null : value.toString());
            } else if (each instanceof Predicate) {
                tree.put("name", ((Predicate) each).name());
                tree.put("of", trees(each.children()));
            }
            trees.add(tree);
        }
        return trees;
    }
}
