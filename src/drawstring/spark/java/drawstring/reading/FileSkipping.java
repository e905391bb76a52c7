package drawstring.reading;

import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.function.Function;
import org.apache.hadoop.fs.Path;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogStorageFormat$;
import org.apache.spark.sql.catalyst.catalog.CatalogTable$;
import org.apache.spark.sql.catalyst.catalog.CatalogTableType$;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.AttributeSet$;
import org.apache.spark.sql.catalyst.expressions.DynamicPruningSubquery;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.SupportsRuntimeV2Filtering;
import org.apache.spark.sql.execution.datasources.DataSourceStrategy$;
import org.apache.spark.sql.execution.datasources.FileStatusCache;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.InMemoryFileIndex;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.PartitionPath;
import org.apache.spark.sql.execution.datasources.PartitionSpec;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Strategy$;
import org.apache.spark.sql.types.StructType;
import scala.None$;
import scala.Option;
import scala.Some;
import scala.collection.immutable.Map;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractPartialFunction;

/** An optimizer rule that narrows relations of base files to the files that their conditions need. */
public class FileSkipping extends Rule {
    /** Returns an index of files in a cache; `needed` tells which of them conditions need, null for none. */
    public Object index(
            SparkSession spark, Seq paths, FileStatusCache cache, PartitionSpec folders, Function needed) {
        return new DrawstringFileIndex(spark, paths, cache, folders, needed);
    }

    public TreeNode apply(TreeNode plan) {
        return ((LogicalPlan) plan).transformDown(new Unpruned()).transformDown(new Narrowing());
    }

    /**
     * Removes dynamic pruning from filters whose relation is not partitioned by the column.
     *
     * Spark pushes it into all relations of a union if one of them can use it, and the workers lack its values.
     */
    static class Unpruned extends AbstractPartialFunction {
        public boolean isDefinedAt(Object node) {
            return node instanceof Filter && without((Filter) node) != null;
        }

        public Object applyOrElse(Object node, scala.Function1 otherwise) {
            LogicalPlan left = node instanceof Filter ? without((Filter) node) : null;
            return left == null ? otherwise.apply(node) : left;
        }
    }

    /** Returns a filter without dynamic pruning that cannot be used; null if there is none. */
    static LogicalPlan without(Filter filter) {
        ArrayList kept = new ArrayList();
        boolean isLess = split(filter.condition(), filter.child(), kept);
        if (!isLess) {
            return null;
        }
        Expression condition = null;
        for (int n = 0; n < kept.size(); n++) {
            Expression next = (Expression) kept.get(n);
            condition = condition == null ? next : new And(condition, next);
        }
        return condition == null ? filter.child() : new Filter(condition, filter.child());
    }

    /** Adds the parts of a conjunction that stay, and returns whether others do not. */
    static boolean split(Expression condition, LogicalPlan child, ArrayList kept) {
        if (condition instanceof And) {
            boolean isLess = split((Expression) condition.children().apply(0), child, kept);
            return split((Expression) condition.children().apply(1), child, kept) || isLess;
        }
        if (condition instanceof DynamicPruningSubquery
                && isUseless((DynamicPruningSubquery) condition, child)) {
            return true;
        }
        kept.add(condition);
        return false;
    }

    static boolean isUseless(DynamicPruningSubquery pruning, LogicalPlan child) {
        if (child instanceof Project || child instanceof Filter) {
            return isUseless(pruning, (LogicalPlan) child.children().apply(0));
        }
        if (child instanceof DataSourceV2ScanRelation) {
            return !(((DataSourceV2ScanRelation) child).scan() instanceof SupportsRuntimeV2Filtering);
        }
        Object files = child instanceof LogicalRelation ? ((LogicalRelation) child).relation() : null;
        if (!(files instanceof HadoopFsRelation)
                || !(((HadoopFsRelation) files).location() instanceof DrawstringFileIndex)) {
            return false;
        }
        StructType columns = ((HadoopFsRelation) files).partitionSchema();
        AttributeSet partitioned = AttributeSet$.MODULE$.empty();
        for (int n = 0; n < child.output().length(); n++) {
            Attribute column = (Attribute) child.output().apply(n);
            if (columns.getFieldIndex(column.name()).isDefined()) {
                partitioned = partitioned.$plus$plus(column.references());
            }
        }
        return !pruning.pruningKey().references().subsetOf(partitioned);
    }

    static class DrawstringFileIndex extends InMemoryFileIndex {
        final SparkSession spark;
        final Seq paths;
        final FileStatusCache cache;
        final PartitionSpec folders;
        final Function needed;

