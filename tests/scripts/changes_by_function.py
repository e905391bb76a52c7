"""hudi_table_changes: newest rows and all changes, since and between commits, in each logging mode."""

IMAGES = (
    "op, coalesce(get_json_object(after, '$.id'), get_json_object(before, '$.id')) AS id,"
    " get_json_object(before, '$.n') AS old, get_json_object(after, '$.n') AS new"
)


def main(spark, folder, answer):
    spark.sql("SET hoodie.spark.sql.insert.into.operation = upsert")
    for mode in ("op_key_only", "data_before", "data_before_after"):
        table = f"counts_{mode}"
        spark.sql(
            f"CREATE TABLE {table} (id INT, n INT, ts BIGINT) USING hudi LOCATION '{folder}/{table}'"
            " TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts', 'hoodie.table.cdc.enabled' = 'true',"
            f" 'hoodie.table.cdc.supplemental.logging.mode' = '{mode}')"
        )
        spark.sql(f"INSERT INTO {table} VALUES (1, 10, 1), (2, 20, 1), (3, 30, 1)")
        spark.sql(f"UPDATE {table} SET n = n + 1, ts = 2 WHERE id < 3")
        spark.sql(f"DELETE FROM {table} WHERE id = 3")
        spark.sql(f"INSERT INTO {table} VALUES (1, 12, 3), (4, 40, 3)")
        commits = spark.sql(f"CALL show_commits(table => '{table}')").collect()
        done = sorted(row["state_transition_time"] for row in commits)

        def changes(what, kind, *bounds, of=table):
            given = "".join(f", '{bound}'" for bound in bounds)
            return spark.sql(f"SELECT {what} FROM hudi_table_changes('{of}', '{kind}'{given})")

        answer(f"{mode} all changes", changes(IMAGES, "cdc", "earliest"))
        answer(f"{mode} changes since", changes(IMAGES, "cdc", done[1]))
        answer(f"{mode} changes between", changes(IMAGES, "cdc", done[0], done[2]))
        answer(f"{mode} newest rows", changes("id, n", "latest_state", "earliest"))
        answer(f"{mode} newest rows since", changes("id, n", "latest_state", done[1]))
        by_path = changes(IMAGES, "cdc", "earliest", of=f"{folder}/{table}")
        answer(f"{mode} by path", by_path.groupBy("op").count())
    spark.sql("RESET hoodie.spark.sql.insert.into.operation")
