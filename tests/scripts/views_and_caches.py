"""Query views and cached tables after each kind of change."""


def main(spark, folder, answer):
    for kind in ("cow", "mor"):
        table = f"seats_{kind}"
        spark.sql(
            f"CREATE TABLE {table} (id INT, guest STRING, ts BIGINT) USING hudi"
            f" TBLPROPERTIES (type = '{kind}', primaryKey = 'id', preCombineField = 'ts')"
        )
        spark.sql(f"INSERT INTO {table} VALUES (1, 'ann', 1), (2, 'bob', 1), (3, 'cyd', 1)")
        rows = f"SELECT id, guest FROM {table}"
        spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW taken_{kind} AS {rows} WHERE guest IS NOT NULL")
        spark.sql(f"CACHE TABLE {table}")
        answer(f"{kind} cached", spark.sql(rows))
        for name, statement in (
            ("updated", f"UPDATE {table} SET guest = 'dan', ts = 2 WHERE id = 1"),
            ("deleted", f"DELETE FROM {table} WHERE id = 2"),
            ("inserted", f"INSERT INTO {table} VALUES (4, 'eve', 1)"),
            (
                "merged",
                f"MERGE INTO {table} t USING (SELECT 3 AS id, 'fay' AS guest, 5L AS ts) s ON t.id = s.id"
                " WHEN MATCHED THEN UPDATE SET *",
            ),
        ):
            spark.sql(statement)
            answer(f"{kind} {name}", spark.sql(rows))
            answer(f"{kind} {name}, by view", spark.sql(f"SELECT count(*), max(guest) FROM taken_{kind}"))
        spark.sql(f"UNCACHE TABLE {table}")
        spark.sql(f"INSERT INTO {table} VALUES (5, NULL, 1)")
        answer(f"{kind} uncached", spark.sql(rows))
        answer(f"{kind} by view", spark.sql(f"SELECT id FROM taken_{kind}"))
