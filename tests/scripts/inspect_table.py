"""Procedures that show commits, files and properties."""


def main(spark, folder, answer):
    spark.sql(
        """
        CREATE TABLE audits (id INT, name STRING, ts BIGINT, part STRING) USING hudi PARTITIONED BY (part)
        TBLPROPERTIES (type = 'cow', primaryKey = 'id', preCombineField = 'ts')
        """
    )
    spark.sql("INSERT INTO audits VALUES (1, 'a', 1, 'x'), (2, 'b', 1, 'y'), (3, 'c', 1, 'y')")
    spark.sql("UPDATE audits SET name = 'b+', ts = 2 WHERE id = 2")
    commits = spark.sql("CALL show_commits(table => 'audits', limit => 10)")
    answer(
        "commits",
        commits.select(
            "action",
            "total_files_added",
            "total_files_updated",
            "total_partitions_written",
            "total_records_written",
            "total_update_records_written",
            "total_errors",
        ),
    )
    newest = commits.first()["commit_time"]
    files = spark.sql(f"CALL show_commit_files(table => 'audits', instant_time => '{newest}')")
    answer(
        "files",
        files.select(
            "action", "partition_path", "total_records_updated", "total_records_written", "total_errors"
        ),
    )
    parts = spark.sql(f"CALL show_commit_partitions(table => 'audits', instant_time => '{newest}')")
    answer(
        "partitions",
        parts.select(
            "action",
            "partition_path",
            "total_files_added",
            "total_files_updated",
            "total_records_inserted",
            "total_records_updated",
        ),
    )
    stats = spark.sql(f"CALL show_commit_write_stats(table => 'audits', instant_time => '{newest}')")
    answer("write stats", stats.select("action", "total_records_written"))
    properties = spark.sql("CALL show_table_properties(table => 'audits', limit => 100)")
    keys = (
        "'hoodie.table.type'",
        "'hoodie.table.recordkey.fields'",
        "'hoodie.table.partition.fields'",
        "'hoodie.table.name'",
        "'hoodie.datasource.write.hive_style_partitioning'",
    )
    answer("properties", properties.where(f"key IN ({', '.join(keys)})"))
    view = spark.sql("CALL show_fsview_latest(table => 'audits', partition_path => 'part=y')")
    answer("file system view", view.selectExpr("count(*)"))
    rollbacks = spark.sql("CALL show_rollbacks(table => 'audits')")
    answer("rollbacks", rollbacks.selectExpr("count(*)"))
