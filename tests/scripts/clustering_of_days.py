"""Clustering of chosen days by procedures, with orders and layouts; rows stay as they are."""


def main(spark, folder, answer):
    for kind in ("cow", "mor"):
        table = f"visits_{kind}"
        spark.sql(
            f"CREATE TABLE {table} (id INT, name STRING, n INT, day STRING) USING hudi PARTITIONED BY (day)"
            f" TBLPROPERTIES (type = '{kind}', primaryKey = 'id', hoodie.parquet.small.file.limit = '0')"
        )
        for step in range(6):
            spark.sql(f"INSERT INTO {table} VALUES ({step}, 'v{9 - step}', {step * 7 % 5}, 'd{step % 2}')")
        rows = f"SELECT id, name, n, day FROM {table}"

        def files(table=table):
            shown = spark.sql(f"CALL show_fsview_latest(table => '{table}')")
            return shown.groupBy("partition").count()

        answer(f"{kind} files", files())
        day = "selected_partitions => 'day=d0', order => 'name'"
        done = spark.sql(f"CALL run_clustering(table => '{table}', {day})")
        answer(f"{kind} one day", done.select("input_group_size", "state"))
        answer(f"{kind} files after", files())
        done = spark.sql(
            f"CALL run_clustering(table => '{table}', predicate => \"day = 'd1'\", order => 'n,name')"
        )
        answer(f"{kind} the other day", done.select("input_group_size", "state"))
        answer(f"{kind} rows", spark.sql(rows))
        spark.sql(f"INSERT INTO {table} VALUES (10, 'v', 1, 'd0')")
        spark.sql(f"INSERT INTO {table} VALUES (11, 'w', 1, 'd0')")
        spark.sql(f"CALL run_clustering(table => '{table}', order => 'n,name', order_strategy => 'z-order')")
        spark.sql(f"UPDATE {table} SET n = n + 100 WHERE id = 10")
        answer(f"{kind} rows at last", spark.sql(rows))
