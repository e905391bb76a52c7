"""Partitions with a time to live, which is not over yet."""


def main(spark, folder, answer):
    columns = "id int, page string, ts long, day string"
    for kind in ("COPY_ON_WRITE", "MERGE_ON_READ"):
        path = f"{folder}/visits_{kind}"
        options = {
            "hoodie.table.name": "visits",
            "hoodie.datasource.write.table.type": kind,
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "day",
            "hoodie.datasource.write.precombine.field": "ts",
        }

        def save(rows, path=path, options=options, **more):
            df = spark.createDataFrame(rows, columns)
            given = {**options, **{f"hoodie.partition.ttl.{key}": value for key, value in more.items()}}
            df.write.format("hudi").options(**given).mode("append").save(path)
            return spark.read.format("hudi").load(path).select("id", "page", "day")

        days = ("2024-01-01", "2024-01-02", "2024-01-03")
        answer(f"{kind} first", save([(at, "home", 1, day) for at, day in enumerate(days)]))
        young = {"inline": "true", "strategy.days.retain": "10"}
        answer(f"{kind} young", save([(3, "shop", 1, days[2])], **young))
        none = {"inline": "true", "strategy.days.retain": "0", "strategy.partition.selected": days[0]}
        answer(f"{kind} no age", save([(4, "cart", 1, days[2])], **none))
        answer(f"{kind} again", save([(5, "home", 2, days[0])]))
