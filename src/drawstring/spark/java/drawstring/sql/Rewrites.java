package drawstring.sql;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute;
import org.apache.spark.sql.catalyst.analysis.UnresolvedPartitionSpec;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.expressions.Cast$;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Assignment;
import org.apache.spark.sql.catalyst.plans.logical.InsertAction;
import org.apache.spark.sql.catalyst.plans.logical.InsertIntoStatement;
import org.apache.spark.sql.catalyst.plans.logical.InsertStarAction;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.ShowPartitions;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias$;
import org.apache.spark.sql.catalyst.plans.logical.UnresolvedWith;
import org.apache.spark.sql.catalyst.plans.logical.UpdateAction;
import org.apache.spark.sql.catalyst.plans.logical.UpdateStarAction;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Option;
import scala.Tuple2;
import scala.collection.immutable.Seq;

/** Statements that mean something else to Hudi than to Spark, changed before Spark resolves them. */
public class Rewrites {
    /**
     * Runs an INSERT of a query, by name if its columns have the names of the table's; null for others.
     *
     * The table is opened once. Several INSERTs of the same rows go by position, as in Hudi.
     */
    public static Dataset inserted(SparkSession session, String text, Object parameters, boolean casts)
            throws Exception {
        LogicalPlan parsed = Parameters.parsed(session, text, parameters);
        boolean isWith = parsed instanceof UnresolvedWith;
        Object inner = isWith ? ((UnresolvedWith) parsed).child() : parsed;
        if (!(inner instanceof InsertIntoStatement)) {
            return null;
        }
        InsertIntoStatement insert = (InsertIntoStatement) inner;
        LogicalPlan query = insert.query();
        boolean isOfValues = query.getClass().getSimpleName().endsWith("InlineTable");
        if (insert.byName() || !insert.userSpecifiedCols().isEmpty() || (isOfValues && !casts)) {
            return null;
        }
        LogicalPlan relation = analyzed(rows(session, Parameters.bound(session, insert.table(), parameters)));
        while (relation instanceof SubqueryAlias) {
            relation = ((SubqueryAlias) relation).child();
        }
        if (!(relation instanceof DataSourceV2Relation)
                || !(((DataSourceV2Relation) relation).table() instanceof HudiTable)) {
            return null;
        }
        Dataset rows = rows(session, Parameters.bound(
            session, isWith ? (LogicalPlan) copy((UnresolvedWith) parsed, 0, query) : query, parameters));
        if (rows == null) {
            return null;
        }
        StructType wanted = ((HudiTable) ((DataSourceV2Relation) relation).table()).schema();
        Dataset ordered = ordered(rows, filled(wanted, insert.partitionSpec()), casts);
        LogicalPlan changed = child(insert, analyzed(ordered == null ? rows : ordered));
        return Dataset$.MODULE$.ofRows(session, (LogicalPlan) copy(changed, 0, relation));
    }

    /** Returns the values of PARTITION in a SHOW PARTITIONS, as JSON. */
    public static String partitionSpec(SparkSession session, String text, Object parameters) throws Exception {
        HashMap values = new HashMap();
        LogicalPlan parsed = Parameters.parsed(session, text, parameters);
        Option given = ((ShowPartitions) parsed).pattern();
        if (!given.isEmpty()) {
            scala.collection.Iterator all = ((UnresolvedPartitionSpec) given.get()).spec().iterator();
            while (all.hasNext()) {
                Tuple2 each = (Tuple2) all.next();
                values.put(each._1(), each._2());
            }
        }
        return Calls.json(values);
    }

    /** Returns the plan of rows, null for no rows. */
    private static LogicalPlan analyzed(Dataset rows) {
        return rows == null ? null : ((org.apache.spark.sql.classic.Dataset) rows).queryExecution().analyzed();
    }

    /** Returns rows whose columns have the names of a table's in its order; null if they are, or differ. */
    public static Dataset ordered(SparkSession session, Dataset rows, String name) throws Exception {
        HudiTable table = of(session, new UnresolvedRelation(
            session.sessionState().sqlParser().parseMultipartIdentifier(name), CaseInsensitiveStringMap.empty(), false));
        return table == null ? null : ordered(rows, table.schema(), false);
    }

    private static Dataset ordered(Dataset rows, StructType wanted, boolean casts) {
        Column[] columns = columns(rows.schema(), wanted, casts);
        return columns == null ? null : rows.select(PythonUtils.toSeq(list(columns)));
    }

