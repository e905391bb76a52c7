"""A column of floats that becomes one of doubles: values of before, conditions, later floats."""


def main(spark, folder, answer):
    for kind in ("COPY_ON_WRITE", "MERGE_ON_READ"):
        path = f"{folder}/{kind}"
        options = {
            "hoodie.table.name": kind.lower(),
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.table.type": kind,
            "hoodie.index.type": "BUCKET",
            "hoodie.bucket.index.num.buckets": "1",
            "hoodie.compact.inline": "false",
        }

        def save(rows, price, path=path, options=options):
            frame = spark.createDataFrame(rows, f"id long, price {price}, ts long")
            frame.write.format("hudi").options(**options).mode("append").save(path)

        save([(1, 1.1, 1), (2, 2.2, 1), (3, 3.3, 1)], "float")
        save([(2, 4.4, 2)], "float")
        save([(4, 5.5, 2)], "double")
        prices = spark.read.format("hudi").load(path).select("id", "price")
        answer(f"{kind} prices", prices)
        answer(f"{kind} one price", prices.where("price = 1.1D"))
        answer(f"{kind} dear", prices.where("price >= 4.4D"))
        save([(5, 6.6, 3)], "float")
        save([(1, 7.7, 3)], "double")
        answer(f"{kind} later", spark.read.format("hudi").load(path).select("id", "price"))
