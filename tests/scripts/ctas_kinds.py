"""Tables made of queries: with keys, ordering and partitions, of other tables, at a place, of joins."""


def main(spark, folder, answer):
    spark.sql("SET hoodie.spark.sql.insert.into.operation = upsert")
    spark.createDataFrame(
        [
            (1, "pen", 1.5, 5, "a"),
            (1, "pen late", 9.9, 3, "a"),
            (2, "ink", 4.0, 5, "b"),
            (3, "pad", 2.0, 5, "b"),
        ],
        "id int, item string, price double, ts long, shop string",
    ).createOrReplaceTempView("goods")
    for kind in ("cow", "mor"):
        spark.sql(
            f"CREATE TABLE keyed_{kind} USING hudi PARTITIONED BY (shop)"
            f" TBLPROPERTIES (type = '{kind}', primaryKey = 'id', preCombineField = 'ts') AS"
            " SELECT * FROM goods WHERE ts > 3"
        )
        answer(
            f"{kind} keyed",
            spark.sql(f"SELECT id, item, price, ts, shop, _hoodie_partition_path FROM keyed_{kind}"),
        )
        spark.sql(f"INSERT INTO keyed_{kind} VALUES (2, 'ink late', 0.0, 1, 'b'), (4, 'cap', 1.0, 1, 'c')")
        answer(f"{kind} keyed, later", spark.sql(f"SELECT id, item, ts, shop FROM keyed_{kind}"))
        spark.sql(
            f"CREATE TABLE plain_{kind} USING hudi TBLPROPERTIES (type = '{kind}') AS SELECT * FROM goods"
        )
        answer(f"{kind} plain", spark.sql(f"SELECT id, item, price, ts, shop FROM plain_{kind}"))
        spark.sql(
            f"CREATE TABLE placed_{kind} USING hudi LOCATION '{folder}/placed_{kind}' OPTIONS (type ="
            f" '{kind}', primaryKey = 'id')"
            f" AS SELECT id, upper(item) AS item, price * 2 AS double_price FROM keyed_{kind}"
        )
        answer(
            f"{kind} placed",
            spark.read.format("hudi").load(f"{folder}/placed_{kind}").select("id", "item", "double_price"),
        )
        spark.sql(
            f"""
            CREATE TABLE joined_{kind} USING hudi TBLPROPERTIES (type = '{kind}', primaryKey = 'shop') AS
            SELECT k.shop, count(*) AS n, max(p.price) AS top FROM keyed_{kind} k
            JOIN plain_{kind} p ON k.id = p.id
            GROUP BY k.shop
            """
        )
        answer(f"{kind} joined", spark.sql(f"SELECT shop, n, top FROM joined_{kind}"))
        spark.sql(f"CREATE TABLE IF NOT EXISTS joined_{kind} USING hudi AS SELECT 1 AS shop")
        answer(f"{kind} there already", spark.sql(f"SELECT count(*) FROM joined_{kind}"))
    spark.sql("RESET hoodie.spark.sql.insert.into.operation")
