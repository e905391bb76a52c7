"""Rows whose personal columns are emptied, views that leave them out, and hard deletes of the oldest."""


def main(spark, folder, answer):
    spark.sql("SET hoodie.spark.sql.insert.into.operation = upsert")
    for kind in ("cow", "mor"):
        table = f"guests_{kind}"
        spark.sql(
            f"CREATE TABLE {table} (id INT, name STRING, mail STRING, gone BOOLEAN, ts BIGINT) USING hudi"
            f" TBLPROPERTIES (type = '{kind}', primaryKey = 'id', preCombineField = 'ts')"
        )
        spark.sql(
            f"INSERT INTO {table} VALUES (1, 'ann', 'a@x', false, 1), (2, 'bob', 'b@x', false, 2),"
            " (3, 'cyd', 'c@x', false, 3)"
        )
        spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW present_{kind} AS SELECT * FROM {table} WHERE NOT gone")
        spark.sql(
            f"UPDATE {table} SET name = NULL, mail = NULL, gone = true, ts = ts + 10 WHERE id IN (1, 3)"
        )
        answer(f"{kind} emptied", spark.sql(f"SELECT id, name, mail, gone, ts FROM {table}"))
        answer(f"{kind} present", spark.sql(f"SELECT id, name FROM present_{kind}"))
        spark.sql(f"INSERT INTO {table} VALUES (1, 'ann again', 'a@x', false, 5), (4, 'dan', 'd@x', NULL, 5)")
        answer(f"{kind} late", spark.sql(f"SELECT id, name, gone FROM {table}"))
        spark.sql(f"DELETE FROM {table} WHERE gone AND ts < 12")
        answer(f"{kind} deleted", spark.sql(f"SELECT id, gone FROM {table}"))
        answer(f"{kind} counted", spark.sql(f"SELECT count(*), count(name), count_if(gone) FROM {table}"))
    spark.sql("RESET hoodie.spark.sql.insert.into.operation")
