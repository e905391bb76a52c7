"""One MERGE with conditions in each clause: stock that is delivered, sold, taken off the list, and new."""


def main(spark, folder, answer):
    for kind in ("cow", "mor"):
        table = f"stock_{kind}"
        spark.sql(
            f"CREATE TABLE {table} (id INT, item STRING, n INT, price DOUBLE, ts BIGINT) USING hudi"
            f" TBLPROPERTIES (type = '{kind}', primaryKey = 'id', preCombineField = 'ts')"
        )
        rows = f"SELECT id, item, n, price, ts FROM {table}"
        spark.sql(
            f"INSERT INTO {table} VALUES (1, 'pen', 5, 1.5, 1), (2, 'ink', 0, 4.0, 1), (3, 'pad', 7, 2.0, 1),"
            " (4, 'cap', 2, 9.0, 1)"
        )
        spark.createDataFrame(
            [
                (1, "pen", 3, 1.5, 2, "in"),
                (2, "ink", 0, 4.0, 2, "off"),
                (3, "pad", 7, 2.5, 2, "price"),
                (5, "box", 8, 3.0, 2, "in"),
                (6, "bag", 0, 3.0, 2, "off"),
            ],
            "id int, item string, n int, price double, ts long, what string",
        ).createOrReplaceTempView("news")
        spark.sql(
            f"""
            MERGE INTO {table} t USING news s ON t.id = s.id
            WHEN MATCHED AND s.what = 'in' THEN
            UPDATE SET id = s.id, item = s.item, n = s.n + 5, price = s.price, ts = s.ts
            WHEN MATCHED AND s.what = 'price' THEN
            UPDATE SET id = s.id, item = s.item, n = s.n, price = s.price, ts = s.ts
            WHEN MATCHED AND s.what = 'off' THEN DELETE
            WHEN NOT MATCHED AND s.what = 'in' THEN INSERT (id, item, n, price, ts)
            VALUES (s.id, s.item, s.n, s.price, s.ts)
            """
        )
        answer(f"{kind} news", spark.sql(rows))
        spark.sql(
            f"""
            MERGE INTO {table} AS t USING (
                SELECT id, max(ts) + 5 AS ts, sum(n) AS n FROM news WHERE n > 0 GROUP BY id
            ) AS s ON s.id = t.id
            WHEN MATCHED AND t.n > 6 THEN UPDATE SET id = s.id, n = CAST(s.n AS INT), ts = s.ts
            """
        )
        answer(f"{kind} of groups", spark.sql(rows))
        spark.sql(
            f"MERGE INTO {table} t USING (SELECT id, 99L AS ts FROM news) s ON t.id = s.id"
            " WHEN MATCHED THEN DELETE"
        )
        answer(f"{kind} deleted", spark.sql(rows))
