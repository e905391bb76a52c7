"""Incremental queries of some partitions by patterns of their paths."""


def main(spark, folder, answer):
    rows = [(1, "2016", "01", 1), (2, "2016", "02", 1), (3, "2017", "01", 1)]
    days = spark.createDataFrame(rows, "id long, year string, month string, ts long")
    for kind in ("COPY_ON_WRITE", "MERGE_ON_READ"):
        for hive_style in ("true", "false"):
            path = f"{folder}/{kind}_{hive_style}"
            options = {
                "hoodie.table.name": "days",
                "hoodie.datasource.write.recordkey.field": "id",
                "hoodie.datasource.write.precombine.field": "ts",
                "hoodie.datasource.write.partitionpath.field": "year,month",
                "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator",
                "hoodie.datasource.write.table.type": kind,
                "hoodie.datasource.write.hive_style_partitioning": hive_style,
            }
            days.write.format("hudi").options(**options).mode("append").save(path)
            days.where("id = 1").withColumn("ts", days.ts + 1).write.format("hudi").options(**options).mode(
                "append"
            ).save(path)
            for glob in (
                "/2016/*/*",
                "2016/*/*",
                "/*/01/*",
                "/year=2016/*",
                "/*/month=01/*",
                "/201[67]/01/*",
                "",
            ):
                changed = (
                    spark.read.format("hudi")
                    .option("hoodie.datasource.query.type", "incremental")
                    .option("hoodie.datasource.read.begin.instanttime", "000")
                    .option("hoodie.datasource.read.incr.path.glob", glob)
                    .load(path)
                )
                answer(f"{kind} hive style {hive_style} {glob}", changed.select("id", "ts"))
