package drawstring.sql;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.procedures.BoundProcedure;
import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/** A procedure of CALL; which ones there are and what they do is Python's. */
public class Procedures implements UnboundProcedure, BoundProcedure {
    final String name;
    final Map facts;
    final StructType given;

    Procedures(String name) {
        this.name = name;
        this.facts = Calls.map(Calls.ask(HudiCatalog.peer, "procedure", name));
        this.given = (StructType) DataType.fromJson((String) facts.get("given"));
    }

    public String name() {
        return name;
    }

    public String description() {
        return name;
    }

    public boolean isDeterministic() {
        return false;
    }

    public BoundProcedure bind(StructType types) {
        return this;
    }

    /** All have defaults, so that Python says which one is missing. */
    public ProcedureParameter[] parameters() {
        List defaults = (List) facts.get("defaults");
        ProcedureParameter[] all = new ProcedureParameter[given.length()];
        for (int n = 0; n < all.length; n++) {
            all[n] = ProcedureParameter.in(given.apply(n).name(), given.apply(n).dataType())
                .defaultValue((String) defaults.get(n)).build();
        }
        return all;
    }

    public Iterator call(InternalRow values) {
        HashMap asked = new HashMap();
        asked.put("name", name);
        asked.put("values", Rows.texts(values, given));
        Object rows = Calls.ask(HudiCatalog.peer, "call", new Object[] {Calls.json(asked), Calls.session()});
        StructType columns = (StructType) DataType.fromJson((String) facts.get("columns"));
        ArrayList all = new ArrayList();
        all.add(new Rows(columns, Calls.list(rows)));
        return all.iterator();
    }
}
