"""A table kept at a commit, restored to it, and a write taken back."""


def main(spark, folder, answer):
    for kind in ("cow", "mor"):
        table = f"ledger_{kind}"
        spark.sql(
            f"CREATE TABLE {table} (id INT, sum INT, ts BIGINT) USING hudi"
            f" TBLPROPERTIES (type = '{kind}', primaryKey = 'id', preCombineField = 'ts')"
        )

        def newest(table=table):
            shown = spark.sql(f"CALL show_commits(table => '{table}', limit => 1)")
            return shown.first()["commit_time"]

        rows = f"SELECT id, sum FROM {table}"
        spark.sql(f"INSERT INTO {table} VALUES (1, 10, 1), (2, 20, 1)")
        kept = newest()
        answer(f"{kind} saved", spark.sql(f"CALL create_savepoint('{table}', '{kept}')"))
        spark.sql(f"UPDATE {table} SET sum = sum * 2, ts = 2 WHERE id = 1")
        spark.sql(f"INSERT INTO {table} VALUES (3, 30, 3)")
        answer(f"{kind} before", spark.sql(rows))
        undone = spark.sql(f"CALL rollback_to_instant(table => '{table}', instant_time => '{newest()}')")
        answer(f"{kind} undone", undone)
        answer(f"{kind} after it", spark.sql(rows))
        answer(f"{kind} restored", spark.sql(f"CALL rollback_to_savepoint('{table}', '{kept}')"))
        answer(f"{kind} at the savepoint", spark.sql(rows))
        spark.sql(f"INSERT INTO {table} VALUES (4, 40, 4)")
        answer(f"{kind} goes on", spark.sql(rows))
        spark.sql(f"CALL delete_savepoint('{table}', '{kept}')")
        answer(
            f"{kind} savepoints",
            spark.sql(f"CALL show_savepoints(table => '{table}')").selectExpr("count(*)"),
        )
