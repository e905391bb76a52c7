"""Inserts of keys that the table has: kept twice, dropped, refused, or updated."""


def main(spark, folder, answer):
    columns = "id int, name string, ts long"
    for policy in ("none", "drop", "fail"):
        path = f"{folder}/{policy}"
        options = {
            "hoodie.table.name": policy,
            "hoodie.datasource.write.operation": "insert",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.insert.dup.policy": policy,
        }
        first = spark.createDataFrame([(1, "a", 1), (2, "b", 1)], columns)
        second = spark.createDataFrame([(2, "b2", 2), (3, "c", 2)], columns)
        first.write.format("hudi").options(**options).mode("append").save(path)
        try:
            second.write.format("hudi").options(**options).mode("append").save(path)
            answer(f"{policy} told", [["written"]])
        except Exception:
            answer(f"{policy} told", [["refused"]])
        answer(policy, spark.read.format("hudi").load(path).select("id", "name", "ts"))
    spark.sql(
        "CREATE TABLE keyed (id INT, name STRING, ts BIGINT) USING hudi"
        " TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts')"
    )
    for operation in ("insert", "upsert", "bulk_insert"):
        spark.sql(f"SET hoodie.spark.sql.insert.into.operation = {operation}")
        spark.sql(f"INSERT INTO keyed SELECT 1, '{operation}', {len(operation)}")
        answer(f"by SQL, {operation}", spark.sql("SELECT id, name, ts FROM keyed"))
    spark.sql("RESET hoodie.spark.sql.insert.into.operation")
