"""A stream whose batches a function writes: deduplicated upserts."""

from pyspark.sql.functions import col, row_number
from pyspark.sql.window import Window


def main(spark, folder, answer):
    path, landing = f"{folder}/devices", f"{folder}/landing"
    options = {
        "hoodie.table.name": "devices",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.datasource.write.recordkey.field": "device",
        "hoodie.datasource.write.precombine.field": "seen",
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
    }
    columns = "device string, seen long, reading double"

    def land(rows):
        spark.createDataFrame(rows, columns).coalesce(1).write.mode("append").json(landing)

    def upsert(batch, batch_id):
        order = Window.partitionBy("device").orderBy(col("seen").desc())
        latest = batch.withColumn("rank", row_number().over(order)).where("rank = 1").drop("rank")
        latest.write.format("hudi").options(**options).mode("append").save(path)

    def run():
        rows = spark.readStream.schema(columns).json(landing)
        writer = rows.writeStream.foreachBatch(upsert).option("checkpointLocation", f"{folder}/checkpoint")
        writer.trigger(availableNow=True).start().awaitTermination()
        return spark.read.format("hudi").load(path).select("device", "seen", "reading")

    land([("d1", 1, 0.5), ("d1", 3, 0.75), ("d2", 2, 9.0)])
    answer("first", run())
    land([("d1", 2, 7.0), ("d3", 4, 1.25), ("d2", 5, 9.5)])
    answer("second", run())