    /** Runs an UPDATE or MERGE whose values are cast to the types of the columns; null for other statements. */
    public static Dataset cast(SparkSession session, String text, Object parameters) throws Exception {
        LogicalPlan parsed = Parameters.parsed(session, text, parameters);
        if (parsed instanceof UpdateTable) {
            UpdateTable update = (UpdateTable) parsed;
            HudiTable table = of(session, update.table());
            return table == null ? null : Dataset$.MODULE$.ofRows(session, Parameters.bound(session, (LogicalPlan) copy(
                update, 1, cast(update.assignments(), table.schema(), name(update.table()))), parameters));
        }
        if (!(parsed instanceof MergeIntoTable)) {
            return null;
        }
        MergeIntoTable merge = (MergeIntoTable) parsed;
        HudiTable table = of(session, merge.targetTable());
        if (table == null) {
            return null;
        }
        LogicalPlan source = merge.sourceTable();
        if (name(source) == null) {
            source = SubqueryAlias$.MODULE$.apply("_source", source);
        }
        TreeNode changed = copy(merge, 1, source);
        for (int n = 3; n < 6; n++) {
            Seq actions = (Seq) merge.productElement(n);
            ArrayList cast = new ArrayList();
            for (int a = 0; a < actions.length(); a++) {
                cast.add(action(actions.apply(a), table.schema(), name(merge.targetTable()), name(source)));
            }
            changed = copy(changed, n, PythonUtils.toSeq(cast));
        }
        return Dataset$.MODULE$.ofRows(session, Parameters.bound(session, (LogicalPlan) changed, parameters));
    }

    private static Object action(Object action, StructType schema, String target, String source) {
        if (action instanceof UpdateAction) {
            return copy((TreeNode) action, 1, cast(((UpdateAction) action).assignments(), schema, target));
        }
        if (action instanceof InsertAction) {
            return copy((TreeNode) action, 1, cast(((InsertAction) action).assignments(), schema, target));
        }
        ArrayList all = new ArrayList();
        for (int n = 0; n < schema.length(); n++) {
            StructField field = schema.apply(n);
            Expression value = attribute(new String[] {source, field.name()});
            all.add(new Assignment(attribute(new String[] {field.name()}), cast(value, field)));
        }
        if (action instanceof UpdateStarAction) {
            return updating(((UpdateStarAction) action).condition(), PythonUtils.toSeq(all));
        }
        if (action instanceof InsertStarAction) {
            return new InsertAction(((InsertStarAction) action).condition(), PythonUtils.toSeq(all));
        }
        return action;
    }

