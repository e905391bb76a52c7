"""A table whose metadata table comes, serves queries, goes by a procedure, and comes again."""


def main(spark, folder, answer):
    for kind in ("COPY_ON_WRITE", "MERGE_ON_READ"):
        path = f"{folder}/{kind}"
        options = {
            "hoodie.table.name": "sales",
            "hoodie.datasource.write.table.type": kind,
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "shop",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.metadata.enable": "true",
            "hoodie.metadata.index.column.stats.enable": "true",
            "hoodie.metadata.index.column.stats.column.list": "amount,ts",
            "hoodie.metadata.record.index.enable": "true",
        }

        def write(rows, options=options, path=path, **more):
            df = spark.createDataFrame(rows, "id int, amount double, ts long, shop string")
            df.write.format("hudi").options(**{**options, **more}).mode("append").save(path)

        def read(condition, path=path):
            given = {"hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "true"}
            df = spark.read.format("hudi").options(**given).load(path)
            return df.where(condition).select("id", "amount", "shop")

        write([(1, 1.0, 1, "a"), (2, 2.0, 1, "a"), (3, 30.0, 1, "b"), (4, 40.0, 1, "c")])
        write([(2, 22.0, 2, "a"), (5, 50.0, 2, "b")])
        answer(f"{kind} skipped", read("amount > 25"))
        answer(f"{kind} by key", read("id = 2"))
        spark.sql(f"CREATE TABLE sales_{kind} USING hudi LOCATION '{path}'")
        answer(
            f"{kind} partitions", spark.sql(f"CALL show_metadata_table_partitions(table => 'sales_{kind}')")
        )
        answer(f"{kind} indexes", spark.sql(f"SHOW INDEXES FROM sales_{kind}").select("index_name"))
        spark.sql(f"CALL delete_metadata_table(table => 'sales_{kind}')")
        answer(f"{kind} without", read("amount > 25"))
        write([(3, 3.0, 3, "b")], **{"hoodie.metadata.enable": "false"})
        answer(f"{kind} written without", read("amount > 25"))
        write([(1, 100.0, 4, "a")])
        answer(f"{kind} anew", read("amount > 25"))
        checked = spark.sql(f"CALL validate_metadata_table_files(table => 'sales_{kind}')")
        answer(f"{kind} differing files", checked)
