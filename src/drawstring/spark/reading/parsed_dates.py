"""Comparisons of dates in texts by a pattern, which Spark has no predicate of data sources for.

    to_date(written, 'd.MM.yyyy') = date '2024-01-31', optimized:
    GetTimestamp(written, 'd.MM.yyyy') >= timestamp '2024-01-31' and ... < timestamp '2024-02-01'
        ──>  TO_DATE(written, 'd.MM.yyyy') >= 19753, a predicate that `pushed_filters` reads, and ... < 19754

A comparison of times implies one of their days, which is all that the skipping of files needs.

The methods are Java source, a part of classes that see Spark's optimized plans. Spark's time parser policy
LEGACY parses in another way than indexes; then there are no such predicates.
"""

from __future__ import annotations

from typing import Final

METHODS: Final = """
    /** Returns a predicate that is true where a comparison of parsed dates is; null for other conditions. */
    static org.apache.spark.sql.connector.expressions.filter.Predicate ofParsedDate(
            org.apache.spark.sql.catalyst.expressions.Expression condition) {
        String policy = org.apache.spark.sql.internal.SQLConf.get()
            .getConfString("spark.sql.legacy.timeParserPolicy", "CORRECTED");
        boolean isCompared = condition instanceof org.apache.spark.sql.catalyst.expressions.BinaryComparison;
        if (!isCompared || policy.equalsIgnoreCase("LEGACY")) {
            return null;
        }
        Object time = condition.children().apply(0), value = condition.children().apply(1);
        String symbol = ((org.apache.spark.sql.catalyst.expressions.BinaryComparison) condition).symbol();
        if (!(value instanceof org.apache.spark.sql.catalyst.expressions.Literal)
                || ((org.apache.spark.sql.catalyst.expressions.Literal) value).value() == null) {
            return null;
        }
        if (time instanceof org.apache.spark.sql.catalyst.expressions.GetTimestamp) {
            return ofTime(parsed(time), symbol, (org.apache.spark.sql.catalyst.expressions.Literal) value);
        }
        boolean isCast = time instanceof org.apache.spark.sql.catalyst.expressions.Cast;
        boolean isDate = isCast && ((org.apache.spark.sql.catalyst.expressions.Cast) time).dataType()
            == org.apache.spark.sql.types.DateType$.MODULE$;
        Object child = isDate ? ((org.apache.spark.sql.catalyst.expressions.Cast) time).child() : null;
        return compared(parsed(child), symbol, literalOf(value));
    }

    /** Compares days instead of times, with the day of a time in the session's time zone. */
    static org.apache.spark.sql.connector.expressions.filter.Predicate ofTime(
            org.apache.spark.sql.connector.expressions.Expression day, String symbol,
            org.apache.spark.sql.catalyst.expressions.Literal time) {
        if (time.dataType() != org.apache.spark.sql.types.TimestampType$.MODULE$) {
            return null;
        }
        long micros = ((Long) time.value()).longValue();
        java.time.Instant instant = java.time.Instant.ofEpochSecond(
            Math.floorDiv(micros, 1000000L), Math.floorMod(micros, 1000000L) * 1000L);
        java.time.ZoneId zone = org.apache.spark.sql.catalyst.util.DateTimeUtils.getZoneId(
            org.apache.spark.sql.internal.SQLConf.get().sessionLocalTimeZone());
        java.time.LocalDate date = instant.atZone(zone).toLocalDate();
        boolean isFirst = date.atStartOfDay(zone).toInstant().equals(instant);
        String ofDays = symbol.equals(">") ? ">=" : symbol.equals("<") && !isFirst ? "<=" : symbol;
        return compared(day, ofDays, new org.apache.spark.sql.connector.expressions.LiteralValue(
            new Integer((int) date.toEpochDay()), (org.apache.spark.sql.types.DataType)
            org.apache.spark.sql.types.DateType$.MODULE$));
    }

    static org.apache.spark.sql.connector.expressions.filter.Predicate compared(
            org.apache.spark.sql.connector.expressions.Expression day, String symbol,
            org.apache.spark.sql.connector.expressions.Expression value) {
        return day == null ? null : new org.apache.spark.sql.connector.expressions.filter.Predicate(symbol,
            new org.apache.spark.sql.connector.expressions.Expression[] {day, value});
    }

    /** Returns the function for a text that is parsed by a pattern; null for other expressions. */
    static org.apache.spark.sql.connector.expressions.Expression parsed(Object time) {
        if (!(time instanceof org.apache.spark.sql.catalyst.expressions.GetTimestamp)) {
            return null;
        }
        Object column = ((org.apache.spark.sql.catalyst.expressions.GetTimestamp) time).left();
        Object pattern = ((org.apache.spark.sql.catalyst.expressions.GetTimestamp) time).right();
        if (!(column instanceof org.apache.spark.sql.catalyst.expressions.AttributeReference)
                || !(pattern instanceof org.apache.spark.sql.catalyst.expressions.Literal)) {
            return null;
        }
        java.util.ArrayList name = new java.util.ArrayList();
        name.add(((org.apache.spark.sql.catalyst.expressions.AttributeReference) column).name());
        return new org.apache.spark.sql.connector.expressions.GeneralScalarExpression("TO_DATE",
            new org.apache.spark.sql.connector.expressions.Expression[] {
                new org.apache.spark.sql.connector.expressions.FieldReference(
                    org.apache.spark.api.python.PythonUtils.toSeq(name)),
                literalOf(pattern)
            });
    }

    static org.apache.spark.sql.connector.expressions.Expression literalOf(Object value) {
        org.apache.spark.sql.catalyst.expressions.Literal literal =
            (org.apache.spark.sql.catalyst.expressions.Literal) value;
        return new org.apache.spark.sql.connector.expressions.LiteralValue(
            literal.value(), literal.dataType());
    }
"""
