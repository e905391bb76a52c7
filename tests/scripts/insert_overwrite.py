"""Rows that replace those of partitions, or of the table."""

OPERATION = "hoodie.datasource.write.operation"


def main(spark, folder, answer):
    for kind in ("cow", "mor"):
        table = f"budget_{kind}"
        spark.sql(
            f"CREATE TABLE {table} (id INT, amount INT, dept STRING, day STRING) USING hudi"
            f" PARTITIONED BY (dept, day) TBLPROPERTIES (type = '{kind}', primaryKey = 'id')"
        )
        rows = f"SELECT id, amount, dept, day FROM {table}"
        spark.sql(f"INSERT INTO {table} VALUES (1, 10, 'hr', 'd1'), (2, 20, 'hr', 'd2'), (3, 30, 'it', 'd1')")
        spark.sql(f"INSERT OVERWRITE {table} PARTITION (dept = 'hr', day = 'd1') SELECT 4, 40")
        answer(f"{kind} static", spark.sql(rows))
        spark.sql("SET hoodie.datasource.overwrite.mode = dynamic")
        spark.sql(f"INSERT OVERWRITE {table} SELECT 5, 50, 'it', 'd1'")
        spark.sql("RESET hoodie.datasource.overwrite.mode")
        answer(f"{kind} dynamic", spark.sql(rows))
        spark.sql(f"INSERT OVERWRITE {table} VALUES (6, 60, 'pr', 'd9')")
        answer(f"{kind} whole", spark.sql(rows))
    path = f"{folder}/frames"
    options = {
        "hoodie.table.name": "frames",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "dept",
        "hoodie.datasource.write.precombine.field": "amount",
    }
    steps = (
        ("insert", [(1, 10, "hr"), (2, 20, "it")]),
        ("insert_overwrite", [(3, 30, "it"), (3, 31, "it")]),
        ("insert_overwrite_table", [(4, 40, "pr")]),
    )
    for operation, new in steps:
        df = spark.createDataFrame(new, "id int, amount int, dept string")
        df.write.format("hudi").options(**options, **{OPERATION: operation}).mode("append").save(path)
        answer(operation, spark.read.format("hudi").load(path).select("id", "amount", "dept"))
