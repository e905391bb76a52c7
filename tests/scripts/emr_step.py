"""Steps as on EMR: options in a dictionary, old spellings of keys among them."""


def main(spark, folder, answer):
    path = f"{folder}/clicks"
    options = {
        "hoodie.table.name": "clicks",
        "hoodie.datasource.write.storage.type": "MERGE_ON_READ",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "created:SIMPLE",
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.CustomKeyGenerator",
        "hoodie.datasource.write.precombine.field": "updated",
        "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
        "hoodie.compact.inline": "true",
        "hoodie.compact.inline.max.delta.commits": "2",
        "hoodie.cleaner.commits.retained": "3",
        "hoodie.consistency.check.enabled": "true",
        "hoodie.copyonwrite.record.size.estimate": "100",
        "hoodie.memory.merge.max.size": "104857600",
        "hoodie.fail.on.timeline.archiving": "false",
    }
    columns = "id string, created string, updated string, clicks int"
    steps = (
        [("100", "2024-01-01", "2024-01-01T13:51:39", 1), ("101", "2024-01-01", "2024-01-01T12:14:58", 1)],
        [("101", "2024-01-01", "2024-01-02T12:00:00", 2), ("102", "2024-01-02", "2024-01-02T13:51:40", 1)],
        [("100", "2024-01-01", "2023-12-31T00:00:00", 9), ("103", "2024-01-02", "2024-01-03T00:00:00", 1)],
    )
    for number, rows in enumerate(steps):
        df = spark.createDataFrame(rows, columns)
        writer = (
            df.write.format("hudi").options(**options).option("hoodie.datasource.write.operation", "upsert")
        )
        writer.mode("append" if number else "overwrite").save(path)
        read = spark.read.format("hudi").load(path)
        answer(f"step {number}", read.select("_hoodie_partition_path", "id", "updated", "clicks"))
