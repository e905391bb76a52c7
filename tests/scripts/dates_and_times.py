"""Days and times as keys, as ordering, as partitions, and as what queries ask for."""


def main(spark, folder, answer):
    spark.sql("SET hoodie.spark.sql.insert.into.operation = upsert")
    for kind in ("cow", "mor"):
        table = f"shifts_{kind}"
        spark.sql(
            f"CREATE TABLE {table} (start TIMESTAMP, worker STRING, seen TIMESTAMP, day DATE) USING hudi"
            f" PARTITIONED BY (day) TBLPROPERTIES (type = '{kind}', primaryKey = 'start,worker',"
            " preCombineField = 'seen')"
        )
        rows = f"SELECT start, worker, seen, day, _hoodie_partition_path FROM {table}"
        spark.sql(
            f"INSERT INTO {table} VALUES"
            " (TIMESTAMP'2024-03-01 08:00:00', 'ann', TIMESTAMP'2024-03-01 17:00:00.5', DATE'2024-03-01'),"
            " (TIMESTAMP'2024-03-01 08:00:00', 'bob', TIMESTAMP'2024-03-01 17:00:00', DATE'2024-03-01'),"
            " (TIMESTAMP'1969-12-31 23:59:59.123456', 'cyd', TIMESTAMP'2024-03-02 00:00:00',"
            " DATE'2024-03-02')"
        )
        spark.sql(
            f"INSERT INTO {table} VALUES"
            " (TIMESTAMP'2024-03-01 08:00:00', 'ann', TIMESTAMP'2024-03-01 17:00:00.25', DATE'2024-03-01'),"
            " (TIMESTAMP'2024-03-01 08:00:00', 'bob', TIMESTAMP'2024-03-01 17:00:00.000001',"
            " DATE'2024-03-01')"
        )
        answer(f"{kind} rows", spark.sql(rows))
        answer(f"{kind} of a day", spark.sql(f"SELECT worker FROM {table} WHERE day = DATE'2024-03-02'"))
        answer(
            f"{kind} of days",
            spark.sql(f"SELECT worker FROM {table} WHERE day BETWEEN '2024-02-01' AND '2024-03-01'"),
        )
        early = f"SELECT worker FROM {table} WHERE start < TIMESTAMP'1970-01-01 00:00:00'"
        answer(f"{kind} early", spark.sql(early))
        spark.sql(f"UPDATE {table} SET seen = seen + INTERVAL 1 HOUR WHERE worker = 'ann'")
        spark.sql(f"DELETE FROM {table} WHERE day = DATE'2024-03-02'")
        answer(f"{kind} changed", spark.sql(f"SELECT start, worker, seen, hour(seen), day FROM {table}"))
    spark.sql("RESET hoodie.spark.sql.insert.into.operation")
