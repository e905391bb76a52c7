"""Tables created with `writeTo`, then inserted into, merged, read and joined by name."""


def main(spark, folder, answer):
    columns = "id int, name string, price double, ts long, kind string"
    rows = spark.createDataFrame([(1, "a", 1.5, 1, "x"), (2, "b", 2.5, 1, "y")], columns)
    writer = rows.writeTo("wares").using("hudi").partitionedBy(rows.kind)
    writer.tableProperty("primaryKey", "id").tableProperty("preCombineField", "ts").create()
    shown = ("id", "name", "price", "kind")
    answer("created", spark.table("wares").select(*shown))
    more = spark.createDataFrame([(3, "c", 3.5, 2, "x"), (4, "d", 4.5, 2, "z")], columns)
    more.createOrReplaceTempView("more")
    spark.sql("INSERT INTO wares SELECT * FROM more")
    answer("inserted", spark.table("wares").select(*shown))
    changes = spark.createDataFrame([(2, "bb", 2.75, 3, "y"), (5, "e", 5.5, 3, "x")], columns)
    changes.createOrReplaceTempView("changes")
    spark.sql(
        """
        MERGE INTO wares AS old USING changes AS new ON old.id = new.id AND old.kind = new.kind
        WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *
        """
    )
    answer("merged", spark.table("wares").select(*shown))
    joined = spark.table("wares").join(changes.select("id"), "id")
    answer("joined", joined.groupBy("kind").agg({"price": "sum"}))
