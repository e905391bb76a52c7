"""Rows deleted by a value of a column that the options name."""


def main(spark, folder, answer):
    path = f"{folder}/marked"
    marked = {
        "hoodie.table.name": "marked",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
        "hoodie.payload.delete.field": "op",
        "hoodie.payload.delete.marker": "gone",
    }
    for rows in ([(1, "ok", 1), (2, "ok", 1)], [(1, "gone", 2), (3, "ok", 2)]):
        df = spark.createDataFrame(rows, "id int, op string, ts long")
        df.write.format("hudi").options(**marked).mode("append").save(path)
    answer("marker", spark.read.format("hudi").load(path).select("id", "op", "ts"))
