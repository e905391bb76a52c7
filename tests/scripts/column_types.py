"""Columns of all types, nested ones too: written, updated, merged from logs, read."""

import datetime
from decimal import Decimal


def main(spark, folder, answer):
    columns = """id int, flag boolean, small smallint, big long, real float, price decimal(12,3), day date,
        at timestamp, raw binary, tags array<string>, sizes map<string,int>,
        home struct<zip:string,geo:struct<x:double,y:double>>,
        past array<struct<city:string,year:int>>"""

    def row(key, n):
        day = datetime.date(2024, 1, n)
        at = datetime.datetime(2024, 1, n, 12, 30, 15, 123456)
        nested = {"zip": f"z{n}", "geo": {"x": n / 2, "y": None}}
        past = [{"city": "quito", "year": 2000 + n}, {"city": None, "year": None}]
        exact = Decimal("1234.567") * n
        raw = bytes([n, 255])
        return (
            key,
            n % 2 == 0,
            n,
            n * 10**10,
            n / 4,
            exact,
            day,
            at,
            raw,
            ["a", f"t{n}"],
            {"k": n},
            nested,
            past,
        )

    empty = (9, *[None] * 12)
    for kind in ("COPY_ON_WRITE", "MERGE_ON_READ"):
        path = f"{folder}/{kind.lower()}"
        options = {
            "hoodie.table.name": "types",
            "hoodie.datasource.write.table.type": kind,
            "hoodie.datasource.write.recordkey.field": "id",
        }
        for rows in ([row(1, 1), row(2, 2), empty], [row(2, 3), row(3, 4)]):
            df = spark.createDataFrame(rows, columns)
            df.write.format("hudi").options(**options).mode("append").save(path)
        read = spark.read.format("hudi").load(path)
        answer(
            f"{kind} plain", read.select("id", "flag", "small", "big", "real", "price", "day", "at", "raw")
        )
        answer(f"{kind} nested", read.select("id", "tags", "sizes", "home", "past"))
        answer(f"{kind} fields", read.selectExpr("id", "home.geo.x", "tags[1]", "past[0].year", "sizes['k']"))
        answer(f"{kind} filtered", read.where("price > 2500 AND day < DATE'2024-01-04'").select("id"))
