"""Tables by name: saveAsTable, insertInto, views, joins, databases."""


def main(spark, folder, answer):
    orders = spark.createDataFrame(
        [(1, "c1", 10.0, 1), (2, "c2", 20.0, 1), (3, "c1", 30.0, 1)],
        "id int, customer string, total double, ts long",
    )
    options = {
        "hoodie.table.name": "orders",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
    }
    orders.write.format("hudi").options(**options).mode("overwrite").saveAsTable("orders")
    answer("saved", spark.table("orders").select("id", "customer", "total"))
    spark.sql(
        "CREATE TABLE customers (customer STRING, city STRING) USING hudi"
        " TBLPROPERTIES (primaryKey = 'customer')"
    )
    spark.createDataFrame(
        [("c1", "quito"), ("c2", "turin")], "customer string, city string"
    ).write.insertInto("customers")
    joined = """
        SELECT city, count(*) AS n, sum(total) AS total FROM orders JOIN customers USING (customer)
        GROUP BY city
    """
    answer("joined", spark.sql(joined))
    spark.sql("CREATE OR REPLACE TEMPORARY VIEW big AS SELECT id, total FROM orders WHERE total > 15")
    answer("view", spark.sql("SELECT * FROM big"))
    spark.sql("UPDATE orders SET total = total + 1, ts = 2 WHERE id IN (SELECT id FROM big)")
    answer("view after an update", spark.sql("SELECT id, total FROM orders"))
    spark.sql(
        "DELETE FROM orders WHERE customer NOT IN (SELECT customer FROM customers WHERE city = 'quito')"
    )
    answer("semi-joined delete", spark.sql("SELECT id, total FROM orders"))
    answer("exists", [[str(spark.catalog.tableExists("customers"))]])
    spark.sql("DROP TABLE customers")
    answer("tables", spark.sql("SHOW TABLES").where("NOT isTemporary").select("tableName"))
    spark.catalog.dropTempView("big")
