"""A job as on AWS Glue: one dictionary with the options of writes, sync and services."""

from pyspark.sql.functions import col, to_date

EXTRACTOR = "org.apache.hudi.hive.MultiPartKeysValueExtractor"


def main(spark, folder, answer):
    path = f"{folder}/invoices"
    common = {
        "className": "org.apache.hudi",
        "hoodie.table.name": "invoices",
        "hoodie.datasource.write.table.type": "COPY_ON_WRITE",
        "hoodie.datasource.write.recordkey.field": "invoiceid",
        "hoodie.datasource.write.precombine.field": "replicadmstimestamp",
        "hoodie.datasource.write.partitionpath.field": "destinationstate",
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.datasource.write.reconcile.schema": "true",
        "hoodie.index.type": "GLOBAL_BLOOM",
        "hoodie.bloom.index.update.partition.path": "true",
    }
    sync = {
        "hoodie.datasource.hive_sync.enable": "false",
        "hoodie.datasource.hive_sync.mode": "hms",
        "hoodie.datasource.hive_sync.use_jdbc": "false",
        "hoodie.datasource.hive_sync.database": "hudidb",
        "hoodie.datasource.hive_sync.table": "invoices",
        "hoodie.datasource.hive_sync.partition_fields": "destinationstate",
        "hoodie.datasource.hive_sync.partition_extractor_class": EXTRACTOR,
    }
    services = {
        "hoodie.cleaner.policy": "KEEP_LATEST_COMMITS",
        "hoodie.cleaner.commits.retained": "10",
        "hoodie.keep.min.commits": "20",
        "hoodie.keep.max.commits": "30",
        "hoodie.parquet.max.file.size": "134217728",
        "hoodie.parquet.small.file.limit": "104857600",
        "hoodie.parquet.compression.codec": "gzip",
        "hoodie.upsert.shuffle.parallelism": "2",
        "hoodie.insert.shuffle.parallelism": "2",
        "hoodie.bulkinsert.shuffle.parallelism": "2",
    }
    columns = "invoiceid int, item string, price double, replicadmstimestamp string, destinationstate string"

    def job(rows, operation):
        df = spark.createDataFrame(rows, columns).withColumn("day", to_date(col("replicadmstimestamp")))
        options = {**common, **sync, **services, "hoodie.datasource.write.operation": operation}
        df.write.format("hudi").options(**options).mode("append").save(path)
        read = spark.read.format("org.apache.hudi").load(path)
        return read.select("_hoodie_partition_path", "invoiceid", "item", "price", "day")

    answer(
        "first load",
        job(
            [(1, "a", 1.5, "2024-01-01 00:00:00", "CA"), (2, "b", 2.5, "2024-01-01 00:00:00", "NY")],
            "bulk_insert",
        ),
    )
    answer(
        "moved",
        job(
            [(1, "a", 1.75, "2024-01-02 00:00:00", "TX"), (3, "c", 3.5, "2024-01-02 00:00:00", "NY")],
            "upsert",
        ),
    )
    answer("deleted", job([(2, "b", 2.5, "2024-01-03 00:00:00", "NY")], "delete"))
