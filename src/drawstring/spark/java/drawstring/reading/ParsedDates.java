package drawstring.reading;

import java.time.Instant;
import java.time.LocalDate;
import java.time.ZoneId;
import java.util.ArrayList;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.BinaryComparison;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.GetTimestamp;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.util.DateTimeUtils;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.FieldReference;
import org.apache.spark.sql.connector.expressions.GeneralScalarExpression;
import org.apache.spark.sql.connector.expressions.LiteralValue;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType$;
import org.apache.spark.sql.types.TimestampType$;

/**
 * Translates comparisons of dates in texts by a pattern, for which Spark has no predicate of data sources.
 *
 *     to_date(written, 'd.MM.yyyy') = date '2024-01-31', optimized:
 *     GetTimestamp(written, 'd.MM.yyyy') >= timestamp '2024-01-31' and ... < timestamp '2024-02-01'
 *         ──>  TO_DATE(written, 'd.MM.yyyy') >= 19753, and ... < 19754
 *
 * A comparison of times implies one of their days, and the skipping of files needs no more. Spark's time
 * parser policy LEGACY parses in another way than indexes; then there are no such predicates.
 */
class ParsedDates {
    /** Returns a predicate that is true where a comparison of parsed dates is; null for other conditions. */
    static Predicate of(org.apache.spark.sql.catalyst.expressions.Expression condition) {
        String policy = SQLConf.get().getConfString("spark.sql.legacy.timeParserPolicy", "CORRECTED");
        if (!(condition instanceof BinaryComparison) || policy.equalsIgnoreCase("LEGACY")) {
            return null;
        }
        Object time = condition.children().apply(0), value = condition.children().apply(1);
        String symbol = ((BinaryComparison) condition).symbol();
        if (!(value instanceof Literal) || ((Literal) value).value() == null) {
            return null;
        }
        if (time instanceof GetTimestamp) {
            return ofTime(parsed(time), symbol, (Literal) value);
        }
        boolean isDate = time instanceof Cast && ((Cast) time).dataType() == DateType$.MODULE$;
        Object child = isDate ? ((Cast) time).child() : null;
        return compared(parsed(child), symbol, literalOf(value));
    }

    /** Compares days instead of times, with the day of a time in the session's time zone. */
    private static Predicate ofTime(Expression day, String symbol, Literal time) {
        if (time.dataType() != TimestampType$.MODULE$) {
            return null;
        }
        long micros = ((Long) time.value()).longValue();
        Instant instant = Instant.ofEpochSecond(
            Math.floorDiv(micros, 1000000L), Math.floorMod(micros, 1000000L) * 1000L);
        ZoneId zone = DateTimeUtils.getZoneId(SQLConf.get().sessionLocalTimeZone());
        LocalDate date = instant.atZone(zone).toLocalDate();
        boolean isFirst = date.atStartOfDay(zone).toInstant().equals(instant);
        String ofDays = symbol.equals(">") ? ">=" : symbol.equals("<") && !isFirst ? "<=" : symbol;
        Integer number = new Integer((int) date.toEpochDay());
        return compared(day, ofDays, new LiteralValue(number, (DataType) DateType$.MODULE$));
    }

    private static Predicate compared(Expression day, String symbol, Expression value) {
        return day == null ? null : new Predicate(symbol, new Expression[] {day, value});
    }

    /** Returns the function for a text that is parsed by a pattern; null for other expressions. */
    private static Expression parsed(Object time) {
        if (!(time instanceof GetTimestamp)) {
            return null;
        }
        Object column = ((GetTimestamp) time).left(), pattern = ((GetTimestamp) time).right();
        if (!(column instanceof AttributeReference) || !(pattern instanceof Literal)) {
            return null;
        }
        ArrayList name = new ArrayList();
        name.add(((AttributeReference) column).name());
        FieldReference field = new FieldReference(PythonUtils.toSeq(name));
        return new GeneralScalarExpression("TO_DATE", new Expression[] {field, literalOf(pattern)});
    }

    private static Expression literalOf(Object value) {
        return new LiteralValue(((Literal) value).value(), ((Literal) value).dataType());
    }
}
