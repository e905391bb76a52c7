"""What changed: incremental and CDC queries."""


def main(spark, folder, answer):
    for kind in ("cow", "mor"):
        table = f"orders_{kind}"
        spark.sql(
            f"""
            CREATE TABLE {table} (id INT, state STRING, ts BIGINT) USING hudi
            TBLPROPERTIES (type = '{kind}', primaryKey = 'id', preCombineField = 'ts',
            'hoodie.table.cdc.enabled' = 'true')
            """
        )
        spark.sql(f"INSERT INTO {table} VALUES (1, 'new', 1), (2, 'new', 1), (3, 'new', 1)")
        spark.sql(f"UPDATE {table} SET state = 'paid', ts = 2 WHERE id < 3")
        spark.sql(f"DELETE FROM {table} WHERE id = 2")
        latest = f"SELECT id, state FROM hudi_table_changes('{table}', 'latest_state', 'earliest')"
        answer(f"{kind} latest", spark.sql(latest))
        cdc = f"SELECT op, before, after FROM hudi_table_changes('{table}', 'cdc', 'earliest')"
        answer(
            f"{kind} changes",
            spark.sql(cdc).selectExpr(
                "op",
                "get_json_object(before, '$.state')",
                "get_json_object(after, '$.id')",
                "get_json_object(after, '$.state')",
            ),
        )
        path = f"{folder}/{table}"
        options = {
            "hoodie.datasource.query.type": "incremental",
            "hoodie.datasource.read.begin.instanttime": "000",
        }
        read = spark.read.format("hudi").options(**options).load(path)
        answer(f"{kind} incremental", read.select("id", "state", "ts"))
