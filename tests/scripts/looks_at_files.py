"""Procedures that look at files, statistics and extra metadata of commits."""


def main(spark, folder, answer):
    path = f"{folder}/parcels"
    options = {
        "hoodie.table.name": "parcels",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "depot",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.commitmeta.key.prefix": "job_",
        "job_name": "nightly",
        "hoodie.compact.inline": "false",
    }

    def write(rows):
        df = spark.createDataFrame(rows, "id int, weight double, ts long, depot string")
        df.write.format("hudi").options(**options).mode("append").save(path)

    write([(1, 1.5, 1, "n"), (2, 2.5, 1, "n"), (3, 3.5, 1, "s")])
    write([(1, 1.75, 2, "n"), (4, 4.5, 2, "s")])
    spark.sql(f"CREATE TABLE parcels USING hudi LOCATION '{path}'")

    def call(procedure, *columns, where="true", **arguments):
        given = "".join(f", {key} => {value}" for key, value in arguments.items())
        return spark.sql(f"CALL {procedure}(table => 'parcels'{given})").where(where).selectExpr(*columns)

    answer("commits", call("show_commits", "action", "total_records_written", "total_errors", limit=10))
    answer(
        "metadata",
        call("show_commits_metadata", "action", "partition", "num_writes", "num_inserts", limit=10),
    )
    newest = spark.sql("CALL show_commits(table => 'parcels', limit => 1)").first()[0]
    answer(
        "extra metadata",
        call(
            "show_commit_extra_metadata",
            "metadata_key",
            "metadata_value",
            where="metadata_key LIKE 'job%'",
            instant_time=f"'{newest}'",
        ),
    )
    answer(
        "files",
        call("show_commit_files", "partition_path", "total_records_updated", instant_time=f"'{newest}'"),
    )
    answer("slices", call("show_fsview_all", "partition", "num_delta_files"))
    answer("archived", call("show_archived_commits", "count(*)"))
    answer("sizes", call("stats_file_sizes", "count(*)"))
    answer("timeline", spark.sql("CALL show_timeline(table => 'parcels')").selectExpr("action", "state"))
