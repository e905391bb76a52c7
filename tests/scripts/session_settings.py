"""What a session sets for reads and writes: kinds of queries, inserts, indexes; and takes back."""


def main(spark, folder, answer):
    spark.sql(
        "CREATE TABLE tasks (id INT, state STRING, ts BIGINT) USING hudi"
        " TBLPROPERTIES (type = 'mor', primaryKey = 'id', preCombineField = 'ts')"
    )
    rows = "SELECT id, state, ts FROM tasks"
    spark.sql("INSERT INTO tasks VALUES (1, 'open', 1), (2, 'open', 1)")
    spark.sql("UPDATE tasks SET state = 'done', ts = 2 WHERE id = 1")
    spark.sql("SET hoodie.datasource.query.type = read_optimized")
    spark.sql("REFRESH TABLE tasks")
    answer("read optimized", spark.sql(rows))
    spark.sql("SET hoodie.datasource.query.type = snapshot")
    spark.sql("REFRESH TABLE tasks")
    answer("snapshot", spark.sql(rows))
    spark.sql("RESET hoodie.datasource.query.type")
    spark.sql("REFRESH TABLE tasks")
    answer("reset", spark.sql(rows))
    spark.sql("SET hoodie.spark.sql.insert.into.operation = bulk_insert")
    spark.sql("INSERT INTO tasks VALUES (2, 'twice', 3)")
    answer("bulk insert", spark.sql(rows))
    spark.sql("SET hoodie.spark.sql.insert.into.operation = upsert")
    spark.sql("INSERT INTO tasks VALUES (1, 'late', 0), (3, 'open', 3)")
    answer("upsert", spark.sql(rows))
    spark.sql("RESET hoodie.spark.sql.insert.into.operation")
    spark.sql("SET hoodie.metadata.enable = true")
    spark.sql("SET hoodie.metadata.index.column.stats.enable = true")
    spark.sql("INSERT INTO tasks VALUES (4, 'open', 4)")
    spark.sql("SET hoodie.enable.data.skipping = true")
    answer("skipping", spark.sql(f"{rows} WHERE ts > 2 AND state = 'open'"))
    for key in ("metadata.enable", "metadata.index.column.stats.enable", "enable.data.skipping"):
        spark.sql(f"RESET hoodie.{key}")
