"""Clean by procedures, by versions and by commits, and show the cleans and the rows."""


def main(spark, folder, answer):
    spark.sql("SET hoodie.spark.sql.insert.into.operation = upsert")
    inline = ", hoodie.compact.inline = 'true', hoodie.compact.inline.max.delta.commits = '1'"
    for kind, more in (("cow", ""), ("mor", inline)):
        table = f"rates_{kind}"
        spark.sql(
            f"CREATE TABLE {table} (id INT, rate INT, ts BIGINT, zone STRING) USING hudi PARTITIONED BY"
            " (zone)"
            f" TBLPROPERTIES (type = '{kind}', primaryKey = 'id', preCombineField = 'ts',"
            f" hoodie.clean.automatic = 'false'{more})"
        )
        for step in range(1, 6):
            spark.sql(f"INSERT INTO {table} VALUES (1, {step}, {step}, 'a'), (2, {step * 10}, {step}, 'b')")

        def count(table=table):
            files = spark.sql(f"CALL show_fsview_all(table => '{table}', limit => 100)")
            return files.groupBy("partition").count()

        answer(f"{kind} versions", count())
        cleaned = spark.sql(
            f"CALL run_clean(table => '{table}', clean_policy => 'KEEP_LATEST_FILE_VERSIONS',"
            " file_versions_retained => 2, trigger_max_commits => 1)"
        )
        answer(f"{kind} deleted", cleaned.select("total_files_deleted", "version"))
        answer(f"{kind} versions left", count())
        shown = spark.sql(f"CALL show_cleans(table => '{table}')")
        answer(f"{kind} cleans", shown.select("action", "total_files_deleted"))
        plans = spark.sql(f"CALL show_clean_plans(table => '{table}')")
        answer(f"{kind} plans", plans.select("state", "action", "policy", "total_partitions_to_clean"))
        told = spark.sql(f"CALL show_cleans_metadata(table => '{table}')")
        answer(f"{kind} partitions", told.select("partition_path", "policy", "success_delete_files"))
        none = spark.sql(f"CALL show_cleans(table => '{table}', filter => 'total_files_deleted > 100')")
        answer(f"{kind} none", none.select("action"))
        spark.sql(f"INSERT INTO {table} VALUES (1, 6, 6, 'a')")
        again = spark.sql(
            f"CALL run_clean(table => '{table}', clean_policy => 'KEEP_LATEST_COMMITS', retain_commits => 1)"
        )
        answer(f"{kind} deleted by commits", again.select("total_files_deleted"))
        answer(f"{kind} rows", spark.sql(f"SELECT id, rate, zone FROM {table}"))
    spark.sql("RESET hoodie.spark.sql.insert.into.operation")
