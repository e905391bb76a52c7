"""Orders flow through three tables: raw events, the newest state of each order, and totals of days."""

READ = "hoodie.datasource.query.type"
BEGIN = "hoodie.datasource.read.begin.instanttime"


def main(spark, folder, answer):
    def options(table, key, partition="", ordering="ts", kind="COPY_ON_WRITE"):
        return {
            "hoodie.table.name": table,
            "hoodie.datasource.write.table.type": kind,
            "hoodie.datasource.write.recordkey.field": key,
            "hoodie.datasource.write.partitionpath.field": partition,
            "hoodie.datasource.write.precombine.field": ordering,
        }

    raw, orders, totals = (f"{folder}/{name}" for name in ("raw", "orders", "totals"))
    batches = (
        [
            ("e1", 1, "placed", 10.0, 1, "d1"),
            ("e2", 2, "placed", 20.0, 1, "d1"),
            ("e3", 1, "paid", 10.0, 2, "d1"),
        ],
        [("e4", 2, "cancelled", 0.0, 3, "d1"), ("e5", 3, "placed", 30.0, 3, "d2")],
        [("e6", 3, "paid", 33.0, 5, "d2"), ("e7", 1, "placed", 9.0, 1, "d1")],
    )
    since = "000"
    for at, batch in enumerate(batches):
        events = spark.createDataFrame(
            batch, "event string, id int, state string, amount double, ts long, day string"
        )
        events.write.format("hudi").options(**options("raw", "event")).mode("append").save(raw)
        new = spark.read.format("hudi").options(**{READ: "incremental", BEGIN: since}).load(raw)
        since = max(row[0] for row in new.select("_hoodie_commit_time").distinct().collect())
        changed = new.select("id", "state", "amount", "ts", "day")
        given = options("orders", "id", "day", kind="MERGE_ON_READ")
        changed.write.format("hudi").options(**given).mode("append").save(orders)
        answer(f"orders {at}", spark.read.format("hudi").load(orders).select("id", "state", "amount", "day"))
        days = [row[0] for row in changed.select("day").distinct().collect()]
        state = spark.read.format("hudi").load(orders)
        summed = state.where(state.day.isin(days)).groupBy("day").agg({"amount": "sum", "id": "count"})
        summed = summed.selectExpr("day", "`sum(amount)` AS amount", "`count(id)` AS n", f"{at}L AS ts")
        summed.write.format("hudi").options(**options("totals", "day")).mode("append").save(totals)
        answer(f"totals {at}", spark.read.format("hudi").load(totals).select("day", "amount", "n", "ts"))
