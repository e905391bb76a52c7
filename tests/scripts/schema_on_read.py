"""Columns renamed, dropped, widened and moved by SQL with schema on read, and rows of before and after."""

SETTINGS = {
    "hoodie.schema.on.read.enable": "true",
    "hoodie.datasource.write.schema.allow.auto.evolution.column.drop": "true",
}


def main(spark, folder, answer):
    for key, value in SETTINGS.items():
        spark.sql(f"SET {key}={value}")
    try:
        for kind in ("cow", "mor"):
            run(spark, kind, answer)
    finally:
        for key in SETTINGS:
            spark.sql(f"RESET {key}")


def run(spark, kind, answer):
    table = f"staff_{kind}"
    spark.sql(
        f"CREATE TABLE {table} (id INT, name STRING, grade INT, pay FLOAT, note STRING, ts BIGINT) USING hudi"
        f" TBLPROPERTIES (type = '{kind}', primaryKey = 'id', preCombineField = 'ts')"
    )
    spark.sql(f"INSERT INTO {table} VALUES (1, 'ann', 3, 10.5, 'x', 1), (2, 'ben', 4, 20.25, 'y', 1)")
    spark.sql(f"UPDATE {table} SET grade = 5, ts = 2 WHERE id = 2")
    spark.sql(f"ALTER TABLE {table} RENAME COLUMN name TO full_name")
    answer(f"{kind} renamed", spark.sql(f"SELECT id, full_name, grade FROM {table}"))
    spark.sql(f"ALTER TABLE {table} ALTER COLUMN grade TYPE BIGINT")
    spark.sql(f"INSERT INTO {table} VALUES (3, 'cem', 5000000000, 30.0, 'z', 3)")
    answer(f"{kind} wider", spark.sql(f"SELECT id, full_name, grade, pay FROM {table}"))
    spark.sql(f"ALTER TABLE {table} DROP COLUMN note")
    answer(f"{kind} dropped", spark.sql(f"SELECT * FROM {table}").drop(*META))
    spark.sql(f"ALTER TABLE {table} ADD COLUMNS (marks INT AFTER ts)")
    answer(f"{kind} added", spark.sql(f"SELECT id, marks FROM {table}"))
    spark.sql(f"UPDATE {table} SET marks = 7, ts = 4 WHERE id = 1")
    answer(f"{kind} filled", spark.sql(f"SELECT id, full_name, grade, marks FROM {table} WHERE grade >= 3"))
    spark.sql(f"DELETE FROM {table} WHERE full_name = 'ben'")
    answer(f"{kind} deleted", spark.sql(f"SELECT id, full_name FROM {table}"))


META = [
    f"_hoodie_{each}" for each in ("commit_time", "commit_seqno", "record_key", "partition_path", "file_name")
]
