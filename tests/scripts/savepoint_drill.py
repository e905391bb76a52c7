"""A drill: a savepoint before a wrong job, the wrong job, the way back, and the right job."""


def main(spark, folder, answer):
    for kind in ("cow", "mor"):
        table = f"accounts_{kind}"
        spark.sql(
            f"CREATE TABLE {table} (id INT, owner STRING, money DECIMAL(10, 2), ts BIGINT) USING hudi"
            f" TBLPROPERTIES (type = '{kind}', primaryKey = 'id', preCombineField = 'ts',"
            " hoodie.metadata.enable = 'false')"
        )
        rows = f"SELECT id, owner, money FROM {table}"
        spark.sql(f"INSERT INTO {table} VALUES (1, 'ann', 10.00, 1), (2, 'bob', 20.50, 1)")
        spark.sql(f"UPDATE {table} SET money = money + 5, ts = 2 WHERE id = 1")

        def last(table=table):
            return max(row[0] for row in spark.sql(f"CALL show_commits(table => '{table}')").collect())

        good = last()
        by = "user => 'ann', comments => 'drill'"
        made = f"CALL create_savepoint(table => '{table}', commit_time => '{good}', {by})"
        answer(f"{kind} made", spark.sql(made))
        shown = spark.sql(f"CALL show_savepoints(table => '{table}')")
        answer(f"{kind} shown", [[row[0] == good] for row in shown.collect()])
        spark.sql(f"UPDATE {table} SET money = 0, ts = 3")
        spark.sql(f"DELETE FROM {table} WHERE owner = 'bob'")
        answer(f"{kind} wrong", spark.sql(rows))
        answer(
            f"{kind} back",
            spark.sql(f"CALL rollback_to_savepoint(table => '{table}', instant_time => '{good}')"),
        )
        answer(f"{kind} as before", spark.sql(rows))
        spark.sql(f"UPDATE {table} SET money = money * 2, ts = 4 WHERE owner = 'bob'")
        answer(f"{kind} right", spark.sql(rows))
        dropped = f"CALL delete_savepoint(table => '{table}', instant_time => '{good}')"
        answer(f"{kind} deleted", spark.sql(dropped))
        answer(f"{kind} none", spark.sql(f"CALL show_savepoints(table => '{table}')"))
        spark.sql(f"CALL rollback_to_instant(table => '{table}', instant_time => '{last()}')")
        answer(f"{kind} one taken back", spark.sql(rows))
