"""Key generators: what becomes of key and partition columns with each."""

PACKAGE = "org.apache.hudi.keygen."
TIMES = {
    "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
    "hoodie.keygen.timebased.output.dateformat": "yyyy-MM-dd",
    "hoodie.keygen.timebased.timezone": "UTC",
}
KINDS = {
    "simple": ("SimpleKeyGenerator", "id", "land", {}),
    "simple_hive": ("SimpleKeyGenerator", "id", "land", {"hive_style_partitioning": "true"}),
    "complex": ("ComplexKeyGenerator", "id,line", "land,kind", {}),
    "complex_hive": ("ComplexKeyGenerator", "id,line", "land,kind", {"hive_style_partitioning": "true"}),
    "whole": ("NonpartitionedKeyGenerator", "id,line", "", {}),
    "timestamp": ("TimestampBasedKeyGenerator", "id", "at", TIMES),
    "custom": ("CustomKeyGenerator", "id,line", "land:SIMPLE,kind:SIMPLE", {}),
    "custom_simple": ("CustomKeyGenerator", "id", "kind:SIMPLE", {}),
}


def main(spark, folder, answer):
    columns = "id string, line int, land string, kind string, at long, ts long"
    rows = [
        ("a", 1, "chile", "x", 1700000000000, 1),
        ("a", 2, "chile", "y", 1700090000000, 1),
        ("b", 1, "peru", "x", 1700000000000, 1),
        ("c", 1, None, "x", 1700090000000, 1),
    ]
    for name, (generator, keys, paths, more) in KINDS.items():
        path = f"{folder}/{name}"
        options = {
            "hoodie.table.name": name,
            "hoodie.datasource.write.recordkey.field": keys,
            "hoodie.datasource.write.partitionpath.field": paths,
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.keygenerator.class": PACKAGE + generator,
        }
        for key, value in more.items():
            options[key if key.startswith("hoodie.") else f"hoodie.datasource.write.{key}"] = value
        df = spark.createDataFrame(rows, columns)
        df.write.format("hudi").options(**options).mode("overwrite").save(path)
        later = spark.createDataFrame([(*rows[1][:5], 2)], columns)
        later.write.format("hudi").options(**options).mode("append").save(path)
        read = spark.read.format("hudi").load(path)
        answer(name, read.select("_hoodie_record_key", "_hoodie_partition_path", "line", "ts"))
