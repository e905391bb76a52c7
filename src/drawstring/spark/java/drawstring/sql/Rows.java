package drawstring.sql;

import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.unsafe.types.UTF8String;

/** Few rows of plain values that travel between Spark and Python as texts; dates and times are numbers in them. */
public class Rows implements LocalScan {
    final StructType columns;
    final InternalRow[] rows;

    Rows(StructType columns, List texts) {
        this.columns = columns;
        this.rows = of(texts, columns);
    }

    public StructType readSchema() {
        return columns;
    }

    public InternalRow[] rows() {
        return rows;
    }

    static InternalRow[] of(List rows, StructType columns) {
        InternalRow[] all = new InternalRow[rows.size()];
        for (int n = 0; n < all.length; n++) {
            List texts = (List) rows.get(n);
            Object[] values = new Object[texts.size()];
            for (int c = 0; c < values.length; c++) {
                values[c] = texts.get(c) == null ? null : value((String) texts.get(c), columns.apply(c).dataType());
            }
            all[n] = new GenericInternalRow(values);
        }
        return all;
    }

    static ArrayList texts(InternalRow row, StructType columns) {
        ArrayList texts = new ArrayList();
        for (int n = 0; n < columns.length(); n++) {
            Object value = row.isNullAt(n) ? null : row.get(n, columns.apply(n).dataType());
            texts.add(value == null ? null : value.toString());
        }
        return texts;
    }

    private static Object value(String text, DataType type) {
        if (type instanceof StringType) {
            return UTF8String.fromString(text);
        }
        if (type instanceof BooleanType) {
            return Boolean.valueOf(text);
        }
        if (type instanceof LongType || type instanceof TimestampType || type instanceof TimestampNTZType) {
            return Long.valueOf(text);
        }
        if (type instanceof IntegerType || type instanceof DateType) {
            return Integer.valueOf(text);
        }
        if (type instanceof ShortType) {
            return Short.valueOf(text);
        }
        if (type instanceof ByteType) {
            return Byte.valueOf(text);
        }
        if (type instanceof DoubleType) {
            return Double.valueOf(text);
        }
        if (type instanceof FloatType) {
            return Float.valueOf(text);
        }
        if (type instanceof DecimalType) {
            return Decimal.apply(new BigDecimal(text));
        }
        throw new UnsupportedOperationException("There are no partitions or procedures by " + type.sql() + ".");
    }
}
