"""Queries of earlier states by SQL: by instant, by text, joined with the present, copied into a new table."""


def main(spark, folder, answer):
    for kind in ("cow", "mor"):
        table = f"prices_{kind}"
        spark.sql(
            f"CREATE TABLE {table} (id INT, item STRING, price DOUBLE, ts BIGINT, shop STRING) USING hudi"
            f" PARTITIONED BY (shop) TBLPROPERTIES (type = '{kind}', primaryKey = 'id', preCombineField ="
            " 'ts')"
        )
        spark.sql(f"INSERT INTO {table} VALUES (1, 'pen', 1.0, 1, 'a'), (2, 'ink', 4.0, 1, 'b')")
        spark.sql(f"UPDATE {table} SET price = 1.5, ts = 2 WHERE id = 1")
        spark.sql(f"DELETE FROM {table} WHERE id = 2")
        spark.sql(f"INSERT INTO {table} VALUES (3, 'pad', 2.0, 3, 'b')")
        times = sorted(row[0] for row in spark.sql(f"CALL show_commits(table => '{table}')").collect())
        rows = f"SELECT id, item, price, shop FROM {table}"
        for at, time in enumerate(times):
            answer(f"{kind} at commit {at}", spark.sql(f"{rows} TIMESTAMP AS OF '{time}'"))
        first = times[0]
        text = (
            f"{first[:4]}-{first[4:6]}-{first[6:8]} {first[8:10]}:{first[10:12]}:{first[12:14]}.{first[14:]}"
        )
        answer(f"{kind} at a text", spark.sql(f"{rows} TIMESTAMP AS OF '{text}'"))
        answer(f"{kind} at a late day", spark.sql(f"{rows} TIMESTAMP AS OF '2199-01-01' WHERE price > 1.6"))
        changed = spark.sql(
            f"SELECT n.id, o.price, n.price FROM {table} n"
            f" JOIN (SELECT * FROM {table} TIMESTAMP AS OF '{first}') o ON n.id = o.id"
        )
        answer(f"{kind} then and now", changed)
        spark.sql(f"CREATE TABLE old_{kind} USING hudi AS {rows} TIMESTAMP AS OF '{first}'")
        answer(f"{kind} copied", spark.sql(f"SELECT id, item, price, shop FROM old_{kind}"))
