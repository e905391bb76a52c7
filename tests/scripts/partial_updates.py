"""Some columns changed, and the others left as they are: by UPDATE, by MERGE, after a compaction."""


def main(spark, folder, answer):
    for kind in ("cow", "mor"):
        table = f"stock_{kind}"
        rows = f"SELECT id, name, price, amount, ts FROM {table}"
        spark.sql(
            f"CREATE TABLE {table} (id INT, name STRING, price DOUBLE, amount INT, ts BIGINT) USING hudi"
            f" TBLPROPERTIES (type = '{kind}', primaryKey = 'id', preCombineField = 'ts')"
        )
        spark.sql(
            f"INSERT INTO {table} VALUES (1, 'pen', 1.5, 10, 1), (2, 'ink', 4.0, 20, 1),"
            " (3, 'pad', 2.0, 5, 1)"
        )
        spark.sql(f"UPDATE {table} SET price = price * 2, ts = 2 WHERE id < 3")
        answer(f"{kind} update", spark.sql(rows))
        spark.createDataFrame(
            [(1, 11, 3), (2, 21, 3), (4, 40, 3)], "id int, amount int, ts long"
        ).createOrReplaceTempView("counted")
        spark.sql(
            f"""
            MERGE INTO {table} AS t USING counted AS s ON t.id = s.id
            WHEN MATCHED THEN UPDATE SET t.amount = s.amount, t.ts = s.ts
            WHEN NOT MATCHED THEN INSERT (id, name, price, amount, ts)
            VALUES (s.id, 'new', 0.5, s.amount, s.ts)
            """
        )
        answer(f"{kind} merge", spark.sql(rows))
        spark.createDataFrame(
            [(1, "red pen", 4), (3, "blue pad", 4)], "id int, name string, ts long"
        ).createOrReplaceTempView("named")
        spark.sql(
            f"""
            MERGE INTO {table} AS t USING named AS s ON t.id = s.id
            WHEN MATCHED AND s.name LIKE 'red%' THEN UPDATE SET name = s.name, ts = s.ts
            """
        )
        answer(f"{kind} conditional merge", spark.sql(rows))
    options = "hoodie.compact.inline.max.delta.commits=1"
    spark.sql(f"CALL run_compaction(op => 'schedule', table => 'stock_mor', options => '{options}')")
    spark.sql("CALL run_compaction(op => 'execute', table => 'stock_mor')")
    answer("mor compacted", spark.sql("SELECT id, name, price, amount, ts FROM stock_mor"))
