"""Tables made of queries, and a table that is at a path already."""


def main(spark, folder, answer):
    rows = spark.createDataFrame(
        [(1, "ada", 2.5, 10, "2024-01-01"), (2, "bob", 3.5, 20, "2024-01-02")],
        "id int, name string, price double, ts long, dt string",
    )
    rows.write.parquet(f"{folder}/plain")
    spark.sql(f"CREATE TABLE plain USING parquet LOCATION '{folder}/plain'")
    spark.sql(
        """
        CREATE TABLE parts USING hudi PARTITIONED BY (dt)
        TBLPROPERTIES (type = 'mor', primaryKey = 'id', preCombineField = 'ts') AS SELECT * FROM plain
        """
    )
    answer("partitioned", spark.sql("SELECT id, name, price, ts, dt FROM parts"))
    answer("keys", spark.sql("SELECT _hoodie_record_key, _hoodie_partition_path FROM parts"))
    spark.sql("CREATE TABLE keyless USING hudi AS SELECT id, name FROM plain WHERE id > 1")
    answer("without keys", spark.sql("SELECT id, name FROM keyless"))
    spark.sql(
        f"""
        CREATE TABLE external USING hudi LOCATION '{folder}/external'
        TBLPROPERTIES (primaryKey = 'id,name') AS SELECT id, name, price FROM plain
        """
    )
    answer(
        "external", spark.read.format("hudi").load(f"{folder}/external").select("_hoodie_record_key", "price")
    )
    spark.sql(f"CREATE TABLE again USING hudi LOCATION '{folder}/external'")
    answer("again", spark.sql("SELECT id, name, price FROM again"))
    spark.sql("CREATE TABLE IF NOT EXISTS again (other INT) USING hudi")
    answer(
        "columns",
        spark.sql("DESCRIBE again")
        .where("col_name in ('id', 'name', 'price')")
        .select("col_name", "data_type"),
    )
