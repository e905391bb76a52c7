"""Partition values that are missing, empty, or have signs that paths do not like."""


def main(spark, folder, answer):
    values = ["plain", None, "", "a/b", "c=d", "50%", "ü ß", "x:y", "with space"]
    for kind in ("COPY_ON_WRITE", "MERGE_ON_READ"):
        for hive in ("true", "false"):
            path = f"{folder}/{kind}_{hive}"
            options = {
                "hoodie.table.name": "things",
                "hoodie.datasource.write.table.type": kind,
                "hoodie.datasource.write.recordkey.field": "id",
                "hoodie.datasource.write.partitionpath.field": "place",
                "hoodie.datasource.write.precombine.field": "ts",
                "hoodie.datasource.write.hive_style_partitioning": hive,
                "hoodie.datasource.write.partitionpath.urlencode": "true",
            }

            def write(rows, options=options, path=path):
                df = spark.createDataFrame(rows, "id int, ts long, place string")
                df.write.format("hudi").options(**options).mode("append").save(path)

            write([(at, 1, value) for at, value in enumerate(values)])
            write([(at, 2, value) for at, value in enumerate(values) if at % 2])
            read = spark.read.format("hudi").load(path)
            answer(f"{kind} {hive}", read.select("id", "ts", "_hoodie_partition_path"))
            answer(f"{kind} {hive} one", read.where("place = 'a/b'").select("id", "ts"))
            answer(f"{kind} {hive} counted", read.groupBy("_hoodie_partition_path").count())
    spark.sql(
        "CREATE TABLE things (id INT, name STRING, place STRING) USING hudi PARTITIONED BY (place)"
        " TBLPROPERTIES (primaryKey = 'id')"
    )
    spark.sql("INSERT INTO things VALUES (1, 'a', 'plain'), (2, 'b', NULL), (3, 'c', 'x y')")
    answer("sql", spark.sql("SELECT id, name, _hoodie_partition_path FROM things"))
    answer("missing", spark.sql("SELECT id, place FROM things WHERE place IS NULL"))
    spark.sql("UPDATE things SET name = 'B' WHERE id = 2")
    answer("updated", spark.sql("SELECT id, name FROM things"))
