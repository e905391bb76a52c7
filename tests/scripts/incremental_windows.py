"""Incremental queries between times: one commit, several, none, all; after deletes and overwrites."""

TYPE = "hoodie.datasource.query.type"
BEGIN = "hoodie.datasource.read.begin.instanttime"
END = "hoodie.datasource.read.end.instanttime"


def main(spark, folder, answer):
    for kind in ("COPY_ON_WRITE", "MERGE_ON_READ"):
        path = f"{folder}/{kind}"
        options = {
            "hoodie.table.name": "calls",
            "hoodie.datasource.write.table.type": kind,
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "day",
            "hoodie.datasource.write.precombine.field": "ts",
        }

        def write(rows, operation="upsert", options=options, path=path):
            df = spark.createDataFrame(rows, "id int, caller string, ts long, day string")
            more = {"hoodie.datasource.write.operation": operation}
            df.write.format("hudi").options(**options, **more).mode("append").save(path)

        write([(1, "ann", 1, "d1"), (2, "bob", 1, "d1"), (3, "cyd", 1, "d2")])
        write([(2, "bo", 2, "d1"), (4, "dan", 2, "d2")])
        write([(3, "", 3, "d2")], "delete")
        write([(5, "eve", 4, "d2")], "insert_overwrite")
        spark.sql(f"CREATE TABLE calls_{kind} USING hudi LOCATION '{path}'")
        commits = spark.sql(f"CALL show_commits(table => 'calls_{kind}')").collect()
        done = sorted(row["state_transition_time"] for row in commits)

        def read(path=path, **given):
            df = spark.read.format("hudi").option(TYPE, "incremental").options(**given).load(path)
            return df.select("id", "caller", "day")

        answer(f"{kind} all", read(**{BEGIN: "000"}))
        answer(f"{kind} since each", read(**{BEGIN: done[0]}))
        answer(f"{kind} since the second", read(**{BEGIN: done[1]}))
        answer(f"{kind} first only", read(**{BEGIN: "000", END: done[0]}))
        answer(f"{kind} first two", read(**{BEGIN: "000", END: done[1]}))
        answer(f"{kind} second only", read(**{BEGIN: done[0], END: done[1]}))
        answer(f"{kind} none", read(**{BEGIN: done[-1]}))
        answer(f"{kind} filtered", read(**{BEGIN: "000"}).where("day = 'd2'"))
