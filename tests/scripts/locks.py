"""Writes under optimistic concurrency control, with a lock of each kind that needs no service."""

PACKAGE = "org.apache.hudi.client.transaction.lock"


def main(spark, folder, answer):
    providers = {
        "in the process": {"hoodie.write.lock.provider": f"{PACKAGE}.InProcessLockProvider"},
        "file system": {
            "hoodie.write.lock.provider": f"{PACKAGE}.FileSystemBasedLockProvider",
            "hoodie.write.lock.filesystem.expire": "1",
        },
    }
    for name, provider in providers.items():
        path = f"{folder}/{name.replace(' ', '_')}"
        options = {
            "hoodie.table.name": "guarded",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
            "hoodie.cleaner.policy.failed.writes": "LAZY",
            "hoodie.write.lock.client.num_retries": "3",
            "hoodie.write.lock.wait_time_ms": "10000",
            "hoodie.write.lock.num_retries": "3",
            **provider,
        }
        for ts in (1, 2):
            df = spark.createDataFrame(
                [(1, f"v{ts}", ts), (ts + 1, "new", ts)], "id int, name string, ts long"
            )
            df.write.format("hudi").options(**options).mode("append").save(path)
        answer(name, spark.read.format("hudi").load(path).select("id", "name", "ts"))
