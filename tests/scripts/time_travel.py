"""A table as it was."""


def main(spark, folder, answer):
    path = f"{folder}/prices"
    options = {
        "hoodie.table.name": "prices",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
    }

    def write(rows, operation="upsert", mode="append"):
        df = spark.createDataFrame(rows, "id int, price double, ts long")
        more = {"hoodie.datasource.write.operation": operation}
        df.write.format("hudi").options(**options, **more).mode(mode).save(path)

    def newest():
        seen = spark.read.format("hudi").load(path).select("_hoodie_commit_time").distinct().collect()
        return max(row[0] for row in seen)

    write([(1, 1.0, 1), (2, 2.0, 1)], mode="overwrite")
    first = newest()
    write([(2, 2.5, 2), (3, 3.0, 2)])
    second = newest()
    write([(1, 1.0, 3)], "delete")
    spark.sql(f"CREATE TABLE prices USING hudi LOCATION '{path}'")
    for name, time in (("first", first), ("second", second)):
        then = spark.read.format("hudi").option("as.of.instant", time).load(path)
        answer(f"{name} by option", then.select("id", "price"))
        answer(f"{name} by SQL", spark.sql(f"SELECT id, price FROM prices TIMESTAMP AS OF '{time}'"))
    answer("now", spark.sql("SELECT id, price FROM prices"))
