package drawstring.sql;

import java.lang.reflect.Constructor;
import java.util.HashSet;
import java.util.Set;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.LeftAnti$;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OverwritePartitionsDynamic;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.catalyst.plans.logical.WriteDelta;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.sql.connector.catalog.TruncatableTable;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.execution.datasources.v2.TruncateTableExec;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Option;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;

/** The strategy of Spark's planner for statements that Spark leaves to tables of other kinds. */
public class Statements extends SparkStrategy {
    public Seq apply(LogicalPlan plan) {
        Runnable action = action(plan);
        return action == null ? (Seq) Nil$.MODULE$ : (Seq) Nil$.MODULE$.$colon$colon(command(action));
    }

    private static Runnable action(LogicalPlan plan) {
        if (plan instanceof V2WriteCommand && !(plan instanceof OverwritePartitionsDynamic)) {
            HudiTable.Writing write = (HudiTable.Writing) among(plan, HudiTable.Writing.class);
            LogicalPlan query = (LogicalPlan) among(plan, LogicalPlan.class);
            if (write != null && query != null && isMerge(query, (LogicalPlan) plan.productElement(0))) {
                write.how.put("mode", "new");
                return new Insert(write, query);
            }
        }
        if (plan instanceof OverwritePartitionsDynamic) {
            OverwritePartitionsDynamic overwrite = (OverwritePartitionsDynamic) plan;
            Object write = overwrite.write().isEmpty() ? null : overwrite.write().get();
            if (write instanceof HudiTable.Writing) {
                return new Insert((HudiTable.Writing) write, overwrite.query());
            }
        }
        if (plan instanceof WriteDelta) {
            WriteDelta delta = (WriteDelta) plan;
            Object write = delta.write().isEmpty() ? null : delta.write().get();
            return write instanceof RowChanges.Write ? new Change((RowChanges.Write) write, delta) : null;
        }
        return null;
    }

    /** Returns what an optional argument of a plan has, if it is of a class; null if none is. */
    private static Object among(LogicalPlan plan, Class kind) {
        for (int n = 0; n < plan.productArity(); n++) {
            Object each = plan.productElement(n);
            Object found = each instanceof Option && !((Option) each).isEmpty() ? ((Option) each).get() : null;
            if (kind.isInstance(found)) {
                return found;
            }
        }
        return null;
    }

    /** Returns whether Spark made a query of a MERGE that only inserts: its rows join no row of the table. */
    private static boolean isMerge(LogicalPlan query, LogicalPlan table) {
        LogicalPlan plan = query;
        while (plan instanceof Project) {
            plan = ((Project) plan).child();
        }
        if (!(plan instanceof Join) || !((Join) plan).joinType().equals(LeftAnti$.MODULE$)) {
            return false;
        }
        Seq columns = ((LogicalPlan) ((Join) plan).right()).output();
        return columns.length() > 0 && table.outputSet().contains((NamedExpression) columns.head());
    }

    /** Returns the physical plan that runs an action: Spark's own for commands without rows. */
    private static Object command(Runnable action) {
        Constructor create = TruncateTableExec.class.getConstructors()[0];
        Object[] all = new Object[create.getParameterTypes().length];
        all[0] = new Command(action);
        all[1] = new Nothing();
        for (int n = 2; n < all.length; n++) {
            all[n] = CaseInsensitiveStringMap.empty();
        }
        try {
            return create.newInstance(all);
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }

    static class Insert implements Runnable {
        final HudiTable.Writing writing;
        final LogicalPlan query;

        Insert(HudiTable.Writing writing, LogicalPlan query) {
            this.writing = writing;
            this.query = query;
        }

        public void run() {
            writing.insert((Dataset) Dataset$.MODULE$.ofRows(Calls.session(), query), true);
        }
    }

    static class Change implements Runnable {
        final RowChanges.Write write;
        final WriteDelta delta;

        Change(RowChanges.Write write, WriteDelta delta) {
            this.write = write;
            this.delta = delta;
        }

        public void run() {
            LogicalPlan query = write.decides() ? Plans.withRepeated(delta.query()) : delta.query();
            Dataset rows = (Dataset) Dataset$.MODULE$.ofRows(Calls.session(), query);
            write.run(rows, Plans.equalled(delta.condition(), ((LogicalPlan) delta.originalTable()).output()));
        }
    }

    static class Command implements TruncatableTable {
        final Runnable action;

        Command(Runnable action) {
            this.action = action;
        }

        public String name() {
            return action.toString();
        }

        public StructType schema() {
            return new StructType();
        }

        public Set capabilities() {
            return new HashSet();
        }

        public boolean truncateTable() {
            action.run();
            return true;
        }
    }

    static class Nothing extends scala.runtime.AbstractFunction0 {
        public Object apply() {
            return scala.runtime.BoxedUnit.UNIT;
        }
    }
}
