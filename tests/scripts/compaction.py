"""Log files made into base files: after some commits, and on request; what each kind of query sees."""


def main(spark, folder, answer):
    path = f"{folder}/meters"
    options = {
        "hoodie.table.name": "meters",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.compact.inline": "true",
        "hoodie.compact.inline.max.delta.commits": "3",
    }

    def write(rows):
        df = spark.createDataFrame(rows, "id int, kwh double, ts long")
        df.write.format("hudi").options(**options).mode("append").save(path)

    def read(kind):
        rows = spark.read.format("hudi").option("hoodie.datasource.query.type", kind).load(path)
        return rows.select("id", "kwh", "ts")

    write([(1, 1.0, 1), (2, 2.0, 1)])
    for ts in (2, 3, 4):
        write([(1, ts / 2, ts), (ts + 1, 9.0, ts)])
        answer(f"snapshot {ts}", read("snapshot"))
    answer("read optimised by key", read("read_optimized").where("id = 1"))
    spark.sql(
        "CREATE TABLE sql_meters (id INT, kwh DOUBLE, ts BIGINT) USING hudi"
        " TBLPROPERTIES (type = 'mor', primaryKey = 'id', preCombineField = 'ts')"
    )
    spark.sql("INSERT INTO sql_meters VALUES (1, 1.0, 1), (2, 2.0, 1)")
    spark.sql("UPDATE sql_meters SET kwh = 5.0, ts = 2 WHERE id = 2")
    spark.sql("DELETE FROM sql_meters WHERE id = 1")
    schedule = "CALL run_compaction(op => 'schedule', table => 'sql_meters'"
    always = "options => 'hoodie.compact.inline.max.delta.commits=1'"
    answer("plans", spark.sql(f"{schedule}, {always})").select("state"))
    spark.sql("INSERT INTO sql_meters VALUES (3, 3.0, 3)")
    answer("run", spark.sql("CALL run_compaction(op => 'execute', table => 'sql_meters')").select("state"))
    answer("shown", spark.sql("CALL show_compaction(table => 'sql_meters')").select("state"))
    answer("rows", spark.sql("SELECT id, kwh FROM sql_meters"))
    spark.sql("UPDATE sql_meters SET kwh = 9.0, ts = 4 WHERE id = 3")
    answer("plans after two commits", spark.sql(f"{schedule})").select("state"))
