"""Changes of a source merged into a table."""


def main(spark, folder, answer):
    for kind in ("cow", "mor"):
        table = f"people_{kind}"
        spark.sql(
            f"""
            CREATE TABLE {table} (id INT, name STRING, age INT, ts BIGINT, land STRING) USING hudi
            PARTITIONED BY (land) TBLPROPERTIES (type = '{kind}', primaryKey = 'id', preCombineField = 'ts')
            """
        )
        rows = f"SELECT id, name, age, ts, land FROM {table}"
        spark.sql(
            f"INSERT INTO {table} VALUES (1, 'ada', 30, 1, 'de'), (2, 'bob', 40, 1, 'de'),"
            " (3, 'cyd', 50, 1, 'pe'), (4, 'dan', 60, 1, 'pe')"
        )
        spark.createDataFrame(
            [(1, "ada", 31, 2, "de", "u"), (2, "bob", 41, 2, "de", "d"), (5, "eve", 20, 2, "no", "i")],
            "id int, name string, age int, ts long, land string, op string",
        ).createOrReplaceTempView("changes")
        spark.sql(
            f"""
            MERGE INTO {table} AS t USING changes AS s ON t.id = s.id
            WHEN MATCHED AND s.op = 'd' THEN DELETE
            WHEN MATCHED AND s.op = 'u' THEN UPDATE SET name = s.name, age = s.age + 1, ts = s.ts
            WHEN NOT MATCHED THEN INSERT (id, name, age, ts, land) VALUES (s.id, s.name, s.age, s.ts, s.land)
            """
        )
        answer(f"{kind} merged", spark.sql(rows))
        spark.sql(
            f"""
            MERGE INTO {table} t USING (
                SELECT 3 AS id, 'cyd' AS name, 51 AS age, 3L AS ts, 'pe' AS land UNION ALL
                SELECT 6, 'fay', 10, 3L, 'no'
            ) s ON t.id = s.id
            WHEN MATCHED THEN UPDATE SET *
            WHEN NOT MATCHED AND s.age > 5 THEN INSERT *
            """
        )
        answer(f"{kind} with stars", spark.sql(rows))
        older = spark.sql(
            f"SELECT id, upper(name) AS name, ts + 10 AS ts, land FROM {table} WHERE land = 'no'"
        )
        spark.createDataFrame(older.collect(), older.schema).createOrReplaceTempView("older")
        # Hudi sets columns of MERGE_ON_READ tables by those of the source only.
        name = "concat(t.name, '!')" if kind == "cow" else "s.name"
        spark.sql(
            f"""
            MERGE INTO {table} t USING older s ON t.id = s.id
            WHEN MATCHED AND t.age < 15 THEN DELETE
            WHEN MATCHED THEN UPDATE SET name = {name}, ts = s.ts
            """
        )
        answer(f"{kind} of its own rows", spark.sql(rows))
        spark.sql(
            f"""
            MERGE INTO {table} t USING (SELECT 3 AS id, 'd' AS op, 90L AS ts, 'pe' AS land) s ON t.id = s.id
            WHEN MATCHED AND s.op = 'd' THEN DELETE
            WHEN MATCHED THEN UPDATE SET name = 'kept', ts = s.ts
            """
        )
        answer(f"{kind} first clause that matches", spark.sql(rows))
        spark.sql(
            f"""
            MERGE INTO {table} t USING (SELECT 4 AS id, 'new' AS name, 91L AS ts) s ON t.id = s.id
            WHEN MATCHED THEN UPDATE SET name = s.name, ts = s.ts
            """
        )
        answer(f"{kind} by a source without the partition", spark.sql(rows))
