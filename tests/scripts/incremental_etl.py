"""A raw table and a refined one that follows it: each run takes what came since the last."""

from pyspark.sql.functions import col, upper


def main(spark, folder, answer):
    raw, refined = f"{folder}/raw", f"{folder}/refined"

    def options(name, key):
        return {
            "hoodie.table.name": name,
            "hoodie.datasource.write.recordkey.field": key,
            "hoodie.datasource.write.precombine.field": "ts",
        }

    def land(rows):
        df = spark.createDataFrame(rows, "id int, name string, amount double, ts long")
        df.write.format("hudi").options(**options("raw", "id")).mode("append").save(raw)

    def refine(since):
        asked = {
            "hoodie.datasource.query.type": "incremental",
            "hoodie.datasource.read.begin.instanttime": since,
        }
        new = spark.read.format("hudi").options(**asked).load(raw)
        until = new.selectExpr("max(_hoodie_commit_time)").first()[0]
        if until is None:
            return since
        rows = new.where("amount > 0").select("id", upper(col("name")).alias("name"), "amount", "ts")
        rows.write.format("hudi").options(**options("refined", "id")).mode("append").save(refined)
        return until

    land([(1, "ada", 1.0, 1), (2, "bob", -1.0, 1)])
    position = refine("000")
    answer("first run", spark.read.format("hudi").load(refined).select("id", "name", "amount"))
    land([(2, "bob", 2.0, 2), (3, "cyd", 3.0, 2)])
    land([(1, "ada", 9.0, 3)])
    position = refine(position)
    answer("second run", spark.read.format("hudi").load(refined).select("id", "name", "amount"))
    refine(position)
    answer("idle run", spark.read.format("hudi").load(refined).select("id", "name", "amount"))
