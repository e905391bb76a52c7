package drawstring.sql;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BiFunction;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.CatalogTableType;
import org.apache.spark.sql.catalyst.catalog.CatalogUtils;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogV2Util;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.DelegatingCatalogExtension;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.ProcedureCatalog;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Option;

/** Spark's own catalog, in which tables with provider hudi are drawstring's. */
public class HudiCatalog extends DelegatingCatalogExtension implements ProcedureCatalog {
    static BiFunction peer;

    /** Names under which statements of this driver found tables, by their paths. */
    private static final ConcurrentHashMap NAMES = new ConcurrentHashMap();

    public static void setPeer(BiFunction given) {
        peer = given;
    }

    public Table loadTable(Identifier name) throws NoSuchTableException {
        HudiTable table = found(name, null);
        return table == null ? super.loadTable(name) : table;
    }

    public Table loadTable(Identifier name, Set privileges) throws NoSuchTableException {
        return loadTable(name);
    }

    public Table loadTable(Identifier name, long micros) throws NoSuchTableException {
        HudiTable table = found(name, "micros " + micros);
        return table == null ? super.loadTable(name, micros) : table;
    }

    public Table loadTable(Identifier name, String version) throws NoSuchTableException {
        HudiTable table = found(name, version);
        return table == null ? super.loadTable(name, version) : table;
    }

    public Table createTable(Identifier name, Column[] columns, Transform[] partitions, Map properties)
            throws TableAlreadyExistsException, NoSuchNamespaceException {
        if (!isHudi(properties.get("provider"))) {
            return super.createTable(name, columns, partitions, properties);
        }
        if (tableExists(name)) {
            throw new TableAlreadyExistsException(name);
        }
        HashMap given = new HashMap();
        given.put("name", parts(name));
        given.put("schema", CatalogV2Util.v2ColumnsToStructType(columns).json());
        given.put("transforms", transforms(partitions));
        given.put("properties", properties);
        Map defined = Calls.map(Calls.ask(peer, "define", new Object[] {Calls.json(given), Calls.session()}));
        HashMap kept = new HashMap(properties);
        kept.putAll((Map) defined.get("properties"));
        super.createTable(name, columns(defined), identities((List) defined.get("partitioned_by")), kept);
        try {
            CatalogTable entry = entry(name);
            defined.put("path", path(entry));
            defined.put("name", parts(name));
            Calls.ask(peer, "create", new Object[] {Calls.json(defined), Calls.session()});
            return found(name, null).toFill(columns, (Boolean) defined.get("exists"));
        } catch (RuntimeException error) {
            catalog().dropTable(identifier(name), true, false);
            throw error;
        }
    }

    public UnboundProcedure loadProcedure(Identifier name) {
        return new Procedures(name.name());
    }

    public Identifier[] listProcedures(String[] namespace) {
        List names = Calls.list(Calls.ask(peer, "procedures", null));
        Identifier[] all = new Identifier[names.size()];
        for (int n = 0; n < all.length; n++) {
            all[n] = Identifier.of(namespace, (String) names.get(n));
        }
        return all;
    }

    public Table alterTable(Identifier name, TableChange[] changes) throws NoSuchTableException {
        CatalogTable entry = entry(name);
        if (entry == null) {
            return super.alterTable(name, changes);
        }
        HudiTable table = found(name, null);
        ArrayList told = new ArrayList();
        boolean isOfColumns = false;
        for (int n = 0; n < changes.length; n++) {
            isOfColumns = isOfColumns || changes[n] instanceof TableChange.ColumnChange;
            told.add(told(changes[n]));
        }
        Calls.ask(table.peer, "prepare_alter", Calls.json(told));
        if (!isOfColumns) {
            return super.alterTable(name, changes);
        }
        StructType columns = CatalogV2Util.applySchemaChanges(
            table.schema(), PythonUtils.toSeq(Arrays.asList(changes)), Option.apply("hudi"), "ALTER TABLE");
        HashMap asked = new HashMap();
        asked.put("schema", columns.json());
        asked.put("changes", told);
        Calls.ask(table.peer, "alter", Calls.json(asked));
        StructType data = data(found(name, null).schema(), table.partitionSchema());
        boolean hasAll = true;
        for (int n = 0; n < entry.dataSchema().length(); n++) {
            hasAll = hasAll && data.getFieldIndex(entry.dataSchema().apply(n).name()).isDefined();
        }
        if (hasAll) {  // the entry of an older release may have partition columns among the others
            catalog().alterTableDataSchema(identifier(name), data);
        } else if (isWithoutColumns(changes)) {  // which the session's catalog refuses
            TableIdentifier id = entry.identifier();
            catalog().externalCatalog().alterTableDataSchema((String) id.database().get(), id.table(), data);
            catalog().refreshTable(identifier(name));
        }
        return found(name, null);
    }

