"""Loads by bulk_insert in SQL: repeated keys, sorted files, combined rows, an overwritten partition."""


def main(spark, folder, answer):
    spark.sql(
        "CREATE TABLE hits (id INT, page STRING, n INT, day STRING) USING hudi PARTITIONED BY (day)"
        " TBLPROPERTIES (primaryKey = 'id', preCombineField = 'n')"
    )
    rows = "SELECT id, page, n, day FROM hits"
    spark.sql("SET hoodie.spark.sql.insert.into.operation = bulk_insert")
    spark.sql("INSERT INTO hits VALUES (1, 'home', 1, 'd1'), (1, 'home', 2, 'd1'), (2, 'shop', 1, 'd2')")
    answer("loaded", spark.sql(rows))
    spark.sql("SET hoodie.combine.before.insert = true")
    spark.sql("INSERT INTO hits VALUES (3, 'cart', 1, 'd1'), (3, 'cart', 2, 'd1')")
    answer("combined", spark.sql(rows))
    spark.sql("RESET hoodie.combine.before.insert")
    for mode in ("GLOBAL_SORT", "PARTITION_SORT", "NONE"):
        spark.sql(f"SET hoodie.bulkinsert.sort.mode = {mode}")
        spark.sql(
            f"INSERT INTO hits SELECT id + 100, '{mode.lower()}', CAST(id AS INT), concat('d', id % 3) FROM"
            " range(6)"
        )
        answer(
            mode,
            spark.sql(f"SELECT day, count(*), sum(n) FROM hits WHERE page = '{mode.lower()}' GROUP BY day"),
        )
    spark.sql("RESET hoodie.bulkinsert.sort.mode")
    spark.sql("INSERT OVERWRITE hits PARTITION (day = 'd1') SELECT 50, 'only', 1")
    answer("overwritten", spark.sql(f"{rows} WHERE day = 'd1'"))
    spark.sql("RESET hoodie.spark.sql.insert.into.operation")
    spark.sql("INSERT INTO hits VALUES (50, 'only', 2, 'd1'), (51, 'new', 1, 'd1')")
    answer("upserted", spark.sql(f"{rows} WHERE day = 'd1'"))
