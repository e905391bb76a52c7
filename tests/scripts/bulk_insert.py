"""First loads by bulk_insert: sort modes, without meta columns, combined rows."""


def main(spark, folder, answer):
    rows = spark.range(40).selectExpr("id", "id % 7 AS n", "concat('p', id % 3) AS part", "1L AS ts")
    base = {
        "hoodie.table.name": "bulk",
        "hoodie.datasource.write.operation": "bulk_insert",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.bulkinsert.shuffle.parallelism": "2",
    }
    kinds = {
        "global": {"hoodie.bulkinsert.sort.mode": "GLOBAL_SORT"},
        "partitions": {"hoodie.bulkinsert.sort.mode": "PARTITION_SORT"},
        "repartitioned": {"hoodie.bulkinsert.sort.mode": "PARTITION_PATH_REPARTITION_AND_SORT"},
        "none": {"hoodie.bulkinsert.sort.mode": "NONE", "hoodie.datasource.write.row.writer.enable": "true"},
        "without meta columns": {"hoodie.populate.meta.fields": "false"},
    }
    for name, more in kinds.items():
        path = f"{folder}/{name.replace(' ', '_')}"
        rows.write.format("hudi").options(**base, **more).mode("overwrite").save(path)
        read = spark.read.format("hudi").load(path)
        answer(name, read.groupBy("part").agg({"id": "count", "n": "sum"}))
        answer(f"{name}, one row", read.where("id = 17").select("id", "n", "part"))
    path = f"{folder}/combined"
    twice = rows.union(rows.withColumn("n", rows.n + 100).withColumn("ts", rows.ts + 1))
    combine = {"hoodie.combine.before.insert": "true"}
    twice.write.format("hudi").options(**base, **combine).mode("overwrite").save(path)
    answer("combined", spark.read.format("hudi").load(path).selectExpr("count(*)", "min(n)", "max(ts)"))
