"""A dimension that keeps its history: versions of a customer are closed, and new ones opened."""

from pyspark.sql.functions import col, lit

COLUMNS = ["customer", "city", "valid_from", "valid_to", "current"]


def main(spark, folder, answer):
    path = f"{folder}/customers"
    options = {
        "hoodie.table.name": "customers",
        "hoodie.datasource.write.recordkey.field": "customer,valid_from",
        "hoodie.datasource.write.precombine.field": "valid_from",
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator",
        "hoodie.datasource.write.partitionpath.field": "",
        "hoodie.datasource.write.operation": "upsert",
    }

    def write(rows, mode="append"):
        rows.select(*COLUMNS).write.format("hudi").options(**options).mode(mode).save(path)

    def opened(rows):
        new = spark.createDataFrame(rows, "customer string, city string, valid_from string")
        return new.withColumn("valid_to", lit("9999-12-31")).withColumn("current", lit(True))

    write(opened([("c1", "quito", "2024-01-01"), ("c2", "turin", "2024-01-01")]), "overwrite")
    updates = opened([("c1", "osaka", "2024-02-01"), ("c3", "turin", "2024-02-01")])
    now = spark.read.format("hudi").load(path).where("current").select(*COLUMNS)
    moved = now.alias("old").join(updates.alias("new"), "customer").where("old.city <> new.city")
    closed = moved.select(
        "customer",
        col("old.city").alias("city"),
        col("old.valid_from").alias("valid_from"),
        col("new.valid_from").alias("valid_to"),
        lit(False).alias("current"),
    )
    write(closed.unionByName(updates))
    history = spark.read.format("hudi").load(path)
    answer("history", history.select(*COLUMNS))
    answer("current", history.where("current").select("customer", "city"))
    answer(
        "in January",
        history.where("valid_from <= '2024-01-15' AND valid_to > '2024-01-15'").select("customer", "city"),
    )
