"""Structs, arrays and maps: inserted, changed as wholes and in parts of queries, merged, exploded."""


def main(spark, folder, answer):
    for kind in ("cow", "mor"):
        table = f"carts_{kind}"
        spark.sql(
            f"CREATE TABLE {table} (id INT, buyer STRUCT<name: STRING, home: STRUCT<town: STRING, zip: INT>>,"
            " items ARRAY<STRUCT<sku: STRING, n: INT>>, notes MAP<STRING, STRING>, ts BIGINT) USING hudi"
            f" TBLPROPERTIES (type = '{kind}', primaryKey = 'id', preCombineField = 'ts')"
        )
        spark.sql(
            f"INSERT INTO {table} SELECT 1, named_struct('name', 'ann', 'home', named_struct('town',"
            " 'rome', 'zip', 1)),"
            " array(named_struct('sku', 'pen', 'n', 2), named_struct('sku', 'ink', 'n', 1)), map('gift',"
            " 'yes'), 1"
        )
        spark.sql(
            f"INSERT INTO {table} SELECT 2, named_struct('name', 'bob', 'home', NULL), array(), map(), 1"
        )
        rows = f"SELECT id, buyer.name, buyer.home.town, get(items, 0).sku, notes['gift'] FROM {table}"
        answer(f"{kind} inserted", spark.sql(rows))
        spark.sql(
            f"UPDATE {table} SET buyer = named_struct('name', 'bob', 'home', named_struct('town', 'oslo',"
            " 'zip', 2)),"
            " notes = map('gift', 'no', 'call', 'ring'), ts = 2 WHERE buyer.name = 'bob'"
        )
        answer(f"{kind} updated", spark.sql(rows))
        answer(f"{kind} filtered", spark.sql(f"SELECT id FROM {table} WHERE buyer.home.zip > 1"))
        spark.sql(
            f"""
            MERGE INTO {table} t USING (
                SELECT 1 AS id, array(named_struct('sku', 'pad', 'n', 9)) AS items, 3L AS ts
            ) s ON t.id = s.id
            WHEN MATCHED THEN UPDATE SET items = s.items, ts = s.ts
            """
        )
        exploded = spark.sql(f"SELECT id, item.sku, item.n FROM {table} LATERAL VIEW explode(items) AS item")
        answer(f"{kind} exploded", exploded)
        spark.sql(f"DELETE FROM {table} WHERE array_contains(map_keys(notes), 'call')")
        answer(f"{kind} deleted", spark.sql(rows))
