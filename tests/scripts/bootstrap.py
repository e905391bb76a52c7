"""A folder of Parquet files taken over, without and with its rows copied."""

SELECTOR = "org.apache.hudi.client.bootstrap.selector.BootstrapRegexModeSelector"
PROVIDER = "org.apache.hudi.bootstrap.SparkParquetBootstrapDataProvider"


def main(spark, folder, answer):
    source = f"{folder}/plain"
    rows = spark.range(12).selectExpr(
        "cast(id AS string) AS id", "id * 2 AS n", "1L AS ts", "concat('p', id % 2) AS part"
    )
    rows.repartition(1).write.partitionBy("part").parquet(source)
    for mode in ("METADATA_ONLY", "FULL_RECORD"):
        path = f"{folder}/{mode.lower()}"
        options = {
            "hoodie.table.name": "taken",
            "hoodie.datasource.write.operation": "bootstrap",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "part",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.hive_style_partitioning": "true",
            "hoodie.bootstrap.base.path": source,
            "hoodie.bootstrap.mode.selector": SELECTOR,
            "hoodie.bootstrap.mode.selector.regex.mode": mode,
            "hoodie.bootstrap.mode.selector.regex": ".*",
            "hoodie.bootstrap.full.input.provider": PROVIDER,
        }
        none = spark.createDataFrame([], rows.schema)
        none.write.format("hudi").options(**options).mode("overwrite").save(path)
        answer(f"{mode} taken", spark.read.format("hudi").load(path).select("_hoodie_record_key", "id", "n"))
        upsert = {key: value for key, value in options.items() if "bootstrap" not in key}
        new = spark.createDataFrame([("3", 33, 2, "p1"), ("20", 20, 2, "p0")], rows.schema)
        writer = new.write.format("hudi").options(**upsert)
        writer.option("hoodie.datasource.write.operation", "upsert").mode("append").save(path)
        answer(f"{mode} upserted", spark.read.format("hudi").load(path).select("id", "n", "part"))
