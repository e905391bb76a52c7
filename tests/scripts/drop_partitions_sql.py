"""Days that are dropped, emptied, overwritten and filled anew by SQL."""


def main(spark, folder, answer):
    for kind in ("cow", "mor"):
        table = f"logs_{kind}"
        spark.sql(
            f"CREATE TABLE {table} (id INT, text STRING, ts BIGINT, month STRING, day STRING) USING hudi"
            f" PARTITIONED BY (month, day) TBLPROPERTIES (type = '{kind}', primaryKey = 'id',"
            " preCombineField = 'ts')"
        )
        rows = f"SELECT id, text, month, day FROM {table}"
        spark.sql(
            f"INSERT INTO {table} VALUES (1, 'a', 1, '2024-01', '01'), (2, 'b', 1, '2024-01', '02'),"
            " (3, 'c', 1, '2024-02', '01'), (4, 'd', 1, '2024-02', '02'), (5, 'e', 1, '2024-03', '01')"
        )
        spark.sql(f"UPDATE {table} SET text = upper(text), ts = 2 WHERE day = '02'")
        spark.sql(f"ALTER TABLE {table} DROP PARTITION (month = '2024-01', day = '01')")
        answer(f"{kind} one dropped", spark.sql(rows))
        spark.sql(
            f"ALTER TABLE {table} DROP PARTITION (month = '2024-02', day = '01'),"
            " PARTITION (month = '2024-02', day = '02')"
        )
        answer(f"{kind} two dropped", spark.sql(rows))
        answer(f"{kind} partitions", spark.sql(f"SHOW PARTITIONS {table}"))
        spark.sql(f"INSERT INTO {table} VALUES (3, 'again', 0, '2024-02', '01')")
        answer(f"{kind} filled anew", spark.sql(rows))
        spark.sql(
            f"CALL drop_partition(table => 'of_drop_partitions_sql.{table}', partition =>"
            " 'month=2024-03/day=01')"
        )
        answer(f"{kind} by procedure", spark.sql(rows))
        spark.sql(f"TRUNCATE TABLE {table} PARTITION (month = '2024-02', day = '01')")
        answer(f"{kind} truncated partition", spark.sql(rows))
        spark.sql(f"TRUNCATE TABLE {table}")
        answer(f"{kind} truncated", spark.sql(rows))
        spark.sql(f"INSERT INTO {table} VALUES (9, 'new', 1, '2024-09', '01')")
        answer(f"{kind} after", spark.sql(rows))
