"""Services and looks at a table by CALL."""


def main(spark, folder, answer):
    spark.sql(
        """
        CREATE TABLE logs (id INT, text STRING, ts BIGINT) USING hudi
        TBLPROPERTIES (type = 'mor', primaryKey = 'id', preCombineField = 'ts',
        'hoodie.compact.inline' = 'false')
        """
    )
    spark.sql("INSERT INTO logs VALUES (1, 'a', 1), (2, 'b', 1)")
    for ts in (2, 3):
        spark.sql(f"UPDATE logs SET text = concat(text, '+'), ts = {ts} WHERE id = 1")
    commits = spark.sql("CALL show_commits(table => 'logs', limit => 10)")
    answer("commits", commits.select("action", "total_records_written", "total_update_records_written"))
    planned = spark.sql(
        "CALL run_compaction(op => 'schedule', table => 'logs',"
        " options => 'hoodie.compact.inline.max.delta.commits=1')"
    )
    answer("planned", planned.select("operation_size", "state"))
    done = spark.sql("CALL run_compaction(op => 'execute', table => 'logs')")
    answer("compacted", done.select("operation_size", "state"))
    answer(
        "compactions", spark.sql("CALL show_compaction(table => 'logs')").select("operation_size", "state")
    )
    answer("rows", spark.sql("SELECT id, text FROM logs"))
    newest = spark.sql("CALL show_commits(table => 'logs', limit => 1)").first()[0]
    made = spark.sql(f"CALL create_savepoint(table => 'logs', commit_time => '{newest}')")
    answer("savepoint", made)
    spark.sql("INSERT INTO logs VALUES (3, 'c', 9)")
    spark.sql(f"CALL rollback_to_savepoint(table => 'logs', instant_time => '{newest}')")
    answer("restored", spark.sql("SELECT id, text FROM logs"))
    answer("savepoints", spark.sql("CALL show_savepoints(table => 'logs')").selectExpr("count(*)"))
    answer("dropped", spark.sql(f"CALL delete_savepoint(table => 'logs', instant_time => '{newest}')"))
    properties = spark.sql("CALL show_table_properties(table => 'logs', limit => 100)")
    answer("properties", properties.where("key IN ('hoodie.table.type', 'hoodie.table.recordkey.fields')"))
