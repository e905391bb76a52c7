"""Rows of a table by SQL: created, inserted, overwritten, updated, deleted."""

COLUMNS = "id, name, price, ts, day"


def main(spark, folder, answer):
    for kind in ("cow", "mor"):
        table = f"stock_{kind}"
        spark.sql(
            f"""
            CREATE TABLE {table} (id INT, name STRING, price DOUBLE, ts BIGINT, day STRING) USING hudi
            PARTITIONED BY (day) TBLPROPERTIES (type = '{kind}', primaryKey = 'id', preCombineField = 'ts')
            """
        )
        rows = f"SELECT {COLUMNS} FROM {table}"
        spark.sql(
            f"INSERT INTO {table} VALUES (1, 'pen', 1.5, 1000, 'mon'), (2, 'ink', 4.0, 1000, 'mon'),"
            " (3, 'pad', 2.5, 1000, 'tue'), (4, 'cap', 9.0, 1000, 'wed')"
        )
        answer(f"{kind} inserted", spark.sql(rows))
        spark.sql(f"INSERT INTO {table} PARTITION (day = 'thu') SELECT 5, 'tie', 12.0, 1000")
        spark.sql(f"UPDATE {table} SET price = price * 2, ts = 1001 WHERE day = 'mon' AND id > 1")
        answer(f"{kind} updated", spark.sql(rows))
        spark.sql(
            f"UPDATE {table} SET name = upper(name), ts = 1002 WHERE id IN (SELECT max(id) FROM {table})"
        )
        spark.sql(f"DELETE FROM {table} WHERE price BETWEEN 2 AND 3")
        answer(f"{kind} deleted", spark.sql(rows))
        spark.sql(f"INSERT OVERWRITE {table} PARTITION (day = 'mon') SELECT 6, 'mug', 7.0, 1003")
        answer(f"{kind} overwritten", spark.sql(rows))
        spark.sql(f"ALTER TABLE {table} ADD COLUMNS (note STRING)")
        spark.sql(
            f"INSERT INTO {table} (id, name, price, ts, note, day) VALUES (7, 'bag', 3.0, 1004, 'new', 'sun')"
        )
        answer(f"{kind} with a column", spark.sql(f"SELECT id, note, day FROM {table}"))
        spark.sql(f"ALTER TABLE {table} DROP PARTITION (day = 'wed')")
        answer(f"{kind} partitions", spark.sql(f"SHOW PARTITIONS {table}"))
        answer(f"{kind} average", spark.sql(f"SELECT day, avg(price) FROM {table} GROUP BY day"))
    spark.sql(
        "CREATE TABLE copied USING hudi TBLPROPERTIES (primaryKey = 'id') AS SELECT id, name FROM stock_cow"
    )
    answer("copied", spark.sql("SELECT id, name FROM copied"))
    spark.sql("TRUNCATE TABLE copied")
    answer("emptied", spark.sql("SELECT id, name FROM copied"))
