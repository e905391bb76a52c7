"""Writers of one MERGE_ON_READ table under non-blocking concurrency control, compacted after them."""


def main(spark, folder, answer):
    path = f"{folder}/counters"
    options = {
        "hoodie.table.name": "counters",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.table.type": "MERGE_ON_READ",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.index.type": "BUCKET",
        "hoodie.index.bucket.engine": "SIMPLE",
        "hoodie.bucket.index.num.buckets": "2",
        "hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL",
        "hoodie.clean.failed.writes.policy": "LAZY",
        "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
    }

    def write(rows):
        df = spark.createDataFrame(rows, "id string, n int, ts long")
        df.write.format("hudi").options(**options).mode("append").save(path)

    write([("a", 1, 1), ("b", 1, 1), ("c", 1, 1)])
    write([("a", 2, 2), ("d", 1, 2)])
    write([("a", 0, 0), ("b", 2, 3)])
    read = spark.read.format("hudi")
    answer("rows", read.load(path).select("id", "n", "ts"))
    always = "hoodie.compact.inline.max.delta.commits=1"
    spark.sql(f"CALL run_compaction(op => 'scheduleAndExecute', path => '{path}', options => '{always}')")
    optimised = read.option("hoodie.datasource.query.type", "read_optimized").load(path)
    answer("compacted", optimised.select("id", "n", "ts"))
