"""INSERT OVERWRITE of days and hours: the whole table, named partitions, those that the rows have."""

MODE = "hoodie.datasource.overwrite.mode"
OPERATION = "hoodie.datasource.write.operation"


def main(spark, folder, answer):
    for kind in ("cow", "mor"):
        table = f"load_{kind}"
        rows = f"SELECT id, n, day, hour FROM {table}"
        spark.sql(
            f"CREATE TABLE {table} (id INT, n INT, day STRING, hour STRING) USING hudi"
            f" PARTITIONED BY (day, hour) TBLPROPERTIES (type = '{kind}', primaryKey = 'id')"
        )

        def fill(table=table):
            spark.sql(
                f"INSERT OVERWRITE {table} VALUES (1, 1, 'd1', 'h1'), (2, 2, 'd1', 'h2'), (3, 3, 'd2', 'h1'),"
                " (4, 4, 'd2', 'h2')"
            )

        fill()
        answer(f"{kind} whole", spark.sql(rows))
        spark.sql(f"INSERT OVERWRITE {table} PARTITION (day = 'd1', hour = 'h1') SELECT 5, 5")
        answer(f"{kind} one partition", spark.sql(rows))
        spark.sql(f"INSERT OVERWRITE {table} PARTITION (day = 'd2', hour) SELECT 6, 6, 'h1'")
        answer(f"{kind} one day", spark.sql(rows))
        fill()
        spark.sql(f"SET {MODE} = dynamic")
        spark.sql(f"INSERT OVERWRITE {table} PARTITION (day = 'd2', hour) SELECT 7, 7, 'h1'")
        answer(f"{kind} dynamic of a day", spark.sql(rows))
        spark.sql(f"INSERT OVERWRITE {table} SELECT 8, 8, 'd1', 'h2' UNION ALL SELECT 9, 9, 'd3', 'h1'")
        answer(f"{kind} dynamic", spark.sql(rows))
        spark.sql(f"SET {MODE} = static")
        spark.sql(f"INSERT OVERWRITE {table} SELECT 10, 10, 'd1', 'h2'")
        answer(f"{kind} static", spark.sql(rows))
        spark.sql(f"RESET {MODE}")
        fill()
        spark.sql(f"SET {OPERATION} = insert_overwrite")
        spark.sql(f"INSERT OVERWRITE {table} SELECT 11, 11, 'd1', 'h1'")
        answer(f"{kind} operation insert_overwrite", spark.sql(rows))
        spark.sql(f"SET {OPERATION} = insert_overwrite_table")
        spark.sql(f"INSERT OVERWRITE {table} SELECT 12, 12, 'd1', 'h1'")
        answer(f"{kind} operation insert_overwrite_table", spark.sql(rows))
        spark.sql(f"RESET {OPERATION}")
