"""What Hudi's quick start does with DataFrames: one script for Apache Hudi's bundle and for drawstring.

    python quick_start.py FOLDER ANSWERS

`set_up` is all that differs: a module that makes the session `spark`. What every query found is written to
the file ANSWERS as JSON, without what two runs cannot have in common (times and file names).
"""

from __future__ import annotations

import datetime
import json
import sys
from pathlib import Path

from pyspark.sql.functions import col, lit
from set_up import spark

FOLDER, ANSWERS = sys.argv[1:]
SCHEMA = "ts long, uuid string, rider string, driver string, fare double, city string"
COLUMNS = ["ts", "uuid", "rider", "driver", "fare", "city"]
RIDES = [
    (1000, "u1", "rider-a", "driver-k", 19.1, "berlin"),
    (1001, "u2", "rider-b", "driver-l", 27.7, "berlin"),
    (1002, "u3", "rider-c", "driver-m", 33.9, "berlin"),
    (1003, "u4", "rider-d", "driver-n", 34.15, "lima"),
    (1004, "u5", "rider-e", "driver-o", 93.5, "lima"),
    (1005, "u6", "rider-f", "driver-p", 43.4, "oslo"),
]
TYPE, BEGIN, END = (
    "hoodie.datasource.query.type",
    "hoodie.datasource.read.begin.instanttime",
    "hoodie.datasource.read.end.instanttime",
)
OPERATION = "hoodie.datasource.write.operation"
answers = []


def rides(rows):
    return spark.createDataFrame(rows, SCHEMA)


def answer(name, rows):
    """Note the rows of a query, in an order that they always have."""
    answers.append([name, sorted([str(value) for value in row] for row in rows.collect())])


class Table:
    """A table of a type, and what the quick start does to it."""

    def __init__(self, table_type):
        self.type = table_type
        self.path = f"{FOLDER}/rides_{table_type.lower()}"
        self.options = {
            "hoodie.table.name": "rides",
            "hoodie.datasource.write.table.type": table_type,
            "hoodie.datasource.write.recordkey.field": "uuid",
            "hoodie.datasource.write.partitionpath.field": "city",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.table.cdc.enabled": "true",
            "hoodie.upsert.shuffle.parallelism": "2",
            "hoodie.insert.shuffle.parallelism": "2",
        }

    def write(self, rows, operation="upsert", mode="append", **more):
        options = {**self.options, OPERATION: operation, **more}
        rows.write.format("hudi").options(**options).mode(mode).save(self.path)

    def read(self, **options):
        return spark.read.format("hudi").options(**options).load(self.path)

    def answer(self, name, **options):
        answer(name, self.read(**options).select("_hoodie_record_key", "_hoodie_partition_path", *COLUMNS))

    def times(self):
        return sorted(row[0] for row in self.read().select("_hoodie_commit_time").distinct().collect())

    def insert(self):
        self.write(rides(RIDES[:4]), "insert", "overwrite")
        self.write(rides(RIDES[4:]), "bulk_insert")
        self.answer("inserted")
        self.read().createOrReplaceTempView("rides")
        answer("sql", spark.sql("select fare, ts, uuid, rider, city from rides where fare > 30.0"))
        answer("grouped", spark.sql("select city, count(*), max(fare) from rides group by city"))

    def change(self):
        rows = self.read().where(col("rider") == "rider-d").select(*COLUMNS)
        self.write(rows.withColumn("fare", col("fare") * 10).withColumn("ts", col("ts") + 1))
        self.answer("updated")
        late = (1, "u2", "late", "late", 0.0, "berlin")
        self.write(rides([(2000, "u1", "rider-a", "driver-z", 1.0, "berlin"), late]))
        self.write(rides([(2001, "u7", "rider-g", "driver-q", 5.5, "oslo")]))
        self.answer("updates and new rows")

    def delete(self):
        """Delete a row, and another one softly: its values are null."""
        self.write(self.read().where("uuid = 'u3'").select(*COLUMNS), "delete")
        self.answer("deleted")
        soft = self.read().where("uuid = 'u5'").select(*COLUMNS)
        for name, kind in (("rider", "string"), ("driver", "string"), ("fare", "double")):
            soft = soft.withColumn(name, lit(None).cast(kind))
        self.write(soft.withColumn("ts", col("ts") + 1000))
        self.answer("soft deleted")
        answer("live", self.read().where("rider is not null").select("uuid"))

    def look_back(self, first):
        """Ask for the table at a time and for what came since."""
        self.answer("time travel", **{"as.of.instant": first})
        point = datetime.datetime.strptime(first, "%Y%m%d%H%M%S%f")
        text = point.isoformat(sep=" ", timespec="milliseconds")
        self.answer("time travel by date", **{"as.of.instant": text})
        times, since = self.times(), {TYPE: "incremental", BEGIN: "000"}
        self.answer("incremental", **{**since, BEGIN: times[-2]})
        self.answer("since the beginning", **since)
        self.answer("up to a time", **since, **{END: times[0]})
        if self.type == "COPY_ON_WRITE":  # else it tells which base files small-file handling wrote anew
            self.answer("read optimised", **{TYPE: "read_optimized"})
        self.changes(**since)

    def changes(self, **since):
        """Note changes with their images, without meta columns."""

        def plain(text):
            row = json.loads(text or "null") or {}
            return [str(row.get(name)) for name in COLUMNS]

        found = self.read(**since, **{"hoodie.datasource.query.incremental.format": "cdc"})
        rows = found.select("op", "before", "after").collect()
        answers.append(["changes", sorted([row.op, plain(row.before), plain(row.after)] for row in rows)])

    def overwrite(self):
        self.write(rides([(3000, "u8", "rider-h", "driver-r", 7.0, "berlin")]), "insert_overwrite")
        self.answer("insert_overwrite")
        oslo = {"hoodie.datasource.write.partitions.to.delete": "oslo"}
        self.write(self.read().select(*COLUMNS).limit(0), "delete_partition", **oslo)
        self.answer("delete_partition")
        self.write(rides(RIDES[:2]), "insert_overwrite_table")
        self.answer("insert_overwrite_table")
        self.write(rides(RIDES[3:5]), mode="overwrite")
        self.answer("overwritten")


for table_type in ("COPY_ON_WRITE", "MERGE_ON_READ"):
    table = Table(table_type)
    table.insert()
    first = table.times()[-1]
    table.change()
    table.delete()
    table.look_back(first)
    table.overwrite()
with Path(ANSWERS).open("w") as file:
    json.dump(answers, file)
spark.stop()
