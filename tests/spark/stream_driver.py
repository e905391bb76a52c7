"""A driver that streams files into a table until it is killed or done; run as a module.

    python -m tests.spark.stream_driver FOLDER CHECKPOINT TABLE NAME

It prints a line when its query runs.
"""

from __future__ import annotations

import sys

import drawstring.spark
from tests.support.spark import spark_session


def main(folder: str, checkpoint: str, path: str, name: str) -> None:
    spark = spark_session("local[1]")
    drawstring.spark.register(spark)
    rows = spark.readStream.schema("id long, ts long").option("maxFilesPerTrigger", 1).parquet(folder)
    writer = rows.writeStream.format("hudi").options(
        **{
            "hoodie.table.name": "t",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.operation": "insert",
            "hoodie.datasource.write.table.type": "MERGE_ON_READ",
            "hoodie.datasource.write.streaming.checkpoint.identifier": name,
            "checkpointLocation": checkpoint,
        }
    )
    query = writer.trigger(availableNow=True).start(path)
    print("runs", flush=True)
    query.awaitTermination()
    drawstring.open(path).wait_for_services()


if __name__ == "__main__":
    main(*sys.argv[1:])
