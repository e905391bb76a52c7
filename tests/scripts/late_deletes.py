"""Deletes that come late and rows that come after deletes, with and without ordering."""

COLUMNS = "id int, state string, ts long, _hoodie_is_deleted boolean"


def main(spark, folder, answer):
    for kind in ("COPY_ON_WRITE", "MERGE_ON_READ"):
        for ordering in ("ts", ""):
            path = f"{folder}/{kind}_{ordering or 'none'}"
            options = {
                "hoodie.table.name": "tickets",
                "hoodie.datasource.write.table.type": kind,
                "hoodie.datasource.write.recordkey.field": "id",
                "hoodie.datasource.write.partitionpath.field": "",
                **({"hoodie.datasource.write.precombine.field": ordering} if ordering else {}),
            }

            def write(*rows, operation="upsert", options=options, path=path):
                df = spark.createDataFrame([(*row, False)[:4] for row in rows], COLUMNS)
                more = {"hoodie.datasource.write.operation": operation}
                df.write.format("hudi").options(**options, **more).mode("append").save(path)

            def rows(path=path):
                return spark.read.format("hudi").load(path).select("id", "state", "ts")

            tag = f"{kind} {ordering or 'unordered'}"
            write((1, "open", 5), (2, "open", 5), (3, "open", 5), (4, "open", 5))
            write((1, "gone", 4), (2, "gone", 6), operation="delete")
            answer(f"{tag} deleted", rows())
            write((3, "flag", 4, True), (4, "flag", 6, True), (5, "new", 1))
            answer(f"{tag} flagged", rows())
            write((1, "again", 9), (2, "again", 9), (4, "again", 9))
            answer(f"{tag} again", rows())