    public void renameTable(Identifier from, Identifier to) throws NoSuchTableException, TableAlreadyExistsException {
        HudiTable table = tableExists(to) || entry(from) == null ? null : found(from, null);
        if (table == null) {
            super.renameTable(from, to);
            return;
        }
        Calls.ask(table.peer, "rename", to.name());
        boolean isDone = false;
        try {
            super.renameTable(from, to);
            isDone = true;
        } finally {
            if (!isDone) {
                Calls.ask(table.peer, "rename", from.name());
            }
        }
    }

    private static boolean isWithoutColumns(TableChange[] changes) {
        boolean isWithout = false;
        for (int n = 0; n < changes.length; n++) {
            isWithout = isWithout || changes[n] instanceof TableChange.RenameColumn
                || changes[n] instanceof TableChange.DeleteColumn;
        }
        return isWithout;
    }

    private static HashMap told(TableChange change) {
        HashMap told = new HashMap();
        told.put("kind", change.getClass().getSimpleName());
        if (change instanceof TableChange.SetProperty) {
            told.put("name", ((TableChange.SetProperty) change).property());
            told.put("value", ((TableChange.SetProperty) change).value());
        } else if (change instanceof TableChange.RemoveProperty) {
            told.put("name", ((TableChange.RemoveProperty) change).property());
        } else if (change instanceof TableChange.ColumnChange) {
            told.put("name", String.join(".", ((TableChange.ColumnChange) change).fieldNames()));
            told.put("path", Arrays.asList((Object[]) ((TableChange.ColumnChange) change).fieldNames()));
        }
        if (change instanceof TableChange.AddColumn) {
            TableChange.AddColumn added = (TableChange.AddColumn) change;
            told.put("type", added.dataType().json());
            told.put("place", place(added.position()));
            told.put("comment", added.comment());
            told.put("has_default", Boolean.valueOf(added.defaultValue() != null));
        } else if (change instanceof TableChange.RenameColumn) {
            told.put("value", ((TableChange.RenameColumn) change).newName());
        } else if (change instanceof TableChange.UpdateColumnType) {
            told.put("type", ((TableChange.UpdateColumnType) change).newDataType().json());
        } else if (change instanceof TableChange.UpdateColumnPosition) {
            told.put("place", place(((TableChange.UpdateColumnPosition) change).position()));
        } else if (change instanceof TableChange.UpdateColumnComment) {
            told.put("comment", ((TableChange.UpdateColumnComment) change).newComment());
        }
        return told;
    }

    private static String place(TableChange.ColumnPosition position) {
        if (position == null) {
            return null;
        }
        return position instanceof TableChange.After ? ((TableChange.After) position).column() : "";
    }

    private static StructType data(StructType columns, StructType partitions) {
        StructType data = new StructType();
        for (int n = 0; n < columns.length(); n++) {
            if (partitions.getFieldIndex(columns.apply(n).name()).isEmpty()) {
                data = data.add(columns.apply(n));
            }
        }
        return data;
    }

    public boolean dropTable(Identifier name) {
        return entry(name) == null ? super.dropTable(name) : drop(name, false);
    }

    public boolean purgeTable(Identifier name) {
        return entry(name) == null ? super.purgeTable(name) : drop(name, true);
    }

    private boolean drop(Identifier name, boolean purges) {
        String path = path(entry(name));
        catalog().dropTable(identifier(name), true, purges);
        if (purges) {
            Calls.ask(peer, "purge", new Object[] {path, Calls.session()});
        }
        return true;
    }

    static boolean isHudi(Object provider) {
        String name = provider == null ? "" : provider.toString().toLowerCase();
        return name.equals("hudi") || name.equals("org.apache.hudi") || name.equals("drawstring");
    }

    /** Returns the location of a table of Hudi by its name in a session, null if there is none. */
    public static String location(SparkSession session, String name) throws Exception {
        CatalogTable entry = entry(session, name);
        return entry == null ? null : path(entry);
    }

    /** Returns the properties of a table of Hudi in the catalog, as JSON; null if there is none. */
    public static String properties(SparkSession session, String name) throws Exception {
        CatalogTable entry = entry(session, name);
        return entry == null ? null : Calls.json(properties(entry));
    }

    private static CatalogTable entry(SparkSession session, String name) throws Exception {
        TableIdentifier table = session.sessionState().sqlParser().parseTableIdentifier(name);
        String current = session.sessionState().catalog().getCurrentDatabase();
        Object database = table.database().isEmpty() ? current : table.database().get();
        return entry(Identifier.of(new String[] {(String) database}, table.table()));
    }

    static SessionCatalog catalog() {
        return Calls.session().sessionState().catalog();
    }

    static TableIdentifier identifier(Identifier name) {
        return new TableIdentifier(name.name(), Option.apply(name.namespace()[0]));
    }

    static String[] parts(Identifier name) {
        return new String[] {name.namespace()[0], name.name()};
    }

    static String path(CatalogTable entry) {
        return CatalogUtils.URIToString((java.net.URI) entry.storage().locationUri().get());
    }

