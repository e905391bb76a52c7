"""A record index in the metadata table: kept by writes, used by upserts and by queries."""


def main(spark, folder, answer):
    path = f"{folder}/orders"
    options = {
        "hoodie.table.name": "orders",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "state",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.metadata.enable": "true",
        "hoodie.metadata.record.index.enable": "true",
        "hoodie.index.type": "RECORD_INDEX",
        "hoodie.record.index.update.partition.path": "true",
    }

    def write(rows, operation="upsert"):
        df = spark.createDataFrame(rows, "id string, total double, ts long, state string")
        more = {"hoodie.datasource.write.operation": operation}
        df.write.format("hudi").options(**options, **more).mode("append").save(path)

    def read(where="true"):
        skipping = {"hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "true"}
        rows = spark.read.format("hudi").options(**skipping).load(path).where(where)
        return rows.select("_hoodie_partition_path", "id", "total", "ts")

    write([("o1", 1.0, 1, "open"), ("o2", 2.0, 1, "open"), ("o3", 3.0, 1, "paid")])
    write([("o1", 1.5, 2, "paid"), ("o4", 4.0, 2, "open")])
    answer("moved", read())
    answer("by key", read("id = 'o1'"))
    answer("by keys", read("id IN ('o2', 'o4', 'none')"))
    write([("o2", 0.0, 3, "open")], "delete")
    answer("deleted", read())
