"""Small files made into sorted ones: inline, and by procedures."""


def main(spark, folder, answer):
    path = f"{folder}/inline"
    options = {
        "hoodie.table.name": "inline",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.operation": "insert",
        "hoodie.parquet.small.file.limit": "0",
        "hoodie.clustering.inline": "true",
        "hoodie.clustering.inline.max.commits": "2",
        "hoodie.clustering.plan.strategy.target.file.max.bytes": "1073741824",
        "hoodie.clustering.plan.strategy.small.file.limit": "629145600",
        "hoodie.clustering.plan.strategy.sort.columns": "n,id",
    }
    for ts in (1, 2, 3):
        rows = spark.range(0, 10, 1, 1).selectExpr(
            f"id + {ts * 100} AS id", "id % 3 AS n", "'p' AS part", f"{ts}L AS ts"
        )
        rows.write.format("hudi").options(**options).mode("append").save(path)
    read = spark.read.format("hudi").load(path)
    answer("rows", read.groupBy("ts").count())
    answer("files", read.selectExpr("count(DISTINCT _hoodie_file_name)"))
    spark.sql(
        "CREATE TABLE manual (id INT, n INT, ts BIGINT) USING hudi"
        " TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts', 'hoodie.parquet.small.file.limit' = '0')"
    )
    for ts in (1, 2, 3):
        spark.sql(f"INSERT INTO manual SELECT {ts}, {10 - ts}, {ts}")
    answer("before", spark.sql("SELECT count(DISTINCT _hoodie_file_name) FROM manual"))
    done = spark.sql("CALL run_clustering(table => 'manual', order => 'n')")
    answer("clustered", done.select("input_group_size", "state"))
    spark.sql("REFRESH TABLE manual")
    answer("after", spark.sql("SELECT count(DISTINCT _hoodie_file_name) FROM manual"))
    answer("shown", spark.sql("CALL show_clustering(table => 'manual')").select("input_group_size", "state"))
    answer("manual", spark.sql("SELECT id, n FROM manual"))
