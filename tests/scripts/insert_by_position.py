"""Values by position into tables whose partition columns stand between others: they come last."""

META = (
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
)


def main(spark, folder, answer):
    spark.sql("SET hoodie.spark.sql.insert.into.operation = upsert")
    for kind in ("cow", "mor"):
        table = f"orders_{kind}"
        spark.sql(
            f"CREATE TABLE {table} (id INT, day STRING, item STRING, ts BIGINT, city STRING) USING hudi"
            f" PARTITIONED BY (day) TBLPROPERTIES (type = '{kind}', primaryKey = 'id', preCombineField ="
            " 'ts')"
        )

        def own(table=table):
            """Return all columns but Hudi's, in the order of the table."""
            return spark.table(table).drop(*META)

        spark.sql(f"INSERT INTO {table} VALUES (1, 'pen', 1, 'lima', '2024-01-01')")
        spark.sql(f"INSERT INTO {table} SELECT 2, 'ink', 1, 'oslo', '2024-01-02'")
        answer(f"{kind} by position", own())
        spark.sql(f"INSERT INTO {table} (day, id, item, city, ts) VALUES ('2024-01-02', 3, 'pad', 'rome', 1)")
        spark.sql(f"INSERT INTO {table} PARTITION (day = '2024-01-03') VALUES (4, 'cap', 1, 'bern')")
        answer(
            f"{kind} by name", spark.sql(f"SELECT id, day, item, city, _hoodie_partition_path FROM {table}")
        )
        source = spark.createDataFrame(
            [(1, "red pen", 2, "lima", "2024-01-01"), (5, "box", 2, "kiev", "2024-01-05")],
            "id int, item string, ts long, city string, day string",
        )
        source.write.insertInto(table)
        answer(f"{kind} insertInto", own())
        source.createOrReplaceTempView("source")
        spark.sql(
            f"""
            MERGE INTO {table} t USING (SELECT id, item, ts + 1 AS ts, city, day FROM source) s
            ON t.id = s.id AND t.day = s.day
            WHEN MATCHED THEN UPDATE SET item = concat(s.item, '!'), ts = s.ts
            WHEN NOT MATCHED THEN INSERT *
            """
        )
        answer(f"{kind} merged", own())
        columns = (
            spark.sql(f"DESCRIBE {table}").where("col_name IN ('id', 'day', 'item', 'ts', 'city')").distinct()
        )
        answer(f"{kind} columns", columns.select("col_name", "data_type"))
    spark.sql("RESET hoodie.spark.sql.insert.into.operation")
