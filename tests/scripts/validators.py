"""Pre-commit validators: SQL that looks at what a write is about to commit, and stops it."""

NAMES = "hoodie.precommit.validators"
PACKAGE = "org.apache.hudi.client.validator."
CHECKS = {
    "single": (
        "SqlQuerySingleResultPreCommitValidator",
        "single.value.sql.queries",
        "select count(*) from <TABLE_NAME> where amount < 0#0;"
        "select count(distinct land) from <TABLE_NAME>#1",
    ),
    "equality": (
        "SqlQueryEqualityPreCommitValidator",
        "equality.sql.queries",
        "select count(*) from <TABLE_NAME> where amount is null",
    ),
    "inequality": (
        "SqlQueryInequalityPreCommitValidator",
        "inequality.sql.queries",
        "select max(ts) from <TABLE_NAME>",
    ),
}


def main(spark, folder, answer):
    columns = "id int, amount double, land string, ts long"

    def save(rows, path, more):
        options = {
            "hoodie.table.name": "sales",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "land",
            "hoodie.datasource.write.precombine.field": "ts",
            **more,
        }
        df = spark.createDataFrame(rows, columns)
        df.write.format("hudi").options(**options).mode("append").save(path)

    for name, (validator, key, queries) in CHECKS.items():
        path = f"{folder}/{name}"
        checks = {NAMES: PACKAGE + validator, f"{NAMES}.{key}": queries}
        first = [(1, 10.0, "chile", 1), (2, 20.0, "chile", 1), (3, 30.0, "peru", 1)]
        save(first, path, {})
        writes = {
            "fits": [(1, 11.0, "chile", 2)],
            "negative": [(2, -5.0, "chile", 3)],
            "null": [(4, None, "chile", 4)],
            "of two lands": [(1, 12.0, "chile", 5), (3, 33.0, "peru", 5)],
            "late": [(5, 50.0, "peru", 1)],
        }
        for kind, rows in writes.items():
            try:
                save(rows, path, checks)
                answer(f"{name} {kind}", [("committed",)])
            except Exception:
                answer(f"{name} {kind}", [("refused",)])
        read = spark.read.format("hudi").load(path)
        answer(f"{name} rows", read.select("id", "amount", "land", "ts"))
