"""Inserts into two levels of partitions: both named, one named, none named."""


def main(spark, folder, answer):
    spark.sql("SET hoodie.spark.sql.insert.into.operation = upsert")
    for kind in ("cow", "mor"):
        table = f"clicks_{kind}"
        spark.sql(
            f"CREATE TABLE {table} (id BIGINT, page STRING, n INT, day STRING, hour STRING) USING hudi"
            f" PARTITIONED BY (day, hour) TBLPROPERTIES (type = '{kind}', primaryKey = 'id',"
            " preCombineField = 'n')"
        )
        rows = f"SELECT id, page, n, day, hour, _hoodie_partition_path FROM {table}"
        spark.sql(f"INSERT INTO {table} PARTITION (day = '2024-07-01', hour = '08') SELECT 1, 'home', 3")
        spark.sql(f"INSERT INTO {table} PARTITION (day = '2024-07-01', hour) SELECT 2, 'shop', 4, '09'")
        spark.sql(
            f"INSERT INTO {table} PARTITION (day, hour)"
            " SELECT 3 AS id, 'cart' AS page, 5 AS n, '2024-07-02' AS day, '08' AS hour"
        )
        spark.sql(f"INSERT INTO {table} SELECT 4, 'home', 6, '2024-07-02', '09'")
        answer(f"{kind} inserted", spark.sql(rows))
        spark.sql(f"INSERT INTO {table} PARTITION (day = '2024-07-01', hour = '08') VALUES (1, 'home', 30)")
        answer(f"{kind} newer", spark.sql(f"{rows} WHERE id = 1"))
        answer(f"{kind} partitions", spark.sql(f"SHOW PARTITIONS {table} PARTITION (day = '2024-07-01')"))
        answer(
            f"{kind} one hour",
            spark.sql(f"SELECT day, count(*), sum(n) FROM {table} WHERE hour = '08' GROUP BY day"),
        )
        spark.sql(f"ALTER TABLE {table} DROP PARTITION (day = '2024-07-01', hour = '08')")
        spark.sql(f"INSERT INTO {table} PARTITION (day = '2024-07-01', hour = '08') SELECT 9, 'help', 1")
        answer(f"{kind} dropped and filled", spark.sql(rows))
    spark.sql("RESET hoodie.spark.sql.insert.into.operation")
