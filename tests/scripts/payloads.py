"""Payload classes: which version of a record wins, on new tables."""

PAYLOADS = (
    "OverwriteWithLatestAvroPayload",
    "DefaultHoodieRecordPayload",
    "EventTimeAvroPayload",
    "OverwriteNonDefaultsWithLatestAvroPayload",
    "PartialUpdateAvroPayload",
)


def main(spark, folder, answer):
    columns = "id int, name string, price double, ts long"
    for payload in PAYLOADS:
        for kind in ("COPY_ON_WRITE", "MERGE_ON_READ"):
            path = f"{folder}/{payload}_{kind}"
            options = {
                "hoodie.table.name": "goods",
                "hoodie.datasource.write.table.type": kind,
                "hoodie.datasource.write.recordkey.field": "id",
                "hoodie.datasource.write.precombine.field": "ts",
                "hoodie.datasource.write.payload.class": f"org.apache.hudi.common.model.{payload}",
            }

            def write(rows, options=options, path=path):
                df = spark.createDataFrame(rows, columns)
                df.write.format("hudi").options(**options).mode("append").save(path)

            write([(1, "pen", 1.0, 5), (2, "ink", 2.0, 5), (3, "pad", 3.0, 5)])
            write([(1, "late", 9.0, 4), (2, None, 2.5, 6), (3, "pad", None, 5)])
            read = spark.read.format("hudi").load(path)
            answer(f"{payload} {kind}", read.select("id", "name", "price", "ts"))
