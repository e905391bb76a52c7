"""Columns whose types grow from batch to batch, top-level and nested, read from base files and from logs."""


def main(spark, folder, answer):
    batches = (
        (
            "id int, n int, f float, who struct<age:int>, tags array<int>, ts long",
            [(1, 1, 1.5, (1,), [1], 1), (2, 2, 2.5, (2,), [2], 1)],
        ),
        (
            "id int, n bigint, f float, who struct<age:int>, tags array<int>, ts long",
            [(2, 2**40, 3.5, (3,), [3], 2)],
        ),
        (
            "id int, n bigint, f double, who struct<age:bigint>, tags array<bigint>, ts long",
            [(3, 3, 0.1, (2**41,), [2**42], 3)],
        ),
        (
            "id int, n bigint, f double, who struct<age:bigint,name:string>, tags array<bigint>, ts long,"
            " more string",
            [(1, 7, 0.2, (9, "ann"), [9], 4, "x")],
        ),
    )
    for kind in ("COPY_ON_WRITE", "MERGE_ON_READ"):
        path = f"{folder}/{kind}"
        options = {
            "hoodie.table.name": "grown",
            "hoodie.datasource.write.table.type": kind,
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "",
            "hoodie.datasource.write.precombine.field": "ts",
        }
        for at, (columns, rows) in enumerate(batches):
            df = spark.createDataFrame(rows, columns)
            df.write.format("hudi").options(**options).mode("append").save(path)
            read = spark.read.format("hudi").load(path)
            answer(f"{kind} {at} rows", read.selectExpr("id", "n", "f", "who.age", "tags[0]", "ts"))
            types = [
                [field.name, field.dataType.simpleString()] for field in read.schema if field.name[0] != "_"
            ]
            answer(f"{kind} {at} types", types)
        answer(f"{kind} added", read.selectExpr("id", "who.name", "more"))
        answer(f"{kind} filtered", read.where("n > 5 AND f < 4").select("id"))
