"""Partition paths: hive style, encoded, of several columns, dropped from the files."""

HIVE = "hoodie.datasource.write.hive_style_partitioning"
ENCODED = "hoodie.datasource.write.partitionpath.urlencode"
KINDS = {
    "plain": {},
    "hive style": {HIVE: "true"},
    "encoded": {ENCODED: "true"},
    "both": {HIVE: "true", ENCODED: "true"},
    "dropped": {HIVE: "true", "hoodie.datasource.write.drop.partition.columns": "true"},
}


def main(spark, folder, answer):
    rows = [(1, "san juan", 2023, 1), (2, "a+b", 2023, 1), (3, None, 2024, 1), (4, "turin", 2024, 1)]
    for name, more in KINDS.items():
        path = f"{folder}/{name.replace(' ', '_')}"
        options = {
            "hoodie.table.name": "places",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "city",
            "hoodie.datasource.write.precombine.field": "ts",
            **more,
        }
        df = spark.createDataFrame(rows, "id int, city string, year int, ts long")
        df.write.format("hudi").options(**options).mode("overwrite").save(path)
        df.where("id < 3").withColumn("year", df.year + 1).write.format("hudi").options(**options).mode(
            "append"
        ).save(path)
        read = spark.read.format("hudi").load(path)
        answer(name, read.select("_hoodie_partition_path", "id", "city", "year"))
        answer(f"{name}, one city", read.where("city = 'turin'").select("id", "year"))
    path = f"{folder}/nested"
    two = {
        "hoodie.table.name": "places",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "year,city",
        "hoodie.datasource.write.precombine.field": "ts",
        HIVE: "true",
    }
    df.write.format("hudi").options(**two).mode("overwrite").save(path)
    read = spark.read.format("hudi").load(path)
    answer("two columns", read.select("_hoodie_partition_path", "id", "city", "year"))
    answer("pruned", read.where("year = 2024 AND city IS NOT NULL").select("id"))
