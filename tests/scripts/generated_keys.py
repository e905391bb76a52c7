"""A table without key columns: log lines that are appended, corrected and deleted by condition."""


def main(spark, folder, answer):
    spark.sql("CREATE TABLE events (level STRING, text STRING, day STRING) USING hudi PARTITIONED BY (day)")
    spark.sql(
        "INSERT INTO events VALUES ('info', 'up', 'mon'), ('warn', 'slow', 'mon'), ('info', 'up', 'mon')"
    )
    spark.sql("INSERT INTO events VALUES ('warn', 'slow', 'tue')")
    answer("inserted", spark.sql("SELECT level, text, day FROM events"))
    answer("keys", spark.sql("SELECT count(DISTINCT _hoodie_record_key) FROM events"))
    spark.sql("UPDATE events SET text = 'very slow' WHERE level = 'warn' AND day = 'mon'")
    answer("updated", spark.sql("SELECT level, text, day FROM events"))
    spark.sql("DELETE FROM events WHERE level = 'info'")
    answer("deleted", spark.sql("SELECT level, text, day FROM events"))
    path = f"{folder}/lines"
    lines = spark.createDataFrame([("a", 1), ("a", 1), ("b", 2)], "text string, n int")
    lines.write.format("hudi").option("hoodie.table.name", "lines").mode("append").save(path)
    lines.write.format("hudi").option("hoodie.table.name", "lines").mode("append").save(path)
    answer("appended", spark.read.format("hudi").load(path).groupBy("text").count())
