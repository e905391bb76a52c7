"""Quick start of streams: a table that is read as a stream, and a stream that is written to a table."""


def main(spark, folder, answer):
    trips, fares = f"{folder}/trips", f"{folder}/fares"
    options = {
        "hoodie.datasource.write.recordkey.field": "uuid",
        "hoodie.datasource.write.partitionpath.field": "city",
        "hoodie.datasource.write.precombine.field": "ts",
    }
    columns = "ts long, uuid string, rider string, fare double, city string"

    def write(rows):
        df = spark.createDataFrame(rows, columns)
        named = {**options, "hoodie.table.name": "trips"}
        df.write.format("hudi").options(**named).mode("append").save(trips)

    def run(table_type):
        path, checkpoint = f"{fares}_{table_type}", f"{folder}/checkpoint_{table_type}"
        named = {
            **options,
            "hoodie.table.name": f"fares_{table_type}",
            "hoodie.datasource.write.table.type": table_type,
            "hoodie.datasource.write.streaming.checkpoint.identifier": "fares",
        }
        rows = spark.readStream.format("hudi").load(trips).select("ts", "uuid", "rider", "fare", "city")
        writer = rows.writeStream.format("hudi").options(**named).outputMode("append")
        writer = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True)
        writer.start(path).awaitTermination()
        return spark.read.format("hudi").load(path).select("ts", "uuid", "fare", "city")

    kinds = ("COPY_ON_WRITE", "MERGE_ON_READ")
    write([(1, "k1", "a", 19.5, "quito"), (2, "k2", "b", 27.75, "quito"), (3, "k3", "c", 33.25, "turin")])
    for kind in kinds:
        answer(f"{kind} first", run(kind))
    write([(4, "k1", "a", 21.0, "quito"), (5, "k4", "d", 8.5, "osaka")])
    for kind in kinds:
        answer(f"{kind} second", run(kind))
    for kind in kinds:
        answer(f"{kind} nothing new", run(kind))
    commits = spark.read.format("hudi").load(f"{fares}_COPY_ON_WRITE").select("_hoodie_commit_time")
    answer("commits with rows", commits.distinct().selectExpr("count(*)"))
