"""Merge modes and payload classes that table properties name: late rows, missing values, deletes."""

PACKAGE = "org.apache.hudi.common.model"
PROPERTIES = {
    "event": "recordMergeMode = 'EVENT_TIME_ORDERING'",
    "commit": "recordMergeMode = 'COMMIT_TIME_ORDERING'",
    "commit_by_key": "hoodie.write.record.merge.mode = 'COMMIT_TIME_ORDERING'",
    "default_payload": f"payloadClass = '{PACKAGE}.DefaultHoodieRecordPayload'",
    "latest_payload": f"payloadClass = '{PACKAGE}.OverwriteWithLatestAvroPayload'",
    "partial_payload": f"payloadClass = '{PACKAGE}.PartialUpdateAvroPayload'",
    "written_payload": f"hoodie.datasource.write.payload.class = '{PACKAGE}.PartialUpdateAvroPayload'",
}


def main(spark, folder, answer):
    spark.sql("SET hoodie.spark.sql.insert.into.operation = upsert")
    for name, properties in PROPERTIES.items():
        for kind in ("cow", "mor"):
            table = f"readings_{name}_{kind}"
            spark.sql(
                f"CREATE TABLE {table} (id INT, place STRING, level INT, ts BIGINT) USING hudi TBLPROPERTIES"
                f" (type = '{kind}', primaryKey = 'id', preCombineField = 'ts', {properties})"
            )
            spark.sql(f"INSERT INTO {table} VALUES (1, 'well', 10, 100), (2, 'lake', 20, 100)")
            spark.sql(f"INSERT INTO {table} VALUES (1, 'late', NULL, 90), (2, NULL, 21, 110)")
            if "partial" not in properties.lower():  # Hudi's UPDATE fails there
                spark.sql(f"UPDATE {table} SET level = level + 1 WHERE id = 2")
            answer(f"{name} {kind}", spark.sql(f"SELECT id, place, level, ts FROM {table}"))
    spark.sql("RESET hoodie.spark.sql.insert.into.operation")
