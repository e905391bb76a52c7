"""Rows of a table by DataFrames: written, read, changed, deleted."""

OPERATION = "hoodie.datasource.write.operation"


def main(spark, folder, answer):
    for kind in ("COPY_ON_WRITE", "MERGE_ON_READ"):
        path = f"{folder}/trips_{kind.lower()}"
        options = {
            "hoodie.table.name": "trips",
            "hoodie.datasource.write.table.type": kind,
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "city",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.hive_style_partitioning": "true",
        }

        def write(rows, operation="upsert", mode="append", options=options, path=path):
            df = spark.createDataFrame(rows, "id string, fare double, ts long, city string")
            df.write.format("hudi").options(**options, **{OPERATION: operation}).mode(mode).save(path)

        def read(path=path):
            return spark.read.format("hudi").load(path)

        write([("a", 1.0, 1, "lima"), ("b", 2.0, 1, "oslo"), ("c", 3.0, 1, "oslo")], "insert", "overwrite")
        answer(f"{kind} inserted", read().select("_hoodie_record_key", "_hoodie_partition_path", "fare"))
        write([("a", 1.5, 2, "lima"), ("d", 4.0, 2, "rome"), ("b", 9.9, 0, "oslo")])
        answer(f"{kind} upserted", read().select("id", "fare", "ts", "city"))
        write([("c", 0.0, 3, "oslo")], "delete")
        answer(f"{kind} deleted", read().select("id", "fare").where("fare > 1.2"))
        read().createOrReplaceTempView("trips")
        answer(f"{kind} by a view", spark.sql("SELECT city, sum(fare) FROM trips GROUP BY city"))
        write([("e", 5.0, 4, "oslo")], "insert_overwrite")
        answer(f"{kind} overwritten", read().select("id", "city"))
        write([("x", 0.0, 5, "rome")], "delete_partition")
        answer(f"{kind} without a partition", read().select("id", "city"))
