"""Records that move to another partition, with global indexes."""


def main(spark, folder, answer):
    for index in ("GLOBAL_BLOOM", "GLOBAL_SIMPLE"):
        for moves in ("true", "false"):
            path = f"{folder}/{index}_{moves}"
            options = {
                "hoodie.table.name": "people",
                "hoodie.datasource.write.recordkey.field": "id",
                "hoodie.datasource.write.partitionpath.field": "city",
                "hoodie.datasource.write.precombine.field": "ts",
                "hoodie.index.type": index,
                "hoodie.bloom.index.update.partition.path": moves,
                "hoodie.simple.index.update.partition.path": moves,
            }

            def write(rows, options=options, path=path):
                df = spark.createDataFrame(rows, "id int, name string, ts long, city string")
                df.write.format("hudi").options(**options).mode("append").save(path)

            write([(1, "ada", 1, "quito"), (2, "bob", 1, "quito"), (3, "cyd", 1, "turin")])
            write([(1, "ada!", 2, "turin"), (2, "bob!", 2, "quito"), (4, "dan", 2, "osaka")])
            read = spark.read.format("hudi").load(path)
            answer(f"{index} {moves}", read.select("_hoodie_partition_path", "id", "name", "ts"))
