"""Columns added and widened by ALTER TABLE."""


def main(spark, folder, answer):
    for kind in ("cow", "mor"):
        table = f"goods_{kind}"
        spark.sql(
            f"CREATE TABLE {table} (id INT, amount INT, ts BIGINT) USING hudi"
            f" TBLPROPERTIES (type = '{kind}', primaryKey = 'id', preCombineField = 'ts')"
        )
        spark.sql(f"INSERT INTO {table} VALUES (1, 10, 1), (2, 20, 1)")
        spark.sql(f"ALTER TABLE {table} ADD COLUMNS (note STRING, weight DOUBLE)")
        answer(f"{kind} added", spark.sql(f"SELECT id, amount, note, weight FROM {table}"))
        spark.sql(f"INSERT INTO {table} (id, amount, ts, note, weight) VALUES (3, 30, 2, 'new', 1.5)")
        spark.sql(f"UPDATE {table} SET note = 'old', ts = 3 WHERE note IS NULL AND id = 1")
        answer(f"{kind} filled", spark.sql(f"SELECT id, amount, note, weight FROM {table}"))
        spark.sql(f"ALTER TABLE {table} RENAME TO {table}_renamed")
        answer(f"{kind} renamed", spark.sql(f"SELECT count(*) FROM {table}_renamed"))
        spark.sql(f"ALTER TABLE {table}_renamed SET TBLPROPERTIES (comment = 'of the shop')")
        shown = spark.sql(f"SHOW TBLPROPERTIES {table}_renamed ('comment')")
        answer(f"{kind} property", shown.select("value"))
