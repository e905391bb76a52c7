"""All kinds of queries of one MERGE_ON_READ table."""

TYPE = "hoodie.datasource.query.type"
BEGIN = "hoodie.datasource.read.begin.instanttime"
END = "hoodie.datasource.read.end.instanttime"


def main(spark, folder, answer):
    path = f"{folder}/sensors"
    options = {
        "hoodie.table.name": "sensors",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "room",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.table.cdc.enabled": "true",
    }

    def write(rows, operation="upsert"):
        df = spark.createDataFrame(rows, "id string, value double, ts long, room string")
        more = {"hoodie.datasource.write.operation": operation}
        df.write.format("hudi").options(**options, **more).mode("append").save(path)

    def read(**given):
        return spark.read.format("hudi").options(**given).load(path).select("id", "value", "room")

    def times():
        rows = spark.read.format("hudi").load(path).select("_hoodie_commit_time").distinct()
        return sorted(row[0] for row in rows.collect())

    write([("a", 1.0, 1, "hall"), ("b", 2.0, 1, "hall"), ("c", 3.0, 1, "loft")])
    first = times()[-1]
    write([("b", 2.5, 2, "hall"), ("d", 4.0, 2, "loft")])
    second = times()[-1]
    write([("a", 1.0, 3, "hall")], "delete")
    answer("snapshot", read(**{TYPE: "snapshot"}))
    answer("as of the first", read(**{"as.of.instant": first}))
    answer("as of the second", read(**{"as.of.instant": second}))
    answer("all commits", read(**{TYPE: "incremental", BEGIN: "000"}))
    answer("since the first", read(**{TYPE: "incremental", BEGIN: first}))
    answer("up to the first", read(**{TYPE: "incremental", BEGIN: "000", END: first}))
    cdc = {TYPE: "incremental", BEGIN: first, "hoodie.datasource.query.incremental.format": "cdc"}
    changes = spark.read.format("hudi").options(**cdc).load(path)
    answer(
        "changes",
        changes.selectExpr("op", "get_json_object(before, '$.value')", "get_json_object(after, '$.value')"),
    )
    answer("filtered", read().where("room = 'loft' AND value > 3.5"))
    answer("counted", read().groupBy("room").count())
