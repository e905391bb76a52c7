"""MERGE that only inserts: new keys once, of repeated ones the newest, known keys left alone."""


def main(spark, folder, answer):
    for kind in ("cow", "mor"):
        table = f"plants_{kind}"
        spark.sql(
            f"CREATE TABLE {table} (id INT, name STRING, height DOUBLE, ts BIGINT, bed STRING) USING hudi"
            f" PARTITIONED BY (bed) TBLPROPERTIES (type = '{kind}', primaryKey = 'id', preCombineField ="
            " 'ts')"
        )
        rows = f"SELECT id, name, height, ts, bed FROM {table}"
        spark.createDataFrame(
            [(1, "ivy", 1.0, 5, "north"), (1, "ivy", 1.5, 7, "north"), (2, "fern", 0.5, 5, "south")],
            "id int, name string, height double, ts long, bed string",
        ).createOrReplaceTempView("seen")
        merge = (
            f"MERGE INTO {table} t USING {{source}} s ON t.id = s.id AND t.bed = s.bed"
            " WHEN NOT MATCHED {condition} THEN INSERT *"
        )
        spark.sql(merge.format(source="seen", condition=""))
        answer(f"{kind} first", spark.sql(rows))
        spark.sql(merge.format(source="seen", condition=""))
        answer(f"{kind} again", spark.sql(rows))
        later = "(SELECT id + 1 AS id, upper(name) AS name, height, ts + 10 AS ts, bed FROM seen)"
        spark.sql(merge.format(source=later, condition="AND s.height >= 1.5"))
        answer(f"{kind} some", spark.sql(rows))
        spark.sql(
            f"""
            MERGE INTO {table} t USING (SELECT 9 AS id, 'moss' AS name, 50L AS ts, 'east' AS bed) s
            ON t.id = s.id AND t.bed = s.bed
            WHEN NOT MATCHED THEN INSERT (id, name, ts, bed) VALUES (s.id, s.name, s.ts, s.bed)
            """
        )
        answer(f"{kind} without a column", spark.sql(rows))
