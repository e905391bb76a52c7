"""MERGE into tables that generate their keys: the condition may name any columns."""


def main(spark, folder, answer):
    spark.sql(
        "CREATE TABLE fares (start STRING, stop STRING, price DOUBLE, city STRING) USING hudi"
        " PARTITIONED BY (city)"
    )
    rows = "SELECT start, stop, price, city FROM fares"
    spark.sql(
        "INSERT INTO fares VALUES ('a', 'b', 2.0, 'rome'), ('a', 'c', 3.0, 'rome'), ('x', 'y', 4.0, 'oslo')"
    )
    spark.createDataFrame(
        [("a", "b", -0.5, "rome"), ("x", "y", 1.0, "oslo"), ("x", "z", 6.0, "oslo")],
        "start string, stop string, price double, city string",
    ).createOrReplaceTempView("changes")
    spark.sql(
        """
        MERGE INTO fares AS t USING changes AS s ON t.start = s.start AND t.stop = s.stop
        WHEN MATCHED THEN UPDATE SET t.price = t.price + s.price
        WHEN NOT MATCHED THEN INSERT *
        """
    )
    answer("merged", spark.sql(rows))
    spark.sql(
        """
        MERGE INTO fares AS t USING (SELECT * FROM changes WHERE price > 5) AS s
        ON t.start = s.start AND t.stop = s.stop AND t.city = s.city
        WHEN MATCHED THEN DELETE
        """
    )
    answer("deleted", spark.sql(rows))
    spark.sql("UPDATE fares SET price = price * 2 WHERE start = 'a'")
    spark.sql("DELETE FROM fares WHERE stop = 'c'")
    answer("changed", spark.sql(rows))
    answer("keys", spark.sql("SELECT count(*) = count(DISTINCT _hoodie_record_key) FROM fares"))
