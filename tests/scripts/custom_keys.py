"""Partitions made of a column and of a time, by the custom key generator, with and without hive style."""

KEYGEN = "org.apache.hudi.keygen.CustomKeyGenerator"
TIME = {
    "hoodie.keygen.timebased.timestamp.type": "DATE_STRING",
    "hoodie.keygen.timebased.input.dateformat": "yyyy-MM-dd",
    "hoodie.keygen.timebased.output.dateformat": "yyyy-MM",
    "hoodie.keygen.timebased.timezone": "UTC",
}
ROWS = [
    (1, "ann", "2024-01-01", 1, "rome"),
    (2, "bob", "2024-02-01", 1, "oslo"),
    (3, "cyd", "2024-02-02", 1, "rome"),
]


def main(spark, folder, answer):
    columns = "id int, name string, at string, n int, city string"
    for kind in ("COPY_ON_WRITE", "MERGE_ON_READ"):
        for hive in ("true", "false"):
            path = f"{folder}/{kind}_{hive}"
            options = {
                "hoodie.table.name": "visits",
                "hoodie.datasource.write.table.type": kind,
                "hoodie.datasource.write.recordkey.field": "id,name",
                "hoodie.datasource.write.partitionpath.field": "city:SIMPLE,at:TIMESTAMP",
                "hoodie.datasource.write.precombine.field": "n",
                "hoodie.datasource.write.keygenerator.class": KEYGEN,
                "hoodie.datasource.write.hive_style_partitioning": hive,
                **TIME,
            }
            df = spark.createDataFrame(ROWS, columns)
            df.write.format("hudi").options(**options).mode("append").save(path)
            newer = df.where("id = 2").withColumn("n", df.n + 1)
            newer.write.format("hudi").options(**options).mode("append").save(path)
            read = spark.read.format("hudi").load(path)
            answer(
                f"{kind} {hive}",
                read.select("id", "name", "n", "city", "_hoodie_record_key", "_hoodie_partition_path"),
            )
            answer(f"{kind} {hive} of a city", read.where("city = 'rome'").select("id", "name"))
