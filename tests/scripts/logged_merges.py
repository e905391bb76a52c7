"""Tables with change logs that MERGE, overwrites and drops of partitions change: what the logs say."""

SEEN = (
    "op, coalesce(get_json_object(after, '$.id'), get_json_object(before, '$.id')) AS id,"
    " get_json_object(before, '$.place') AS old, get_json_object(after, '$.place') AS new"
)


def main(spark, folder, answer):
    for kind in ("cow", "mor"):
        table = f"parcels_{kind}"
        spark.sql(
            f"CREATE TABLE {table} (id INT, place STRING, ts BIGINT, day STRING) USING hudi"
            f" PARTITIONED BY (day) TBLPROPERTIES (type = '{kind}', primaryKey = 'id',"
            " preCombineField = 'ts', 'hoodie.table.cdc.enabled' = 'true',"
            " 'hoodie.table.cdc.supplemental.logging.mode' = 'data_before_after')"
        )
        spark.sql(f"INSERT INTO {table} VALUES (1, 'hub', 1, 'd1'), (2, 'hub', 1, 'd1'), (3, 'hub', 1, 'd2')")
        spark.sql(
            f"""
            MERGE INTO {table} t USING (
                SELECT * FROM VALUES (1, 'van', 2L, 'd1', 'go'), (2, 'hub', 2L, 'd1', 'gone'),
                (4, 'hub', 2L, 'd2', 'go') AS v(id, place, ts, day, what)
            ) s ON t.id = s.id AND t.day = s.day
            WHEN MATCHED AND s.what = 'go' THEN
            UPDATE SET id = s.id, place = s.place, ts = s.ts, day = s.day
            WHEN MATCHED AND s.what = 'gone' THEN DELETE
            WHEN NOT MATCHED THEN INSERT (id, place, ts, day) VALUES (s.id, s.place, s.ts, s.day)
            """
        )
        answer(f"{kind} rows", spark.sql(f"SELECT id, place, ts, day FROM {table}"))
        changes = f"FROM hudi_table_changes('{table}', 'cdc', 'earliest')"
        answer(f"{kind} merged", spark.sql(f"SELECT {SEEN} {changes}"))
        spark.sql(f"DELETE FROM {table} WHERE day = 'd2' AND id = 3")
        spark.sql(f"UPDATE {table} SET place = 'door', ts = 5")
        answer(f"{kind} changed", spark.sql(f"SELECT {SEEN} {changes}"))
        spark.sql(f"INSERT OVERWRITE {table} PARTITION (day = 'd1') SELECT 9, 'new', 6")
        answer(f"{kind} overwritten", spark.sql(f"SELECT {SEEN} {changes}"))
        answer(f"{kind} counts", spark.sql(f"SELECT op, count(*) {changes} GROUP BY op"))
        answer(f"{kind} at last", spark.sql(f"SELECT id, place, ts, day FROM {table}"))
