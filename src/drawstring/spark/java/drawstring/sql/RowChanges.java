package drawstring.sql;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.DeltaWrite;
import org.apache.spark.sql.connector.write.DeltaWriteBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.RowLevelOperation;
import org.apache.spark.sql.connector.write.RowLevelOperationBuilder;
import org.apache.spark.sql.connector.write.RowLevelOperationInfo;
import org.apache.spark.sql.connector.write.SupportsDelta;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** An UPDATE, DELETE or MERGE INTO: Spark makes the rows of its changes by its own rules. */
public class RowChanges implements SupportsDelta {
    final HudiTable table;
    final RowLevelOperation.Command command;

    RowChanges(HudiTable table, RowLevelOperation.Command command) {
        this.table = table;
        this.command = command;
    }

    public RowLevelOperation.Command command() {
        return command;
    }

    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
        return table.newScanBuilder(options);
    }

    public NamedReference[] rowId() {
        return new NamedReference[] {Expressions.column(HudiTable.RECORD)};
    }

    /** Returns the meta columns, which conditions may name; what no condition names is not read. */
    public NamedReference[] requiredMetadataAttributes() {
        List names = (List) table.facts.get("meta_columns");
        NamedReference[] columns = new NamedReference[names.size()];
        for (int n = 0; n < columns.length; n++) {
            columns[n] = Expressions.column((String) names.get(n));
        }
        return columns;
    }

    public DeltaWriteBuilder newWriteBuilder(LogicalWriteInfo info) {
        HashMap how = new HashMap();
        how.put("command", command.toString());
        how.put("options", info.options().asCaseSensitiveMap());
        return new WriteBuilder(new Write(table, how));
    }

    static class Builder implements RowLevelOperationBuilder {
        final HudiTable table;
        final RowLevelOperationInfo info;

        Builder(HudiTable table, RowLevelOperationInfo info) {
            this.table = table;
            this.info = info;
        }

        public RowLevelOperation build() {
            return new RowChanges(table, info.command());
        }
    }

    static class WriteBuilder implements DeltaWriteBuilder {
        final Write write;

        WriteBuilder(Write write) {
            this.write = write;
        }

        public DeltaWrite build() {
            return write;
        }
    }

    /** The write of the changes in one commit, which a strategy of the planner runs. */
    static class Write implements DeltaWrite {
        final HudiTable table;
        final HashMap how;

        Write(HudiTable table, HashMap how) {
            this.table = table;
            this.how = how;
        }

        /** Returns whether the table decides which of several source rows of a record counts. */
        boolean decides() {
            return Boolean.TRUE.equals(table.facts.get("is_ordered"));
        }

        void run(Dataset rows, ArrayList equalled) {
            how.put("equalled", equalled);
            Calls.ask(table.peer, "change", new Object[] {Calls.json(how), rows});
        }
    }
}
