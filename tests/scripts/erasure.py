"""Rows of people who asked to be forgotten, erased from a fact table by a join."""


def main(spark, folder, answer):
    path = f"{folder}/facts"
    options = {
        "hoodie.table.name": "facts",
        "hoodie.datasource.write.table.type": "COPY_ON_WRITE",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "day",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.index.type": "SIMPLE",
    }
    rows = spark.range(30).selectExpr(
        "id", "concat('u', id % 5) AS person", "1L AS ts", "concat('d', id % 3) AS day"
    )
    rows.write.format("hudi").options(**options).mode("overwrite").save(path)
    asked = spark.createDataFrame([("u1",), ("u3",)], "person string")
    facts = spark.read.format("hudi").load(path).select("id", "person", "ts", "day")
    gone = facts.join(asked, "person").select("id", "person", "ts", "day")
    gone.write.format("hudi").options(**options).option("hoodie.datasource.write.operation", "delete").mode(
        "append"
    ).save(path)
    left = spark.read.format("hudi").load(path)
    answer("left", left.groupBy("person").count())
    answer("by day", left.groupBy("day").count())
    spark.sql(f"CREATE TABLE facts USING hudi LOCATION '{path}'")
    found = spark.sql("SELECT id, ts, day FROM facts WHERE person = 'u0'").collect()
    spark.createDataFrame(found, "id long, ts long, day string").createOrReplaceTempView("asked")
    spark.sql("MERGE INTO facts t USING asked s ON t.id = s.id WHEN MATCHED THEN DELETE")
    answer("by MERGE", spark.sql("SELECT person, count(*) FROM facts GROUP BY person"))
    spark.catalog.dropTempView("asked")
