"""Rows whose columns change from write to write: added, wider, left out."""


def main(spark, folder, answer):
    for kind in ("COPY_ON_WRITE", "MERGE_ON_READ"):
        path = f"{folder}/{kind.lower()}"
        options = {
            "hoodie.table.name": "people",
            "hoodie.datasource.write.table.type": kind,
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.precombine.field": "ts",
        }

        def write(rows, columns, options=options, path=path, **more):
            df = spark.createDataFrame(rows, columns)
            df.write.format("hudi").options(**options, **more).mode("append").save(path)

        def read(*columns, path=path):
            return spark.read.format("hudi").load(path).select(*columns)

        write([(1, "ada", 30, 1), (2, "bob", 40, 1)], "id int, name string, age int, ts long")
        write(
            [(2, "bob", 41, 2, "quito"), (3, "cyd", 50, 2, "turin")],
            "id int, name string, age int, ts long, city string",
        )
        answer(f"{kind} column added", read("id", "name", "age", "city"))
        write([(3, "cyd", 5_000_000_000, 3, "turin")], "id int, name string, age long, ts long, city string")
        answer(f"{kind} column widened", read("id", "age", "city"))
        fill = {"hoodie.write.set.null.for.missing.columns": "true"}
        write([(1, 31, 4, "osaka")], "id int, age long, ts long, city string", **fill)
        answer(f"{kind} column left out", read("id", "name", "age", "city"))
        write(
            [(4, 1, 5, "rome", "dan", {"zip": "1", "street": "x"})],
            "id int, age long, ts long, city string, name string, home struct<zip:string,street:string>",
        )
        answer(f"{kind} struct added", read("id", "name", "home.zip"))
        written = read("*").schema
        answer(
            f"{kind} types",
            [[f.name, f.dataType.simpleString()] for f in written if not f.name.startswith("_")],
        )
