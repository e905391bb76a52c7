package drawstring.reading;

import java.util.ArrayList;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.catalyst.expressions.Cast$;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.execution.datasources.FileStatusCache;
import org.apache.spark.sql.execution.datasources.PartitionPath;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.immutable.Seq;

/** Lists base files and folders with their partition values as Spark's file indexes hold them. */
public class BaseFiles {
    /** Adds files to a cache; `fields` has the path, size and modification time of each. */
    public Seq paths(String fields, FileStatusCache cache) {
        ArrayList paths = new ArrayList();
        String[] texts = fields.split("\000", -1);
        for (int at = 0; at < texts.length; at += 3) {
            Path path = new Path(texts[at]);
            long size = Long.parseLong(texts[at + 1]), changed = Long.parseLong(texts[at + 2]);
            if (size > 0) {
                FileStatus status = new FileStatus(size, false, 1, 128L << 20, changed, path);
                cache.putLeafFiles(path, new FileStatus[] {status});
            }
            paths.add(path);
        }
        return PythonUtils.toSeq(paths);
    }

    /** Returns folders with partition values; `rows` has the index of a file in each, and `=` before values. */
    public Seq folders(Seq paths, String rows, StructType columns, Option zone, boolean ansi) {
        ArrayList folders = new ArrayList();
        StructField[] fields = columns.fields();
        String[] texts = rows.split("\000", -1);
        for (int at = 0; at < texts.length; at += fields.length + 1) {
            Object[] values = new Object[fields.length];
            for (int n = 0; n < fields.length; n++) {
                String value = texts[at + 1 + n];
                if (!value.isEmpty()) {
                    Expression text = Literal$.MODULE$.apply(value.substring(1));
                    values[n] = Cast$.MODULE$.apply(text, fields[n].dataType(), zone, ansi).eval(null);
                }
            }
            Path file = (Path) paths.apply(Integer.parseInt(texts[at]));
            folders.add(new PartitionPath(new GenericInternalRow(values), file.getParent()));
        }
        return PythonUtils.toSeq(folders);
    }
}
