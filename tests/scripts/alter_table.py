"""Tables altered by SQL: renamed, with new columns, comments, properties, and rows before and after."""


def main(spark, folder, answer):
    for kind in ("cow", "mor"):
        table, renamed = f"people_{kind}", f"staff_{kind}"
        spark.sql(
            f"CREATE TABLE {table} (id INT, name STRING, ts BIGINT, town STRING) USING hudi"
            f" PARTITIONED BY (town) TBLPROPERTIES (type = '{kind}', primaryKey = 'id', preCombineField ="
            " 'ts')"
        )
        spark.sql(f"INSERT INTO {table} VALUES (1, 'ann', 1, 'rome'), (2, 'bob', 1, 'oslo')")
        spark.sql(f"ALTER TABLE {table} RENAME TO {renamed}")
        answer(f"{kind} tables", spark.sql(f"SHOW TABLES LIKE '*_{kind}'").select("tableName"))
        spark.sql(f"ALTER TABLE {renamed} ADD COLUMNS (age INT COMMENT 'in years', mail STRING)")
        answer(f"{kind} added", spark.sql(f"SELECT id, name, age, mail, town FROM {renamed}"))
        spark.sql(
            f"INSERT INTO {renamed} (id, name, ts, age, mail, town) VALUES (3, 'cyd', 1, 30, 'c@x', 'rome')"
        )
        spark.sql(f"UPDATE {renamed} SET age = 40, ts = 2 WHERE id = 1")
        answer(f"{kind} filled", spark.sql(f"SELECT id, name, age, mail, town FROM {renamed}"))
        spark.sql(f"ALTER TABLE {renamed} SET TBLPROPERTIES ('owner.team' = 'hr', 'note' = 'keep')")
        spark.sql(f"ALTER TABLE {renamed} UNSET TBLPROPERTIES IF EXISTS ('note', 'other')")
        shown = spark.sql(f"SHOW TBLPROPERTIES {renamed}").where("key IN ('owner.team', 'note')")
        answer(f"{kind} properties", shown)
        described = spark.sql(f"DESCRIBE {renamed}").where("col_name IN ('age', 'mail', 'town')").distinct()
        answer(f"{kind} columns", described.select("col_name", "data_type", "comment"))
        spark.sql(
            f"""
            MERGE INTO {renamed} t
            USING (SELECT 2 AS id, 50 AS age, 'b@x' AS mail, 3L AS ts, 'oslo' AS town) s
            ON t.id = s.id AND t.town = s.town
            WHEN MATCHED THEN UPDATE SET age = s.age, mail = s.mail, ts = s.ts
            """
        )
        answer(f"{kind} merged", spark.sql(f"SELECT id, name, age, mail, town FROM {renamed}"))
