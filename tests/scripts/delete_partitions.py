"""Partitions deleted: by an option, by rows, by ALTER TABLE, by a procedure, by DELETE."""

OPERATION = "hoodie.datasource.write.operation"


def main(spark, folder, answer):
    spark.sql(
        f"""
        CREATE TABLE visits (id INT, ts BIGINT, year STRING, month STRING) USING hudi
        PARTITIONED BY (year, month) LOCATION '{folder}/visits'
        TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts')
        """
    )
    values = ", ".join(
        f"({year * 100 + m}, 1, '{year}', '{m:02}')" for year in (2022, 2023) for m in range(1, 6)
    )
    spark.sql(f"INSERT INTO visits VALUES {values}")
    rows = "SELECT id, year, month FROM visits"
    spark.sql("ALTER TABLE visits DROP PARTITION (year = '2022', month = '01')")
    answer("by ALTER TABLE", spark.sql(rows))
    name = f"{spark.catalog.currentDatabase()}.visits"
    spark.sql(f"CALL drop_partition(table => '{name}', partition => 'year=2022/month=02')")
    answer("by CALL", spark.sql(rows))
    options = {
        "hoodie.table.name": "visits",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "year,month",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.hive_style_partitioning": "true",
        OPERATION: "delete_partition",
    }
    named = {"hoodie.datasource.write.partitions.to.delete": "year=2022/month=03,year=2023/month=01"}
    table = spark.read.format("hudi").load(f"{folder}/visits").select("id", "ts", "year", "month")
    table.limit(0).write.format("hudi").options(**options, **named).mode("append").save(f"{folder}/visits")
    spark.sql("REFRESH TABLE visits")
    answer("by an option", spark.sql(rows))
    table.where("month = '02'").write.format("hudi").options(**options).mode("append").save(
        f"{folder}/visits"
    )
    spark.sql("REFRESH TABLE visits")
    answer("by rows", spark.sql(rows))
    spark.sql("DELETE FROM visits WHERE year = '2023' AND month IN ('03', '04')")
    answer("by DELETE", spark.sql(rows))
    answer("partitions", spark.sql("SHOW PARTITIONS visits"))
