"""UPDATE in all its shapes: expressions, CASE, conditions on partitions, subqueries, missing values."""


def main(spark, folder, answer):
    for kind in ("cow", "mor"):
        table = f"wages_{kind}"
        spark.sql(
            f"CREATE TABLE {table} (id INT, name STRING, pay DECIMAL(10, 2), grade INT, ts BIGINT, unit"
            " STRING) USING hudi"
            f" PARTITIONED BY (unit) TBLPROPERTIES (type = '{kind}', primaryKey = 'id', preCombineField ="
            " 'ts')"
        )
        spark.sql(
            f"INSERT INTO {table} VALUES (1, 'ann', 10.00, 1, 1, 'x'), (2, 'bob', 20.00, 2, 1, 'x'),"
            " (3, 'cyd', 30.00, NULL, 1, 'y'), (4, NULL, 40.00, 4, 1, 'y')"
        )
        rows = f"SELECT id, name, pay, grade, ts, unit FROM {table}"
        spark.sql("CREATE OR REPLACE TEMPORARY VIEW raised AS SELECT * FROM VALUES (1), (3) AS t(id)")
        for name, change in (
            ("expression", "SET pay = pay * 1.1, ts = ts + 1 WHERE id = 1"),
            ("case", "SET grade = CASE WHEN pay > 25 THEN 9 ELSE coalesce(grade, 0) END"),
            ("partition", "SET pay = pay + 1 WHERE unit = 'y' AND id > 3"),
            ("null", "SET name = NULL WHERE name = 'bob'"),
            ("of null", "SET name = 'new' WHERE name IS NULL"),
            ("subquery", "SET grade = 100 WHERE id IN (SELECT id FROM raised)"),
            ("cast", "SET grade = CAST('7' AS INT), pay = 5 WHERE id = 2"),
            ("literal text", "SET grade = '8' WHERE id = 2"),
            ("nothing", "SET pay = 0 WHERE id = 77"),
            ("older", "SET ts = 0, name = 'older' WHERE id = 4"),
        ):
            spark.sql(f"UPDATE {table} {change}")
            answer(f"{kind} {name}", spark.sql(rows))
