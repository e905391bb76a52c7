"""Tables of jobs that SQL takes over at their place, changes and drops; the files stay."""


def main(spark, folder, answer):
    rows = [(1, "pen", 1.5, 1, "d1", "a"), (2, "ink", 4.0, 1, "d1", "b"), (3, "pad", 2.0, 1, "d2", "a")]
    df = spark.createDataFrame(rows, "id int, item string, price double, ts long, day string, shop string")
    for kind in ("COPY_ON_WRITE", "MERGE_ON_READ"):
        for partitions in ("", "day", "day,shop"):
            tag = f"{kind[:1].lower()}{len(partitions)}"
            path = f"{folder}/{tag}"
            options = {
                "hoodie.table.name": "sales",
                "hoodie.datasource.write.table.type": kind,
                "hoodie.datasource.write.recordkey.field": "id",
                "hoodie.datasource.write.partitionpath.field": partitions,
                "hoodie.datasource.write.precombine.field": "ts",
                "hoodie.datasource.write.hive_style_partitioning": "true",
            }
            df.write.format("hudi").options(**options).mode("overwrite").save(path)
            spark.sql(f"CREATE TABLE sales_{tag} USING hudi LOCATION '{path}'")
            columns = f"SELECT id, item, price, ts, day, shop, _hoodie_partition_path FROM sales_{tag}"
            answer(f"{tag} taken over", spark.sql(columns))
            spark.sql(
                f"INSERT INTO sales_{tag} (id, item, price, ts, day, shop)"
                " VALUES (4, 'cap', 9.0, 2, 'd3', 'b')"
            )
            spark.sql(f"UPDATE sales_{tag} SET price = price + 1, ts = 2 WHERE item = 'pen'")
            spark.sql(f"DELETE FROM sales_{tag} WHERE id = 2")
            answer(f"{tag} changed", spark.sql(columns))
            df.where("id = 3").withColumn("ts", df.ts + 5).write.format("hudi").options(**options).mode(
                "append"
            ).save(path)
            spark.sql(f"REFRESH TABLE sales_{tag}")
            answer(f"{tag} written by the job", spark.sql(columns))
            spark.sql(f"DROP TABLE sales_{tag}")
            answer(f"{tag} files", spark.read.format("hudi").load(path).select("id", "item", "price"))
            spark.sql(
                f"CREATE TABLE sales_{tag} (id INT, item STRING, price DOUBLE, ts BIGINT, day STRING,"
                f" shop STRING) USING hudi LOCATION '{path}'"
            )
            answer(f"{tag} again", spark.sql(f"SELECT id, item, price FROM sales_{tag} WHERE day = 'd1'"))
