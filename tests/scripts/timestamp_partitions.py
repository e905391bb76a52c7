"""Partitions by day and by hour, made of numbers and of texts by the timestamp-based key generator."""

KINDS = {
    "milliseconds": ("at_ms", "EPOCHMILLISECONDS", "yyyy-MM-dd", {}),
    "seconds": ("at_s", "UNIX_TIMESTAMP", "yyyyMMddHH", {}),
    "text": (
        "at_text",
        "DATE_STRING",
        "yyyy/MM",
        {
            "hoodie.keygen.timebased.input.dateformat": "yyyy-MM-dd'T'HH:mm:ss'Z'",
            "hoodie.keygen.timebased.timezone": "UTC",
        },
    ),
}


def main(spark, folder, answer):
    rows = [
        ("a", 1700000000000, 1700000000, "2023-11-14T22:13:20Z", 1),
        ("b", 1700090000000, 1700090000, "2023-11-15T23:13:20Z", 1),
    ]
    columns = "id string, at_ms long, at_s long, at_text string, ts long"
    for name, (column, kind, output, more) in KINDS.items():
        path = f"{folder}/{name}"
        options = {
            "hoodie.table.name": name,
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": column,
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
            "hoodie.keygen.timebased.timestamp.type": kind,
            "hoodie.keygen.timebased.output.dateformat": output,
            **more,
        }
        df = spark.createDataFrame(rows, columns)
        df.write.format("hudi").options(**options).mode("overwrite").save(path)
        later = spark.createDataFrame([(*rows[1][:4], 2), ("c", *rows[0][1:4], 2)], columns)
        later.write.format("hudi").options(**options).mode("append").save(path)
        read = spark.read.format("hudi").load(path)
        answer(name, read.select("_hoodie_record_key", "_hoodie_partition_path", "ts"))
        answer(f"{name} counted", read.groupBy("_hoodie_partition_path").count())
