"""Indexes by SQL: of record keys, of another column and of expressions, and queries that use them.

There are no writes after them: Hudi 1.2.0 fails to keep all of these indexes at once in an UPDATE.
"""

SETTINGS = {
    "hoodie.metadata.enable": "true",
    "hoodie.enable.data.skipping": "true",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
}


def main(spark, folder, answer):
    for key, value in SETTINGS.items():
        spark.sql(f"SET {key}={value}")
    try:
        run(spark, answer)
    finally:
        for key in SETTINGS:
            spark.sql(f"RESET {key}")


def run(spark, answer):
    spark.sql(
        """
        CREATE TABLE trips (ts BIGINT, uuid STRING, rider STRING, fare DOUBLE, city STRING) USING hudi
        PARTITIONED BY (city)
        TBLPROPERTIES (primaryKey = 'uuid', preCombineField = 'ts',
        'hoodie.write.record.merge.mode' = 'EVENT_TIME_ORDERING', 'hoodie.metadata.enable' = 'true')
        """
    )
    spark.sql(
        "INSERT INTO trips VALUES (1695159649, 'k1', 'Ana', 19.5, 'quito'),"
        " (1695091554, 'k2', 'bob', 27.75, 'quito'), (1695046462, 'k3', 'Cyd', 33.25, 'turin'),"
        " (1695516137, 'k4', 'bob', 8.5, 'osaka')"
    )
    spark.sql("CREATE INDEX record_index ON trips (uuid)")
    answer("by key", spark.sql("SELECT rider, fare FROM trips WHERE uuid = 'k2'"))
    spark.sql("CREATE INDEX of_riders ON trips (rider)")
    answer("by rider", spark.sql("SELECT uuid, fare FROM trips WHERE rider = 'bob'"))
    spark.sql(
        "CREATE INDEX of_days ON trips USING column_stats(ts)"
        " OPTIONS (expr = 'from_unixtime', format = 'yyyy-MM-dd')"
    )
    day = "from_unixtime(ts, 'yyyy-MM-dd')"
    answer("by day", spark.sql(f"SELECT uuid FROM trips WHERE {day} = '2023-09-19'"))
    spark.sql("CREATE INDEX of_names ON trips USING bloom_filters(rider) OPTIONS (expr = 'lower')")
    answer("by name", spark.sql("SELECT uuid FROM trips WHERE lower(rider) = 'ana'"))
