"""A day that is computed anew: rows of increments, deduplicated by window, overwrite its partition."""

from pyspark.sql import Window
from pyspark.sql import functions as F


def main(spark, folder, answer):
    raw, daily = f"{folder}/events", f"{folder}/daily"
    common = {"hoodie.datasource.write.hive_style_partitioning": "true"}
    of_raw = {
        **common,
        "hoodie.table.name": "events",
        "hoodie.datasource.write.recordkey.field": "event",
        "hoodie.datasource.write.partitionpath.field": "day",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.operation": "insert",
    }
    of_daily = {
        **common,
        "hoodie.table.name": "daily",
        "hoodie.datasource.write.recordkey.field": "user,day",
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator",
        "hoodie.datasource.write.partitionpath.field": "day",
        "hoodie.datasource.write.precombine.field": "last",
        "hoodie.datasource.write.operation": "insert_overwrite",
    }

    def collect(rows):
        df = spark.createDataFrame(rows, "event string, user string, clicks int, ts long, day string")
        df.write.format("hudi").options(**of_raw).mode("append").save(raw)

    def compute(*days):
        rows = spark.read.format("hudi").load(raw).where(F.col("day").isin(*days))
        newest = Window.partitionBy("event").orderBy(F.col("ts").desc())
        rows = (
            rows.withColumn("place", F.row_number().over(newest)).where("place = 1").dropDuplicates(["event"])
        )
        rows = rows.groupBy("user", "day").agg(F.sum("clicks").alias("clicks"), F.max("ts").alias("last"))
        rows.write.format("hudi").options(**of_daily).mode("append").save(daily)

    def read():
        return spark.read.format("hudi").load(daily).select("user", "clicks", "last", "day")

    def newest_commit():
        times = spark.read.format("hudi").load(raw).select("_hoodie_commit_time").distinct().collect()
        return max(row[0] for row in times)

    collect([("e1", "ann", 1, 1, "mon"), ("e2", "ann", 2, 2, "mon"), ("e3", "ben", 3, 3, "tue")])
    compute("mon", "tue")
    answer("computed", read())
    seen = newest_commit()
    collect([("e4", "cem", 4, 4, "mon"), ("e1", "ann", 5, 5, "mon")])
    increment = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.read.begin.instanttime": seen,
    }
    late = spark.read.format("hudi").options(**increment).load(raw)
    days = [row[0] for row in late.select("day").distinct().collect()]
    answer("late days", [[day] for day in days if day == "mon"])
    compute("mon")
    answer("computed anew", read())
    answer("of the raw table", spark.read.format("hudi").load(raw).groupBy("day").count())
