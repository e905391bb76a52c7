"""Streams that read what changed: rows of commits, changes with their images, counts; also by name."""


def main(spark, folder, answer):
    path = f"{folder}/shelf"
    options = {
        "hoodie.table.name": "shelf",
        "hoodie.datasource.write.table.type": "COPY_ON_WRITE",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.table.cdc.enabled": "true",
        "hoodie.table.cdc.supplemental.logging.mode": "data_before_after",
    }

    def write(rows, operation="upsert"):
        df = spark.createDataFrame(rows, "id int, item string, n int, ts long")
        more = {"hoodie.datasource.write.operation": operation}
        df.write.format("hudi").options(**options, **more).mode("append").save(path)

    def run(name, rows, mode="append"):
        """Run a stream until it has everything, into a table in memory that starts empty."""
        writer = rows.writeStream.format("memory").queryName(name).outputMode(mode)
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        return spark.sql(f"SELECT * FROM {name}")

    def stream(**more):
        return spark.readStream.format("hudi").options(**more).load(path)

    changes = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.query.incremental.format": "cdc",
    }
    images = (
        "op",
        "coalesce(get_json_object(after, '$.id'), get_json_object(before, '$.id')) AS id",
        "get_json_object(before, '$.n') AS old",
        "get_json_object(after, '$.n') AS new",
    )
    write([(1, "pen", 3, 1), (2, "ink", 5, 1), (3, "pad", 7, 1)])
    answer("rows", run("rows_1", stream().select("id", "item", "n")))
    answer("changes", run("changes_1", stream(**changes).selectExpr(*images)))
    write([(1, "pen", 4, 2), (4, "cap", 1, 2)])
    write([(2, "ink", 5, 3)], "delete")
    answer("rows of later commits", run("rows_2", stream().select("id", "item", "n")))
    answer("changes of later commits", run("changes_2", stream(**changes).selectExpr(*images)))
    counted = stream().groupBy("item").count()
    answer("counted", run("counted", counted, "complete"))
    spark.sql(f"CREATE TABLE shelf USING hudi LOCATION '{path}'")
    answer("by name", run("named", spark.readStream.table("shelf").select("id", "n")))
