"""Compactions that are planned, listed and run by statements, by the name and by the place of a table."""


def main(spark, folder, answer):
    spark.sql(
        "CREATE TABLE loads (id INT, weight DOUBLE, ts BIGINT, dock STRING) USING hudi PARTITIONED BY (dock)"
        f" LOCATION '{folder}/loads' TBLPROPERTIES (type = 'mor', primaryKey = 'id', preCombineField = 'ts',"
        " hoodie.compact.inline = 'false')"
    )
    rows = "SELECT id, weight, dock FROM loads"
    spark.sql("INSERT INTO loads VALUES (1, 1.0, 1, 'east'), (2, 2.0, 1, 'west')")
    spark.sql("UPDATE loads SET weight = 1.5, ts = 2 WHERE id = 1")
    for time in range(3, 7):
        spark.sql(f"UPDATE loads SET weight = weight + 1, ts = {time} WHERE id = 2")
    spark.sql("SCHEDULE COMPACTION ON loads")
    answer("planned", spark.sql("SHOW COMPACTION ON loads").drop("timestamp", "instant"))
    spark.sql("RUN COMPACTION ON loads")
    answer("run", spark.sql("SHOW COMPACTION ON loads").drop("timestamp", "instant"))
    answer("rows", spark.sql(rows))
    spark.sql("DELETE FROM loads WHERE id = 1")
    for key in range(3, 8):
        spark.sql(f"INSERT INTO loads VALUES ({key}, 3.0, 9, 'east')")
    spark.sql(f"SCHEDULE COMPACTION ON '{folder}/loads'")
    spark.sql(f"RUN COMPACTION ON '{folder}/loads'")
    answer(
        "one of two", spark.sql(f"SHOW COMPACTION ON '{folder}/loads' LIMIT 1").drop("timestamp", "instant")
    )
    answer("rows later", spark.sql(rows))
    read = spark.read.format("hudi").option("hoodie.datasource.query.type", "read_optimized")
    answer("base files", read.load(f"{folder}/loads").select("id", "weight"))
