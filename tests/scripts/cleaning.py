"""Old file versions cleaned away: by options of the writer, and by a procedure."""


def main(spark, folder, answer):
    path = f"{folder}/daily"
    options = {
        "hoodie.table.name": "daily",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.clean.automatic": "true",
        "hoodie.clean.async": "false",
        "hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS",
        "hoodie.cleaner.fileversions.retained": "1",
    }
    for ts in (1, 2, 3):
        df = spark.createDataFrame([(1, f"v{ts}", ts), (10 + ts, "new", ts)], "id int, name string, ts long")
        df.write.format("hudi").options(**options).mode("append").save(path)
    answer("rows", spark.read.format("hudi").load(path).select("id", "name"))
    spark.sql(f"CREATE TABLE daily USING hudi LOCATION '{path}'")
    cleans = spark.sql("CALL show_cleans(table => 'daily')").select("action", "total_files_deleted")
    answer("cleans", cleans)
    spark.sql(
        "CREATE TABLE versions (id INT, name STRING, ts BIGINT) USING hudi"
        " TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts', 'hoodie.clean.automatic' = 'false')"
    )
    spark.sql("INSERT INTO versions VALUES (1, 'a', 1), (2, 'b', 1)")
    for ts in (2, 3, 4):
        spark.sql(f"UPDATE versions SET name = concat(name, '+'), ts = {ts} WHERE id = 1")
    done = spark.sql("CALL run_clean(table => 'versions', retain_commits => 1)")
    answer("by CALL", done.select("total_files_deleted"))
    answer("versions", spark.sql("SELECT id, name FROM versions"))
    again = spark.sql("CALL run_clean(table => 'versions', retain_commits => 1)")
    answer("again", again.select("total_files_deleted"))