    private static Object updating(Option condition, Seq assignments) {
        Object[] all = new Object[UpdateAction.class.getConstructors()[0].getParameterCount()];
        all[0] = condition;
        all[1] = assignments;
        for (int n = 2; n < all.length; n++) {
            all[n] = Boolean.FALSE;
        }
        try {
            return UpdateAction.class.getConstructors()[0].newInstance(all);
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }

    private static Seq cast(Seq assignments, StructType schema, String table) {
        ArrayList all = new ArrayList();
        for (int n = 0; n < assignments.length(); n++) {
            Assignment each = (Assignment) assignments.apply(n);
            StructField field = field(each.key(), schema, table);
            boolean isDefault = each.value() instanceof UnresolvedAttribute
                && ((UnresolvedAttribute) each.value()).name().equalsIgnoreCase("DEFAULT");
            all.add(field == null || isDefault ? each : new Assignment(each.key(), cast(each.value(), field)));
        }
        return PythonUtils.toSeq(all);
    }

    private static Expression cast(Expression value, StructField field) {
        return Cast$.MODULE$.apply(value, field.dataType(), true);
    }

    private static Expression attribute(String[] parts) {
        ArrayList all = new ArrayList();
        for (int n = 0; n < parts.length; n++) {
            all.add(parts[n]);
        }
        return new UnresolvedAttribute(PythonUtils.toSeq(all));
    }

    /** Returns the column that an assignment sets, null if it sets a field inside of one. */
    private static StructField field(Expression key, StructType schema, String table) {
        if (!(key instanceof UnresolvedAttribute)) {
            return null;
        }
        Seq parts = ((UnresolvedAttribute) key).nameParts();
        boolean isOfTable = parts.length() == 2 && ((String) parts.head()).equalsIgnoreCase(table);
        for (int n = 0; n < schema.length() && (parts.length() == 1 || isOfTable); n++) {
            if (schema.apply(n).name().equalsIgnoreCase((String) parts.last())) {
                return schema.apply(n);
            }
        }
        return null;
    }

    /** Returns the columns of a query in the order of a table; null if they are, or their names differ. */
    private static Column[] columns(StructType given, StructType wanted, boolean casts) {
        if (given.length() != wanted.length()) {
            return null;
        }
        HashMap named = new HashMap();
        HashSet names = new HashSet();
        boolean isInOrder = true;
        for (int n = 0; n < given.length(); n++) {
            named.put(given.apply(n).name().toLowerCase(), Integer.valueOf(n));
            names.add(wanted.apply(n).name().toLowerCase());
            isInOrder = isInOrder && given.apply(n).name().equalsIgnoreCase(wanted.apply(n).name());
        }
        boolean isByName = named.keySet().equals(names) && !isInOrder;
        if (!isByName && !casts) {
            return null;
        }
        Column[] columns = new Column[wanted.length()];
        for (int n = 0; n < columns.length; n++) {
            StructField field = wanted.apply(n);
            Object at = isByName ? named.get(field.name().toLowerCase()) : Integer.valueOf(n);
            Column column = functions.col("`" + given.apply(((Integer) at).intValue()).name().replace("`", "``") + "`");
            columns[n] = (casts ? column.cast(field.dataType()) : column).as(field.name());
        }
        return columns;
    }

    /** Returns the columns that a query has to fill: all but those of partitions that have a value. */
    private static StructType filled(StructType schema, scala.collection.immutable.Map partitions) {
        HashSet given = new HashSet();
        scala.collection.Iterator all = partitions.iterator();
        while (all.hasNext()) {
            scala.Tuple2 each = (scala.Tuple2) all.next();
            if (!((Option) each._2()).isEmpty()) {
                given.add(((String) each._1()).toLowerCase());
            }
        }
        StructType filled = new StructType();
        for (int n = 0; n < schema.length(); n++) {
            if (!given.contains(schema.apply(n).name().toLowerCase())) {
                filled = filled.add(schema.apply(n));
            }
        }
        return filled;
    }

    private static ArrayList list(Object[] all) {
        ArrayList list = new ArrayList();
        for (int n = 0; n < all.length; n++) {
            list.add(all[n]);
        }
        return list;
    }

    /** Returns the rows of a query, null if it is wrong: then Spark says so about the whole statement. */
    private static Dataset rows(SparkSession session, LogicalPlan query) {
        try {
            return Dataset$.MODULE$.ofRows(session, query);
        } catch (Exception error) {
            return null;
        }
    }

    private static LogicalPlan child(InsertIntoStatement insert, LogicalPlan query) {
        for (int n = 0; n < insert.productArity(); n++) {
            if (insert.productElement(n) == insert.query()) {
                return (LogicalPlan) copy(insert, n, query);
            }
        }
        throw new IllegalStateException("An INSERT without a query.");
    }

    /** Returns a copy of a node with another argument. */
    private static TreeNode copy(TreeNode node, int number, Object value) {
        Object[] all = new Object[node.productArity()];
        for (int n = 0; n < all.length; n++) {
            all[n] = n == number ? value : node.productElement(n);
        }
        return (TreeNode) node.makeCopy(all);
    }

    /** Returns the name by which columns of a relation are called, null if it has none. */
    private static String name(LogicalPlan plan) {
        if (plan instanceof SubqueryAlias) {
            return ((SubqueryAlias) plan).alias();
        }
        return plan instanceof UnresolvedRelation
            ? (String) ((UnresolvedRelation) plan).multipartIdentifier().last() : null;
    }

    /** Returns the table of Hudi that a statement names, null if it is another one. */
    private static HudiTable of(SparkSession session, LogicalPlan plan) {
        if (plan instanceof SubqueryAlias) {
            return of(session, ((SubqueryAlias) plan).child());
        }
        if (!(plan instanceof UnresolvedRelation)) {
            return null;
        }
        Seq parts = ((UnresolvedRelation) plan).multipartIdentifier();
        int size = parts.length();
        if (size > 3 || (size == 3 && !parts.head().equals("spark_catalog"))) {
            return null;
        }
        Object database = size > 1 ? parts.apply(size - 2) : session.sessionState().catalog().getCurrentDatabase();
        return HudiCatalog.found(Identifier.of(new String[] {(String) database}, (String) parts.last()), null);
    }
}
