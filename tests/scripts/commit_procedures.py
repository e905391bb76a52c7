"""Procedures that tell of commits their files, partitions and records, and the properties of the table."""


def main(spark, folder, answer):
    spark.sql(
        "CREATE TABLE parcels (id INT, place STRING, ts BIGINT, day STRING) USING hudi PARTITIONED BY (day)"
        f" LOCATION '{folder}/parcels' TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts')"
    )
    spark.sql(
        "INSERT INTO parcels SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'hub', 1, 'd1'),"
        " (2, 'hub', 1, 'd1'), (3, 'hub', 1, 'd2')"
    )
    spark.sql("UPDATE parcels SET place = 'van', ts = 2 WHERE id IN (1, 3)")
    spark.sql("DELETE FROM parcels WHERE id = 2")
    spark.sql("INSERT OVERWRITE parcels PARTITION (day = 'd2') SELECT 4, 'hub', 3")
    commits = spark.sql("CALL show_commits(table => 'parcels', limit => 10)")
    counts = (
        "action",
        "total_files_added",
        "total_files_updated",
        "total_partitions_written",
        "total_records_written",
        "total_update_records_written",
        "total_errors",
    )
    answer("commits", commits.select(*counts))
    answer("two commits", spark.sql("CALL show_commits('parcels', 2)").select(*counts))
    told = spark.sql("CALL show_commits_metadata(table => 'parcels')")
    answer(
        "metadata",
        told.select("action", "partition", "num_writes", "num_inserts", "num_deletes", "num_update_writes"),
    )
    for at, row in enumerate(sorted(commits.collect())[:3]):
        time = row[0]
        files = spark.sql(f"CALL show_commit_files(table => 'parcels', instant_time => '{time}')")
        answer(
            f"files {at}",
            files.select("action", "partition_path", "total_records_updated", "total_records_written"),
        )
        parts = spark.sql(f"CALL show_commit_partitions(table => 'parcels', instant_time => '{time}')")
        answer(
            f"partitions {at}", parts.select("partition_path", "total_files_added", "total_records_inserted")
        )
        stats = spark.sql(f"CALL show_commit_write_stats(table => 'parcels', instant_time => '{time}')")
        answer(f"stats {at}", stats.select("action", "total_records_written"))
    extra = spark.sql(
        "CALL show_commit_extra_metadata(table => 'parcels', metadata_key => 'schema', limit => 2)"
    )
    answer("extra", extra.select("action", "metadata_key"))
    answer(
        "properties",
        spark.sql("CALL show_table_properties(table => 'parcels', limit => 100)").where(
            "key IN ('hoodie.table.name', 'hoodie.table.type', 'hoodie.table.recordkey.fields',"
            " 'hoodie.table.partition.fields', 'hoodie.table.ordering.fields')"
        ),
    )
    told = spark.sql("CALL stats_wa(table => 'parcels')").collect()
    answer("amplification", [list(row)[1:] for row in told])
    answer("invalid", spark.sql(f"CALL show_invalid_parquet(path => '{folder}/parcels')"))
    help_text = spark.sql("CALL help(cmd => 'show_commits')").collect()[0][0]
    answer("help", [[name in help_text] for name in ("table", "limit", "commit_time", "total_errors")])
