"""Conditions of all kinds with statistics of columns, which leave out files, and the rows that they find."""

CONDITIONS = (
    "n = 42",
    "n <> 42",
    "n > 97 OR n < 3",
    "n BETWEEN 10 AND 12",
    "n IN (1, 50, 500)",
    "n IS NULL",
    "n IS NOT NULL AND n < 2",
    "NOT (n >= 2)",
    "word LIKE 'w07%'",
    "word = 'w013'",
    "price >= 24.50 AND price < 25.25",
    "day = DATE'2024-03-01'",
    "day > '2024-04-07'",
    "at <= TIMESTAMP'2024-01-01 02:00:00'",
    "flag AND n > 95",
    "part = 'p1' AND n > 90",
    "n + 1 = 42",
    "upper(word) = 'W099'",
    "n <=> NULL",
)


def main(spark, folder, answer):
    rows = spark.range(100).selectExpr(
        "cast(id AS string) AS id",
        "cast(id AS int) AS n",
        "concat('w', lpad(cast(id AS string), 3, '0')) AS word",
        "cast(id / 4 AS DECIMAL(8, 2)) AS price",
        "date_add(DATE'2024-01-01', cast(id AS int)) AS day",
        "timestamp_seconds(1704067200 + id * 3600) AS at",
        "id % 2 = 0 AS flag",
        "concat('p', cast(id % 3 AS string)) AS part",
        "1L AS ts",
    )
    for kind in ("COPY_ON_WRITE", "MERGE_ON_READ"):
        path = f"{folder}/{kind.lower()}"
        options = {
            "hoodie.table.name": "facts",
            "hoodie.datasource.write.table.type": kind,
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "part",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.metadata.enable": "true",
            "hoodie.metadata.index.column.stats.enable": "true",
            "hoodie.parquet.small.file.limit": "0",
        }

        def write(df, options=options, path=path):
            df.write.format("hudi").options(**options).mode("append").save(path)

        for start in range(0, 100, 25):
            write(rows.where(f"n >= {start} AND n < {start + 25}"))
        write(
            rows.where("n IN (42, 97)")
            .selectExpr("*", "2L AS newer")
            .drop("ts")
            .withColumnRenamed("newer", "ts")
            .withColumn("n", rows.n + 1000)
        )
        write(
            rows.where("n = 7").selectExpr(
                "id", "cast(NULL AS int) AS n", "word", "price", "day", "at", "flag", "part", "2L AS ts"
            )
        )
        skipping = {"hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "true"}
        df = spark.read.format("hudi").options(**skipping).load(path)
        for condition in CONDITIONS:
            found = df.where(condition)
            answer(f"{kind} {condition}", found.selectExpr("count(*)", "min(word)", "max(word)", "sum(ts)"))
