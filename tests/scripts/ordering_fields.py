"""Records ordered by two columns, a day and a number within it: late ones lose, in and between batches."""


def main(spark, folder, answer):
    for kind in ("COPY_ON_WRITE", "MERGE_ON_READ"):
        path = f"{folder}/{kind}"
        options = {
            "hoodie.table.name": "steps",
            "hoodie.datasource.write.table.type": kind,
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "",
            "hoodie.table.ordering.fields": "day,seq",
        }

        def write(rows, operation="upsert", options=options, path=path):
            df = spark.createDataFrame(rows, "id int, state string, day string, seq int")
            more = {"hoodie.datasource.write.operation": operation}
            df.write.format("hudi").options(**options, **more).mode("append").save(path)

        def rows(path=path):
            return spark.read.format("hudi").load(path).select("id", "state", "day", "seq")

        write(
            [
                (1, "a", "2024-01-01", 2),
                (1, "b", "2024-01-01", 3),
                (2, "a", "2024-01-02", 1),
                (3, "a", "2024-01-01", 1),
            ]
        )
        answer(f"{kind} first", rows())
        write([(1, "late", "2024-01-01", 1), (2, "late", "2024-01-01", 9), (3, "new", "2024-01-01", 2)])
        answer(f"{kind} second", rows())
        write([(1, "new", "2024-01-02", 0), (3, "same", "2024-01-01", 2)])
        answer(f"{kind} third", rows())
