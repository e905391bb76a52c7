package drawstring.sql;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;
import java.util.function.BiFunction;
import java.util.function.Function;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.analysis.IndexAlreadyExistsException;
import org.apache.spark.sql.catalyst.analysis.NoSuchIndexException;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.catalog.CatalogV2Util;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.connector.catalog.SupportsAtomicPartitionManagement;
import org.apache.spark.sql.connector.catalog.SupportsDeleteV2;
import org.apache.spark.sql.connector.catalog.SupportsMetadataColumns;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsRowLevelOperations;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.index.SupportsIndex;
import org.apache.spark.sql.connector.catalog.index.TableIndex;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.RowLevelOperationBuilder;
import org.apache.spark.sql.connector.write.RowLevelOperationInfo;
import org.apache.spark.sql.connector.write.SupportsDynamicOverwrite;
import org.apache.spark.sql.connector.write.SupportsOverwriteV2;
import org.apache.spark.sql.connector.write.V1Write;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.internal.connector.SupportsPushDownCatalystFilters;
import org.apache.spark.sql.sources.InsertableRelation;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Function2;
import scala.Option;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;

/** A table of the catalog, at the snapshot that it had when a statement was analyzed. */
public class HudiTable
        implements SupportsRead, SupportsWrite, SupportsMetadataColumns, SupportsRowLevelOperations, SupportsDeleteV2,
        SupportsAtomicPartitionManagement, SupportsIndex {
    /** The hidden column that identifies the row of a statement which changes it. */
    static final String RECORD = "_drawstring_record";

    final BiFunction peer;
    final Map facts;

    public HudiTable(BiFunction peer) {
        this.peer = peer;
        this.facts = Calls.map(Calls.ask(peer, "facts", null));
    }

    /** Returns the table for the rows of the query that it was created from; they may have meta columns. */
    HudiTable toFill(Column[] columns, boolean wasThere) {
        facts.put("schema", CatalogV2Util.v2ColumnsToStructType(columns).json());
        facts.put("was_there", Boolean.valueOf(wasThere));
        return this;
    }

    public String path() {
        return (String) facts.get("path");
    }

    public String name() {
        return (String) facts.get("name");
    }

    public StructType schema() {
        return (StructType) DataType.fromJson((String) facts.get("schema"));
    }

    public Transform[] partitioning() {
        List names = (List) facts.get("partitioned_by");
        Transform[] transforms = new Transform[names.size()];
        for (int n = 0; n < transforms.length; n++) {
            transforms[n] = Expressions.identity((String) names.get(n));
        }
        return transforms;
    }

    public Map properties() {
        return (Map) facts.get("properties");
    }

    public Set capabilities() {
        HashSet all = new HashSet();
        all.add(TableCapability.BATCH_READ);
        all.add(TableCapability.V1_BATCH_WRITE);
        all.add(TableCapability.BATCH_WRITE);
        all.add(TableCapability.TRUNCATE);
        all.add(TableCapability.OVERWRITE_BY_FILTER);
        all.add(TableCapability.OVERWRITE_DYNAMIC);
        return all;
    }

    public MetadataColumn[] metadataColumns() {
        List names = (List) facts.get("meta_columns");
        MetadataColumn[] columns = new MetadataColumn[names.size() + 1];
        for (int n = 0; n < names.size(); n++) {
            columns[n] = new MetaColumn((String) names.get(n), DataTypes.StringType);
        }
        columns[names.size()] = new MetaColumn(RECORD, (DataType) DataType.fromJson((String) facts.get("record")));
        return columns;
    }

    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
        return new Reading(this);
    }

    public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
        return new Writing(this, info);
    }

    public RowLevelOperationBuilder newRowLevelOperationBuilder(RowLevelOperationInfo info) {
        return new RowChanges.Builder(this, info);
    }

    public boolean canDeleteWhere(Predicate[] where) {
        return Boolean.TRUE.equals(Calls.ask(peer, "can_drop", Calls.json(Calls.trees(where))));
    }

    public void deleteWhere(Predicate[] where) {
        Calls.ask(peer, "drop", Calls.json(Calls.trees(where)));
    }

    /** TRUNCATE TABLE, which reads no rows: unlike DELETE it does not ask which ones queries show. */
    public boolean truncateTable() {
        Calls.ask(peer, "truncate", "");
        return true;
    }

    public StructType partitionSchema() {
        StructType columns = new StructType();
        List names = (List) facts.get("partitioned_by");
        for (int n = 0; n < names.size(); n++) {
            columns = columns.add(schema().apply((String) names.get(n)));
        }
        return columns;
    }

    public void createPartition(InternalRow values, Map properties) {
        createPartitions(new InternalRow[] {values}, new Map[] {properties});
    }

    public void createPartitions(InternalRow[] rows, Map[] properties) {
        for (int n = 0; n < rows.length; n++) {
            if (properties[n].containsKey("location")) {
                throw new UnsupportedOperationException("A partition has no location of its own: its rows are in"
                    + " the folder of the table. Leave out LOCATION, and write the rows by INSERT.");
            }
        }
        changePartitions("add_partitions", rows);
    }

    public boolean dropPartition(InternalRow values) {
        return dropPartitions(new InternalRow[] {values});
    }

    public boolean dropPartitions(InternalRow[] rows) {
        return changePartitions("drop_partitions", rows);
    }

    public boolean purgePartition(InternalRow values) {
        return dropPartition(values);
    }

    public boolean purgePartitions(InternalRow[] rows) {
        return dropPartitions(rows);
    }

    public boolean truncatePartition(InternalRow values) {
        return dropPartition(values);
    }

    /** Spark calls it for a statement that names some of the partition columns, which Hudi refuses. */
    public boolean truncatePartitions(InternalRow[] rows) {
        throw new UnsupportedOperationException("TRUNCATE TABLE ... PARTITION needs a value of each partition"
            + " column. Give them all, or use DELETE FROM ... WHERE.");
    }

    private boolean changePartitions(String how, InternalRow[] rows) {
        ArrayList texts = new ArrayList();
        for (int n = 0; n < rows.length; n++) {
            texts.add(Rows.texts(rows[n], partitionSchema()));
        }
        return Boolean.TRUE.equals(Calls.ask(peer, how, Calls.json(texts)));
    }

    public void replacePartitionMetadata(InternalRow values, Map properties) {
        throw new UnsupportedOperationException("Partitions of Hudi's tables have no properties.");
    }

    public Map loadPartitionMetadata(InternalRow values) {
        return new HashMap();
    }

    /** Spark asks before it drops or adds a partition. */
    public boolean partitionExists(InternalRow values) {
        String texts = Calls.json(Rows.texts(values, partitionSchema()));
        return Boolean.TRUE.equals(Calls.ask(peer, "has_partition", texts));
    }

    public InternalRow[] listPartitionIdentifiers(String[] names, InternalRow values) {
        StructType given = new StructType();
        for (int n = 0; n < names.length; n++) {
            given = given.add(schema().apply(names[n]));
        }
        HashMap wanted = new HashMap();
        List texts = Rows.texts(values, given);
        for (int n = 0; n < names.length; n++) {
            wanted.put(names[n], texts.get(n));
        }
        return Rows.of(Calls.list(Calls.ask(peer, "partitions", Calls.json(wanted))), partitionSchema());
    }

    public void createIndex(String name, NamedReference[] columns, Map columnProperties, Map properties)
            throws IndexAlreadyExistsException {
        if (indexExists(name)) {
            throw new IndexAlreadyExistsException(name, name(), Option.empty());
        }
        HashMap given = new HashMap(properties);
        given.put("name", name);
        given.put("columns", Calls.trees(columns));
        Calls.ask(peer, "create_index", Calls.json(given));
    }

    public void dropIndex(String name) throws NoSuchIndexException {
        if (!indexExists(name)) {
            throw new NoSuchIndexException(name, name(), Option.empty());
        }
        Calls.ask(peer, "drop_index", name);
    }

    public boolean indexExists(String name) {
        return Boolean.TRUE.equals(Calls.ask(peer, "has_index", name));
    }

    public TableIndex[] listIndexes() {
        return new TableIndex[0];
    }

    /** Equal tables have the same rows, so that Spark caches and exchanges them once. */
    public boolean equals(Object other) {
        return other instanceof HudiTable && facts.get("snapshot").equals(((HudiTable) other).facts.get("snapshot"));
    }

    public int hashCode() {
        return facts.get("snapshot").hashCode();
    }

    public String toString() {
        return name();
    }

    static class MetaColumn implements MetadataColumn {
        final String name;
        final DataType type;

        MetaColumn(String name, DataType type) {
            this.name = name;
            this.type = type;
        }

        public String name() {
            return name;
        }

        public DataType dataType() {
            return type;
        }

        public boolean isNullable() {
            return !name.equals(RECORD);
        }
    }

    /** A read: Spark says which columns and conditions a query has. */
    static class Reading implements SupportsPushDownCatalystFilters, SupportsPushDownRequiredColumns {
        final HudiTable table;
        StructType columns;
        Seq conditions = (Seq) Nil$.MODULE$;

        Reading(HudiTable table) {
            this.table = table;
            this.columns = table.schema();
        }

        /** Keeps whole columns: the plan of the rows narrows them to fields by itself. */
        public void pruneColumns(StructType needed) {
            StructType whole = table.schema();
            columns = new StructType();
            for (int n = 0; n < needed.length(); n++) {
                StructField field = needed.apply(n);
                boolean isStored = whole.getFieldIndex(field.name()).isDefined();
                columns = columns.add(isStored ? whole.apply(field.name()) : field);
            }
        }

        public Seq pushFilters(Seq conditions) {
            this.conditions = conditions;
            return (Seq) Nil$.MODULE$;
        }

        public Predicate[] pushedFilters() {
            return new Predicate[0];
        }

        public Scan build() {
            return new HudiScan(table, columns, conditions);
        }
    }

    /** A scan that a strategy of the planner replaces by the plan of its rows. */
    public static class HudiScan implements SupportsReportStatistics, Function, Function2 {
        final HudiTable table;
        final StructType columns;
        final Seq conditions;

        HudiScan(HudiTable table, StructType columns, Seq conditions) {
            this.table = table;
            this.columns = columns;
            this.conditions = conditions;
        }

        public StructType readSchema() {
            return columns;
        }

        public String description() {
            return table.name() + " " + facts() + " " + conditions.mkString("[", ", ", "]");
        }

        private String facts() {
            return (String) table.facts.get("snapshot");
        }

        public Object apply(Object relation) {
            return Plans.narrowed(rows(), (DataSourceV2ScanRelation) relation, conditions);
        }

        /** Returns the plan of the rows for a filter on the relation, which stays; Spark 4.0 pushes no conditions. */
        public Object apply(Object relation, Object filter) {
            Seq all = Plans.withPlain(conditions, (Expression) filter);
            return Plans.narrowed(rows(), (DataSourceV2ScanRelation) relation, all);
        }

        private LogicalPlan rows() {
            boolean identifies = columns.getFieldIndex(RECORD).isDefined();
            return (LogicalPlan) Calls.ask(table.peer, identifies ? "records" : "rows", null);
        }

        public Statistics estimateStatistics() {
            long bytes = Long.parseLong((String) Calls.ask(table.peer, "size", null));
            int all = Math.max(1, table.schema().fields().length);
            return new Size(bytes * Math.max(1, columns.fields().length) / all);
        }

        public boolean equals(Object other) {
            if (!(other instanceof HudiScan)) {
                return false;
            }
            HudiScan scan = (HudiScan) other;
            return table.equals(scan.table) && columns.equals(scan.columns) && conditions.equals(scan.conditions);
        }

        public int hashCode() {
            return table.hashCode() + 31 * columns.hashCode();
        }
    }

    static class Size implements Statistics {
        final long bytes;

        Size(long bytes) {
            this.bytes = bytes;
        }

        public OptionalLong sizeInBytes() {
            return OptionalLong.of(bytes);
        }

        public OptionalLong numRows() {
            return OptionalLong.empty();
        }
    }

    /** A write of the rows of a query, as one commit. */
    static class Writing implements SupportsOverwriteV2, SupportsDynamicOverwrite, V1Write, InsertableRelation {
        final HudiTable table;
        final HashMap how = new HashMap();

        Writing(HudiTable table, LogicalWriteInfo info) {
            this.table = table;
            Object wasThere = table.facts.get("was_there");
            how.put("mode", wasThere == null ? "append" : (Boolean) wasThere ? "exists" : "created");
            how.put("options", info.options().asCaseSensitiveMap());
        }

        public WriteBuilder truncate() {
            how.put("mode", "table");
            return this;
        }

        public WriteBuilder overwrite(Predicate[] where) {
            how.put("mode", "partitions");
            how.put("where", Calls.trees(where));
            return this;
        }

        public WriteBuilder overwriteDynamicPartitions() {
            how.put("mode", "dynamic");
            return this;
        }

        public Write build() {
            return this;
        }

        public InsertableRelation toInsertableRelation() {
            return this;
        }

        public void insert(Dataset rows, boolean overwrite) {
            Calls.ask(table.peer, "insert", new Object[] {Calls.json(how), rows});
        }
    }
}