        DrawstringFileIndex(
                SparkSession spark, Seq paths, FileStatusCache cache, PartitionSpec folders,
                Function needed) {
            super(spark, paths, (Map) Map$.MODULE$.empty(), (Option) None$.MODULE$, cache, new Some(folders),
                (Option) None$.MODULE$);
            this.spark = spark;
            this.paths = paths;
            this.cache = cache;
            this.folders = folders;
            this.needed = needed;
        }

        /** Returns the index of some of the files, which narrows no further. */
        DrawstringFileIndex of(String[] positions) {
            ArrayList kept = new ArrayList(), left = new ArrayList();
            HashSet parents = new HashSet();
            for (int n = 0; n < positions.length; n++) {
                Path path = (Path) paths.apply(Integer.parseInt(positions[n]));
                kept.add(path);
                parents.add(path.getParent());
            }
            for (int n = 0; n < folders.partitions().length(); n++) {
                PartitionPath folder = (PartitionPath) folders.partitions().apply(n);
                if (parents.contains(folder.path())) {
                    left.add(folder);
                }
            }
            PartitionSpec spec = new PartitionSpec(folders.partitionColumns(), PythonUtils.toSeq(left));
            return new DrawstringFileIndex(spark, PythonUtils.toSeq(kept), cache, spec, null);
        }
    }

    static class Narrowing extends AbstractPartialFunction {
        public boolean isDefinedAt(Object node) {
            return indexOf(node) != null;
        }

        public Object applyOrElse(Object node, scala.Function1 otherwise) {
            if (indexOf(node) == null) {
                return otherwise.apply(node);
            }
            try {
                return narrowed((Filter) node, indexOf(node));
            } catch (Exception error) {
                throw new IllegalStateException(error);
            }
        }
    }

    static DrawstringFileIndex indexOf(Object node) {
        if (!(node instanceof Filter) || !(((Filter) node).child() instanceof LogicalRelation)) {
            return null;
        }
        Object files = ((LogicalRelation) ((Filter) node).child()).relation();
        Object index = files instanceof HadoopFsRelation ? ((HadoopFsRelation) files).location() : null;
        boolean isOpen = index instanceof DrawstringFileIndex && ((DrawstringFileIndex) index).needed != null;
        return isOpen ? (DrawstringFileIndex) index : null;
    }

    static Object narrowed(Filter filter, DrawstringFileIndex index) throws Exception {
        LogicalRelation relation = (LogicalRelation) filter.child();
        ArrayList found = new ArrayList();
        translate(filter.condition(), relation.output(), found);
        Predicate[] predicates = (Predicate[]) found.toArray(new Predicate[0]);
        String[] answer = ((String) index.needed.apply(predicates)).split("\n", 2);
        String[] positions = answer[0].isEmpty() ? new String[0] : answer[0].split(",");
        HadoopFsRelation all = (HadoopFsRelation) relation.relation();
        HadoopFsRelation some = new HadoopFsRelation(index.of(positions), all.partitionSchema(),
            all.dataSchema(), all.bucketSpec(), all.fileFormat(), all.options(), all.sparkSession());
        Object plan = copied(relation, some, new Some(named(answer[1])));
        return filter.withNewChildren((Seq) Nil$.MODULE$.$colon$colon(plan));
    }

    /** Adds the parts of a conjunction that are predicates of data sources. */
    static void translate(Expression condition, Seq columns, ArrayList found) {
        if (condition instanceof And) {
            translate((Expression) condition.children().apply(0), columns, found);
            translate((Expression) condition.children().apply(1), columns, found);
            return;
        }
        Seq only = (Seq) Nil$.MODULE$.$colon$colon(condition);
        Object normal = DataSourceStrategy$.MODULE$.normalizeExprs(only, columns).head();
        Option predicate = DataSourceV2Strategy$.MODULE$.translateFilterV2((Expression) normal);
        Object added = predicate.isDefined() ? predicate.get() : ParsedDates.of((Expression) normal);
        if (added != null) {
            found.add(added);
        }
    }

    static Object copied(LogicalRelation relation, Object files, Object table) throws Exception {
        Method[] methods = relation.getClass().getMethods();
        Method copy = null;
        for (int n = 0; n < methods.length; n++) {
            copy = methods[n].getName().equals("copy") ? methods[n] : copy;
        }
        Object[] all = new Object[copy.getParameterCount()];
        for (int n = 0; n < all.length; n++) {
            all[n] = relation.getClass().getMethod("copy$default$" + (n + 1)).invoke(relation);
        }
        all[0] = files;
        all[2] = table;
        return copy.invoke(relation, all);
    }

    static Object named(String description) throws Exception {
        Object[] first = new Object[] {
            new TableIdentifier(description), CatalogTableType$.MODULE$.EXTERNAL(),
            CatalogStorageFormat$.MODULE$.empty(), new StructType()
        };
        return CaseClasses.create(CatalogTable$.MODULE$, first, null);
    }

}
