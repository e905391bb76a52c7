"""Tables with a bucket index, simple and by consistent hashing."""


def main(spark, folder, answer):
    for engine, kind in (
        ("SIMPLE", "COPY_ON_WRITE"),
        ("SIMPLE", "MERGE_ON_READ"),
        ("CONSISTENT_HASHING", "MERGE_ON_READ"),
    ):
        path = f"{folder}/{engine}_{kind}"
        options = {
            "hoodie.table.name": "stock",
            "hoodie.datasource.write.table.type": kind,
            "hoodie.datasource.write.recordkey.field": "sku",
            "hoodie.datasource.write.partitionpath.field": "store",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.index.type": "BUCKET",
            "hoodie.index.bucket.engine": engine,
            "hoodie.bucket.index.num.buckets": "4",
            "hoodie.bucket.index.hash.field": "sku",
        }

        def write(rows, operation="upsert", options=options, path=path):
            df = spark.createDataFrame(rows, "sku string, n int, ts long, store string")
            more = {"hoodie.datasource.write.operation": operation}
            df.write.format("hudi").options(**options, **more).mode("append").save(path)

        write([(f"s{i}", i, 1, "north" if i % 2 else "south") for i in range(12)])
        write([("s1", 100, 2, "north"), ("s2", 200, 2, "south"), ("s99", 99, 2, "south")])
        write([("s3", 0, 3, "north")], "delete")
        read = spark.read.format("hudi").load(path)
        answer(f"{engine} {kind}", read.select("sku", "n", "store"))
        answer(f"{engine} {kind} by key", read.where("sku = 's2'").select("sku", "n", "store"))
