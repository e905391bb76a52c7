"""Records that a MERGE moves to another partition, under global indexes."""


def main(spark, folder, answer):
    for kind in ("cow", "mor"):
        for index in ("SIMPLE", "BLOOM"):
            table = f"crews_{kind}_{index}".lower()
            spark.sql(
                f"CREATE TABLE {table} (id INT, version INT, name STRING, base STRING) USING hudi"
                f" PARTITIONED BY (base) TBLPROPERTIES (type = '{kind}', primaryKey = 'id',"
                f" hoodie.index.type = 'GLOBAL_{index}',"
                f" hoodie.{index.lower()}.index.update.partition.path = 'true')"
            )
            rows = f"SELECT id, version, name, base, _hoodie_partition_path FROM {table}"
            spark.sql(f"INSERT INTO {table} VALUES (1, 1, 'ann', 'rome'), (2, 1, 'bob', 'oslo')")
            merge = (
                f"MERGE INTO {table} t USING ({{source}}) s ON t.id = s.id"
                " WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
            )
            moved = "SELECT 1 AS id, 2 AS version, 'ann' AS name, 'bern' AS base"
            spark.sql(merge.format(source=moved))
            answer(f"{kind} {index} moved", spark.sql(rows))
            spark.sql(merge.format(source="SELECT 3 AS id, 1 AS version, 'cyd' AS name, 'bern' AS base"))
            spark.sql(f"UPDATE {table} SET version = 3, name = 'anna' WHERE id = 1")
            answer(f"{kind} {index} more", spark.sql(rows))
            spark.sql(f"DELETE FROM {table} WHERE base = 'bern' AND id = 3")
            answer(f"{kind} {index} deleted", spark.sql(rows))
