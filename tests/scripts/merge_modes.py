"""Merge modes: by commit time and by event time, with late rows and late deletes."""


def main(spark, folder, answer):
    columns = "id int, name string, ts long, _hoodie_is_deleted boolean"
    for mode in ("COMMIT_TIME_ORDERING", "EVENT_TIME_ORDERING"):
        for kind in ("COPY_ON_WRITE", "MERGE_ON_READ"):
            path = f"{folder}/{mode}_{kind}"
            options = {
                "hoodie.table.name": "goods",
                "hoodie.datasource.write.table.type": kind,
                "hoodie.datasource.write.recordkey.field": "id",
                "hoodie.datasource.write.precombine.field": "ts",
                "hoodie.write.record.merge.mode": mode,
            }

            def write(rows, options=options, path=path):
                df = spark.createDataFrame(rows, columns)
                df.write.format("hudi").options(**options).mode("append").save(path)

            write([(1, "a", 5, False), (2, "b", 5, False), (3, "c", 5, False), (4, "d", 5, False)])
            write([(1, "late", 4, False), (2, "new", 6, False), (3, "c", 4, True), (4, "d", 6, True)])
            read = spark.read.format("hudi").load(path)
            answer(f"{mode} {kind}", read.select("id", "name", "ts"))