    /** Returns what Spark's catalog has about a table of Hudi, null if it has none of that name. */
    static CatalogTable entry(Identifier name) {
        if (name.namespace().length != 1) {
            return null;
        }
        TableIdentifier identifier = identifier(name);
        try {
            if (catalog().isTempView(identifier) || !catalog().tableExists(identifier)) {
                return null;
            }
            CatalogTable entry = catalog().getTableMetadata(identifier);
            return entry.provider().isEmpty() || !isHudi(entry.provider().get()) ? null : entry;
        } catch (NoSuchNamespaceException error) {
            return null;
        } catch (NoSuchTableException error) {
            return null;
        }
    }

    /** Returns a table of Hudi by its name in the catalog or as hudi.`/path`, null if there is none. */
    static HudiTable found(Identifier name, String asOf) {
        HashMap given = new HashMap();
        given.put("name", name.namespace().length == 1 ? parts(name) : null);
        given.put("as_of", asOf);
        if (isPath(name)) {
            given.put("path", name.name());
        } else {
            CatalogTable entry = entry(name);
            if (entry == null) {
                return null;
            }
            given.put("path", path(entry));
            given.put("schema", entry.schema().json());
            given.put("properties", properties(entry));
            given.put("is_external", Boolean.valueOf(entry.tableType().equals(CatalogTableType.EXTERNAL())));
        }
        return named(name, given);
    }

    private static HudiTable named(Identifier name, HashMap given) {
        HudiTable table = new HudiTable(
            (BiFunction) Calls.ask(peer, "table", new Object[] {Calls.json(given), Calls.session()}));
        NAMES.putIfAbsent(table.path(), new ConcurrentHashMap());
        ((ConcurrentHashMap) NAMES.get(table.path())).put(quoted(name.namespace()[0]) + "." + quoted(name.name()), "");
        return table;
    }

    private static String quoted(String name) {
        return "`" + name.replace("`", "``") + "`";
    }

    /** Lets what is cached of the table at a path show its rows of now; of all tables if the path is null. */
    public static void refresh(SparkSession session, String path) {
        if (session.sharedState().cacheManager().isEmpty()) {
            return;
        }
        Object[] paths = path == null ? NAMES.keySet().toArray() : new Object[] {path};
        for (int n = 0; n < paths.length; n++) {
            Map names = (Map) NAMES.getOrDefault(paths[n], new HashMap());
            Object[] all = names.keySet().toArray();
            for (int m = 0; m < all.length; m++) {
                try {
                    session.catalog().refreshTable((String) all[m]);
                } catch (Exception error) {  // a table that was dropped
                    names.remove(all[m]);
                }
            }
        }
    }

    private static boolean isPath(Identifier name) {
        return name.namespace().length == 1 && isHudi(name.namespace()[0]) && name.name().contains("/");
    }

    static HashMap properties(CatalogTable entry) {
        HashMap found = new HashMap();
        add(found, entry.storage().properties());
        add(found, entry.properties());
        if (!entry.comment().isEmpty()) {
            found.put("comment", entry.comment().get());
        }
        return found;
    }

    private static void add(HashMap found, scala.collection.immutable.Map properties) {
        scala.collection.Iterator all = properties.iterator();
        while (all.hasNext()) {
            scala.Tuple2 each = (scala.Tuple2) all.next();
            found.put(each._1(), each._2());
        }
    }

    private static ArrayList transforms(Transform[] partitions) {
        ArrayList all = new ArrayList();
        for (int n = 0; n < partitions.length; n++) {
            ArrayList each = new ArrayList();
            each.add(partitions[n].name());
            each.add(partitions[n].references().length == 1 ? partitions[n].references()[0].fieldNames()[0] : null);
            all.add(each);
        }
        return all;
    }

    private static Transform[] identities(List names) {
        Transform[] identities = new Transform[names.size()];
        for (int n = 0; n < identities.length; n++) {
            identities[n] = Expressions.identity((String) names.get(n));
        }
        return identities;
    }

    /** Returns the columns for Spark's catalog, which expects those of partitions last. */
    private static Column[] columns(Map defined) {
        StructType all = (StructType) DataType.fromJson((String) defined.get("schema"));
        List partitions = (List) defined.get("partitioned_by");
        ArrayList fields = new ArrayList();
        for (int n = 0; n < all.length(); n++) {
            if (!partitions.contains(all.apply(n).name())) {
                fields.add(all.apply(n));
            }
        }
        for (int n = 0; n < partitions.size(); n++) {
            fields.add(all.apply((String) partitions.get(n)));
        }
        Column[] columns = new Column[fields.size()];
        for (int n = 0; n < columns.length; n++) {
            StructField field = (StructField) fields.get(n);
            String comment = field.getComment().isEmpty() ? null : (String) field.getComment().get();
            columns[n] = Column.create(field.name(), field.dataType(), field.nullable(), comment, null);
        }
        return columns;
    }
}
