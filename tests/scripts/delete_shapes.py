"""DELETE in all its shapes: by key, by other columns, by partition, by subquery, of everything."""


def main(spark, folder, answer):
    for kind in ("cow", "mor"):
        table = f"mails_{kind}"
        spark.sql(
            f"CREATE TABLE {table} (id INT, who STRING, size INT, ts BIGINT, box STRING) USING hudi"
            f" PARTITIONED BY (box) TBLPROPERTIES (type = '{kind}', primaryKey = 'id', preCombineField ="
            " 'ts')"
        )
        spark.sql(
            f"INSERT INTO {table} SELECT CAST(id AS INT), concat('w', id % 5), CAST(id * 3 % 7 AS INT), 1L,"
            " concat('b', id % 3) FROM range(20)"
        )
        spark.sql(f"UPDATE {table} SET size = NULL, ts = 2 WHERE id = 19")
        spark.sql("CREATE OR REPLACE TEMPORARY VIEW blocked AS SELECT 'w4' AS who")
        left = f"SELECT id FROM {table}"
        for name, condition in (
            ("key", "id = 3"),
            ("keys", "id IN (4, 5, 77)"),
            ("other column", "who = 'w1' AND size > 2"),
            ("null", "size IS NULL"),
            ("or", "id = 0 OR (box = 'b2' AND size < 3)"),
            ("subquery", "who IN (SELECT who FROM blocked)"),
            ("expression", "id % 7 = 0"),
            ("between", "id BETWEEN 8 AND 10"),
            ("nothing", "id < 0"),
        ):
            spark.sql(f"DELETE FROM {table} WHERE {condition}")
            answer(f"{kind} {name}", spark.sql(left))
        spark.sql(f"INSERT INTO {table} VALUES (3, 'back', 1, 0, 'b0')")
        answer(f"{kind} back", spark.sql(f"SELECT id, who FROM {table} WHERE id = 3"))
        spark.sql(f"DELETE FROM {table}")
        answer(f"{kind} everything", spark.sql(f"SELECT count(*) FROM {table}"))
