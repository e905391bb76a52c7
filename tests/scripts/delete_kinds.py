"""Rows deleted softly, hard, and by a flag."""

from pyspark.sql.functions import lit

OPERATION = "hoodie.datasource.write.operation"


def main(spark, folder, answer):
    for kind in ("COPY_ON_WRITE", "MERGE_ON_READ"):
        path = f"{folder}/{kind.lower()}"
        options = {
            "hoodie.table.name": "users",
            "hoodie.datasource.write.table.type": kind,
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "land",
            "hoodie.datasource.write.precombine.field": "ts",
        }
        columns = ["id", "email", "ts", "land", "_hoodie_is_deleted"]

        def write(df, options=options, path=path, **more):
            df.write.format("hudi").options(**options, **more).mode("append").save(path)

        def read(where="true", path=path, columns=columns):
            return spark.read.format("hudi").load(path).where(where).select(*columns)

        rows = [(i, f"u{i}@x", 1, "pe" if i % 2 else "it", False) for i in range(1, 7)]
        write(
            spark.createDataFrame(
                rows, "id int, email string, ts long, land string, _hoodie_is_deleted boolean"
            )
        )
        write(
            read("id = 1").withColumn("email", lit(None).cast("string")).withColumn("ts", lit(2).cast("long"))
        )
        answer(f"{kind} soft", read().select("id", "email"))
        write(read("id = 2"), **{OPERATION: "delete"})
        answer(f"{kind} hard", read().select("id", "email"))
        flagged = (
            read("id = 3").withColumn("_hoodie_is_deleted", lit(True)).withColumn("ts", lit(2).cast("long"))
        )
        write(flagged, **{OPERATION: "upsert"})
        answer(f"{kind} flag", read().select("id", "email"))
