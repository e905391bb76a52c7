"""A staging table that is checked before its good rows go on: bad ones land in a table of their own."""


def main(spark, folder, answer):
    spark.sql("SET hoodie.spark.sql.insert.into.operation = upsert")
    for name, more in (
        ("staging", ""),
        ("accepted", ", primaryKey = 'id', preCombineField = 'ts'"),
        ("rejected", ""),
    ):
        reason = ", reason STRING" if name == "rejected" else ""
        spark.sql(
            f"CREATE TABLE {name} (id INT, email STRING, age INT, ts BIGINT{reason}, src STRING) USING hudi"
            f" PARTITIONED BY (src) TBLPROPERTIES (type = 'mor'{more})"
        )
    batches = (
        "(1, 'a@x.de', 30, 1, 'web'), (2, 'nothing', 20, 1, 'web'), (3, 'c@x.de', -5, 1, 'app'), (NULL,"
        " 'd@x.de', 1, 1, 'app')",
        "(1, 'a@y.de', 31, 2, 'web'), (3, 'c@x.de', 5, 2, 'app'), (1, 'late@y.de', 29, 0, 'web')",
    )
    for at, batch in enumerate(batches):
        spark.sql(f"INSERT OVERWRITE staging VALUES {batch}")
        spark.sql(
            """
            CREATE OR REPLACE TEMPORARY VIEW checked AS
            SELECT *, CASE WHEN id IS NULL THEN 'no id' WHEN email NOT LIKE '%@%' THEN 'email'
                           WHEN age < 0 THEN 'age' END AS reason FROM staging
            """
        )
        spark.sql("INSERT INTO accepted SELECT id, email, age, ts, src FROM checked WHERE reason IS NULL")
        spark.sql(
            "INSERT INTO rejected SELECT id, email, age, ts, reason, src FROM checked WHERE reason IS NOT"
            " NULL"
        )
        answer(f"{at} accepted", spark.sql("SELECT id, email, age, src FROM accepted"))
        answer(f"{at} rejected", spark.sql("SELECT id, email, reason, src FROM rejected"))
        answer(f"{at} staging", spark.sql("SELECT count(*) FROM staging"))
    spark.sql("RESET hoodie.spark.sql.insert.into.operation")
