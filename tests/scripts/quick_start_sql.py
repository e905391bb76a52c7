"""Quick start in SQL: create, insert, query, update, merge, delete, travel in time."""

COLUMNS = "ts, uuid, rider, driver, fare, city"


def main(spark, folder, answer):
    spark.sql(
        """
        CREATE TABLE trips (ts BIGINT, uuid STRING, rider STRING, driver STRING, fare DOUBLE, city STRING)
        USING hudi PARTITIONED BY (city) TBLPROPERTIES (primaryKey = 'uuid', preCombineField = 'ts')
        """
    )
    spark.sql(
        """
        INSERT INTO trips VALUES
        (1001, 'k1', 'rider-a', 'driver-m', 19.5, 'quito'),
        (1002, 'k2', 'rider-b', 'driver-n', 27.75, 'quito'),
        (1003, 'k3', 'rider-c', 'driver-o', 33.25, 'turin'),
        (1004, 'k4', 'rider-d', 'driver-p', 93.5, 'turin'),
        (1005, 'k5', 'rider-e', 'driver-q', 17.25, 'osaka')
        """
    )
    answer("dear", spark.sql("SELECT ts, fare, rider, driver, city FROM trips WHERE fare > 20.0"))
    first = spark.sql("SELECT max(_hoodie_commit_time) FROM trips").first()[0]
    spark.sql("UPDATE trips SET fare = 25.0, ts = 1006 WHERE rider = 'rider-a'")
    spark.createDataFrame(
        [
            (1007, "k2", "rider-b", "driver-z", 30.0, "quito"),
            (1008, "k9", "rider-j", "driver-y", 8.0, "osaka"),
        ],
        "ts long, uuid string, rider string, driver string, fare double, city string",
    ).createOrReplaceTempView("fare_adjustment")
    spark.sql(
        """
        MERGE INTO trips AS target USING fare_adjustment AS source ON target.uuid = source.uuid
        WHEN MATCHED THEN UPDATE SET target.fare = target.fare + source.fare, target.ts = source.ts
        WHEN NOT MATCHED THEN INSERT *
        """
    )
    answer("merged", spark.sql(f"SELECT {COLUMNS} FROM trips"))
    spark.sql("DELETE FROM trips WHERE uuid = 'k3'")
    answer("deleted", spark.sql(f"SELECT {COLUMNS} FROM trips"))
    answer("before", spark.sql(f"SELECT {COLUMNS} FROM trips TIMESTAMP AS OF '{first}'"))
    changes = "hudi_table_changes('trips', 'latest_state', 'earliest')"
    answer("incremental", spark.sql(f"SELECT uuid, fare FROM {changes} WHERE fare > 20.0"))
    answer("tables", spark.sql("SHOW TABLES").where("not isTemporary").select("tableName"))
    spark.sql("DROP TABLE trips")
    answer("dropped", spark.sql("SHOW TABLES").where("not isTemporary").select("tableName"))
