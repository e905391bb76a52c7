"""A table of many commits whose old ones are archived, what is left to tell, and its changes."""


def main(spark, folder, answer):
    for kind in ("COPY_ON_WRITE", "MERGE_ON_READ"):
        path = f"{folder}/{kind}"
        options = {
            "hoodie.table.name": "ticks",
            "hoodie.datasource.write.table.type": kind,
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.clean.automatic": "true",
            "hoodie.clean.commits.retained": "2",
            "hoodie.keep.min.commits": "4",
            "hoodie.keep.max.commits": "6",
            "hoodie.compact.inline": "false",
        }
        for step in range(9):
            df = spark.createDataFrame([(step % 3, step, step)], "id int, n int, ts long")
            df.write.format("hudi").options(**options).mode("append").save(path)
        table = f"ticks_{kind[0].lower()}"
        spark.sql(f"CREATE TABLE {table} USING hudi LOCATION '{path}'")
        answer(f"{kind} rows", spark.sql(f"SELECT id, n, ts FROM {table}"))
        told = spark.sql(f"CALL show_commits(table => '{table}', limit => 100)")
        answer(f"{kind} commits that stay", told.selectExpr("count(*) BETWEEN 4 AND 8"))
        since = {
            "hoodie.datasource.query.type": "incremental",
            "hoodie.datasource.read.begin.instanttime": "000",
        }
        changed = spark.read.format("hudi").options(**since).load(path)
        answer(f"{kind} all newest", changed.select("id", "n"))
        answer(
            f"{kind} archived now",
            spark.sql(
                f"CALL archive_commits(table => '{table}', min_commits => 2, max_commits => 3,"
                " retain_commits => 1)"
            ),
        )
        answer(f"{kind} rows after", spark.sql(f"SELECT id, n, ts FROM {table}"))
