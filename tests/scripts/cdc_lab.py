"""Change data capture end to end: changes of a table, in each logging mode, are applied to a copy of it."""

MODES = ("op_key_only", "data_before", "data_before_after")


def main(spark, folder, answer):
    columns = "id int, name string, points int, ts long"

    def save(df, path, mode, operation):
        options = {
            "hoodie.table.name": "players",
            "hoodie.datasource.write.operation": operation,
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
            "hoodie.table.cdc.enabled": "true",
            "hoodie.table.cdc.supplemental.logging.mode": mode,
        }
        df.write.format("hudi").options(**options).mode("append").save(path)

    def changes(path, begin):
        options = {
            "hoodie.datasource.query.type": "incremental",
            "hoodie.datasource.query.incremental.format": "cdc",
            "hoodie.datasource.read.begin.instanttime": begin,
        }
        return spark.read.format("hudi").options(**options).load(path)

    for mode in MODES:
        path, copy = f"{folder}/{mode}", f"{folder}/copy_of_{mode}"
        rows = [(1, "ann", 10, 1), (2, "bob", 20, 1), (3, "cai", 30, 1)]
        save(spark.createDataFrame(rows, columns), path, mode, "upsert")
        seen = spark.read.format("hudi").load(path).selectExpr("max(_hoodie_commit_time)").first()[0]
        save(spark.read.format("hudi").load(path).select("id", "name", "points", "ts"), copy, mode, "upsert")
        save(spark.createDataFrame([(2, "bob", 25, 2), (4, "dee", 40, 2)], columns), path, mode, "upsert")
        save(spark.createDataFrame([(3, "cai", 30, 3)], columns), path, mode, "delete")
        found = changes(path, "0")
        answer(f"{mode} all", found.groupBy("op").count())
        images = found.selectExpr(
            "op",
            "get_json_object(before, '$.id')",
            "get_json_object(before, '$.points')",
            "get_json_object(after, '$.id')",
            "get_json_object(after, '$.points')",
        )
        answer(f"{mode} images", images)
        images = changes(path, seen).where(f"ts_ms > '{seen}'").selectExpr("op", "before", "after")
        fields = "CAST(get_json_object({0}, '$.id') AS INT) AS id, get_json_object({0}, '$.name') AS name"
        fields += ", CAST(get_json_object({0}, '$.points') AS INT) AS points"
        fields += ", CAST(get_json_object({0}, '$.ts') AS LONG) AS ts"
        images.createOrReplaceTempView(f"images_{mode}")
        kept = spark.sql(f"SELECT {fields.format('after')} FROM images_{mode} WHERE op <> 'd'")
        gone = spark.sql(f"SELECT {fields.format('before')} FROM images_{mode} WHERE op = 'd'")
        save(kept, copy, mode, "upsert")
        save(gone, copy, mode, "delete")
        answer(f"{mode} copy", spark.read.format("hudi").load(copy).select("id", "name", "points"))
