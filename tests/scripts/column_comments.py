"""Comments of columns, columns that become nullable, and audits of the lock, in SQL."""


def main(spark, folder, answer):
    def described(table):
        rows = spark.sql(f"DESCRIBE {table}").where("col_name NOT LIKE '\\_hoodie%'")
        return rows.select("col_name", "data_type", "comment")

    for on_read in ("false", "true"):
        spark.sql(f"SET hoodie.schema.on.read.enable={on_read}")
        table = f"people_{on_read}"
        spark.sql(
            f"""
            CREATE TABLE {table} (id INT COMMENT 'the key', name STRING, town STRING) USING hudi
            TBLPROPERTIES (primaryKey = 'id')
            """
        )
        spark.sql(f"INSERT INTO {table} VALUES (1, 'ann', 'oslo')")
        spark.sql(f"ALTER TABLE {table} ALTER COLUMN name COMMENT 'as she says it'")
        spark.sql(f"ALTER TABLE {table} ADD COLUMNS (age INT COMMENT 'in years')")
        spark.sql(f"INSERT INTO {table} VALUES (2, 'bob', 'rome', 7)")
        answer(f"{table} described", described(table))
        answer(f"{table} rows", spark.sql(f"SELECT id, name, town, age FROM {table}"))
    spark.sql("RESET hoodie.schema.on.read.enable")
    spark.sql("DELETE FROM people_false WHERE _hoodie_record_key = '1'")
    answer("without the first", spark.sql("SELECT id FROM people_false"))
    answer("audited", spark.sql("CALL set_audit_lock(table => 'people_false', state => 'enabled')"))
    status = spark.sql("CALL show_audit_lock_status(table => 'people_false')")
    answer("status", status.select("table", "audit_enabled"))
    answer("checked", spark.sql("CALL validate_audit_lock(table => 'people_false')"))
    answer("cleaned", spark.sql("CALL cleanup_audit_lock(table => 'people_false', age_days => 30)"))
    answer("repaired", spark.sql("CALL repair_corrupted_clean_files(table => 'people_false')"))
