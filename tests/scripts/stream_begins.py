"""Streams of a table that begin at its first commit or at the end, and go on where they stopped."""


def main(spark, folder, answer):
    for kind in ("COPY_ON_WRITE", "MERGE_ON_READ"):
        path = f"{folder}/{kind}"
        options = {
            "hoodie.table.name": "moves",
            "hoodie.datasource.write.table.type": kind,
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "",
            "hoodie.datasource.write.precombine.field": "ts",
        }

        def write(rows, options=options, path=path):
            df = spark.createDataFrame(rows, "id int, square string, ts long")
            df.write.format("hudi").options(**options).mode("append").save(path)

        def run(name, path=path, kind=kind, **given):
            """Run a stream until it has everything, into a table of files, and return all rows there."""
            rows = spark.readStream.format("hudi").options(**given).load(path).select("id", "square", "ts")
            out, checkpoint = f"{folder}/{kind}_{name}", f"{folder}/{kind}_{name}_checkpoint"
            writer = (
                rows.writeStream.format("parquet")
                .option("checkpointLocation", checkpoint)
                .option("path", out)
            )
            writer.trigger(availableNow=True).start().awaitTermination()
            return spark.read.schema("id int, square string, ts long").parquet(out)

        write([(1, "a1", 1), (2, "b1", 1)])
        write([(1, "a2", 2)])
        begin = "hoodie.datasource.streaming.startOffset"
        answer(f"{kind} earliest", run("earliest", **{begin: "earliest"}))
        answer(f"{kind} default", run("default"))
        write([(3, "c3", 3)])
        answer(f"{kind} earliest, later", run("earliest", **{begin: "earliest"}))
        answer(f"{kind} default, later", run("default"))
