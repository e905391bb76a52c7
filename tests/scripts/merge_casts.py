"""Sources of MERGE whose columns have other types than the table's, and expressions that change them."""


def main(spark, folder, answer):
    for kind in ("cow", "mor"):
        table = f"meters_{kind}"
        spark.sql(
            f"CREATE TABLE {table} (id INT, place STRING, level DOUBLE, n BIGINT, seen DATE, ts BIGINT)"
            " USING hudi"
            f" TBLPROPERTIES (type = '{kind}', primaryKey = 'id', preCombineField = 'ts')"
        )
        rows = f"SELECT id, place, level, n, seen, ts FROM {table}"
        spark.sql(
            f"INSERT INTO {table} VALUES (1, 'cellar', 1.5, 10, DATE'2024-01-01', 1),"
            " (2, 'roof', 2.5, 20, DATE'2024-01-02', 1)"
        )
        spark.sql(
            f"""
            MERGE INTO {table} t USING (
                SELECT 1 AS id, 'cellar' AS place, 3 AS level, 11 AS n, DATE'2024-02-01' AS seen, 2L AS ts
                UNION ALL
                SELECT 3, 'yard', 4, 30, DATE'2024-02-02', 2L
            ) s ON t.id = s.id
            WHEN MATCHED THEN UPDATE SET level = s.level, n = s.n, ts = s.ts
            WHEN NOT MATCHED THEN INSERT (id, place, level, n, seen, ts)
            VALUES (s.id, s.place, s.level, s.n, s.seen, s.ts)
            """
        )
        answer(f"{kind} whole numbers", spark.sql(rows))
        spark.sql(
            f"""
            MERGE INTO {table} t USING (
                SELECT 2 AS id, '7.25' AS level, '21' AS n, '2024-03-01' AS seen, 3L AS ts
            ) s ON t.id = s.id
            WHEN MATCHED THEN UPDATE SET level = CAST(s.level AS DOUBLE), n = CAST(s.n AS BIGINT),
                seen = CAST(s.seen AS DATE), ts = s.ts
            """
        )
        answer(f"{kind} texts that are cast", spark.sql(rows))
        spark.sql(
            f"""
            MERGE INTO {table} t
            USING (SELECT 3 AS id, CAST(9.5 AS FLOAT) AS level, 4L AS ts) s ON t.id = s.id
            WHEN MATCHED AND s.level > 5 THEN UPDATE SET level = s.level * 2, place = upper('yard'), ts = s.ts
            """
        )
        answer(f"{kind} expressions", spark.sql(rows))
