"""What read optimized queries see of a MERGE_ON_READ table, between updates and compactions."""

TYPE = "hoodie.datasource.query.type"


def main(spark, folder, answer):
    path = f"{folder}/boxes"
    spark.sql(
        "CREATE TABLE boxes (id INT, weight INT, ts BIGINT, hall STRING) USING hudi PARTITIONED BY (hall)"
        f" LOCATION '{path}' TBLPROPERTIES (type = 'mor', primaryKey = 'id', preCombineField = 'ts')"
    )
    spark.sql(
        f"CREATE TABLE boxes_ro USING hudi LOCATION '{path}'"
        " TBLPROPERTIES (hoodie.query.as.ro.table = 'true')"
    )

    def look(name):
        spark.sql("REFRESH TABLE boxes_ro")
        read = spark.read.format("hudi").option(TYPE, "read_optimized").load(path)
        answer(f"{name}, base files", read.select("id", "weight", "hall"))
        answer(f"{name}, all", spark.sql("SELECT id, weight, hall FROM boxes"))
        answer(f"{name}, by name", spark.sql("SELECT id, weight, hall FROM boxes_ro"))

    spark.sql("INSERT INTO boxes VALUES (1, 10, 1, 'a'), (2, 20, 1, 'a'), (3, 30, 1, 'b')")
    look("inserted")
    spark.sql("UPDATE boxes SET weight = weight + 1, ts = 2 WHERE hall = 'a'")
    spark.sql("DELETE FROM boxes WHERE id = 3")
    look("changed")
    options = "hoodie.compact.inline.max.delta.commits=1"
    spark.sql(f"CALL run_compaction(op => 'schedule', table => 'boxes', options => '{options}')")
    look("planned")
    spark.sql("CALL run_compaction(op => 'run', table => 'boxes')")
    look("compacted")
