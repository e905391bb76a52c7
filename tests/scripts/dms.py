"""Change files of AWS DMS, with an operation in the column Op."""


def main(spark, folder, answer):
    path = f"{folder}/sales"
    options = {
        "hoodie.table.name": "sales",
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "region",
        "hoodie.datasource.write.precombine.field": "updated",
        "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.AWSDmsAvroPayload",
    }
    columns = "Op string, id int, amount double, region string, updated long"
    files = (
        [("I", 1, 10.0, "eu", 1), ("I", 2, 20.0, "us", 1), ("I", 3, 30.0, "us", 1)],
        [("U", 1, 11.0, "eu", 2), ("D", 2, 20.0, "us", 2)],
        [("I", 4, 40.0, "eu", 3), ("D", 4, 40.0, "eu", 4), ("I", 2, 21.0, "us", 4)],
    )
    for number, rows in enumerate(files):
        df = spark.createDataFrame(rows, columns)
        df.write.format("hudi").options(**options).mode("append").save(path)
        read = spark.read.format("hudi").load(path)
        answer(f"file {number}", read.select("id", "amount", "region", "updated"))
