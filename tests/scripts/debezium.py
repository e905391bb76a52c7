"""Change events of Debezium for PostgreSQL, ordered by the log's position."""

PAYLOAD = "org.apache.hudi.common.model.debezium.PostgresDebeziumAvroPayload"


def main(spark, folder, answer):
    path = f"{folder}/users"
    options = {
        "hoodie.table.name": "users",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "_event_lsn",
        "hoodie.datasource.write.payload.class": PAYLOAD,
    }
    columns = "_change_operation_type string, _event_lsn long, id int, email string"
    batches = (
        [("c", 10, 1, "a@x"), ("c", 11, 2, "b@x"), ("r", 12, 3, "c@x")],
        [("u", 15, 1, "a@y"), ("d", 16, 2, None), ("u", 5, 3, "late")],
        [("c", 20, 2, "b@z")],
    )
    for number, rows in enumerate(batches):
        df = spark.createDataFrame(rows, columns)
        df.write.format("hudi").options(**options).mode("append").save(path)
        read = spark.read.format("hudi").load(path)
        answer(f"batch {number}", read.select("id", "email", "_event_lsn"))
