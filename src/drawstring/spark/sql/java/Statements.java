package drawstring.sql;

import java.lang.reflect.Constructor;
import java.util.HashSet;
import java.util.Set;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OverwritePartitionsDynamic;
import org.apache.spark.sql.catalyst.plans.logical.WriteDelta;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.sql.connector.catalog.TruncatableTable;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.execution.datasources.v2.TruncateTableExec;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;

/** The strategy of Spark's planner for statements that Spark leaves to tables of other kinds. */
public class Statements extends SparkStrategy {
    public Seq apply(LogicalPlan plan) {
        Runnable action = action(plan);
        return action == null ? (Seq) Nil$.MODULE$ : (Seq) Nil$.MODULE$.$colon$colon(command(action));
    }

    private static Runnable action(LogicalPlan plan) {
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
            Dataset rows = (Dataset) Dataset$.MODULE$.ofRows(Calls.session(), delta.query());
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
