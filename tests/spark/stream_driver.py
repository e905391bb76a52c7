"""A driver that streams files into a table until it is killed, or until all are there; run as a module.

    python -m tests.spark.stream_driver FOLDER CHECKPOINT TABLE NAME forever|once

It prints a line whenever its query starts: again when it failed, or when a line of its input stopped it.
"""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

import drawstring.spark
from tests.support.spark import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def stop_when_told(spark: SparkSession) -> None:
    """Stop the query that runs for each line of the input."""
    for _ in sys.stdin:
        for query in spark.streams.active:
            query.stop()


def main(folder: str, checkpoint: str, path: str, name: str, until: str) -> None:
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
            "hoodie.datasource.write.streaming.retry.interval.ms": "100",
            "checkpointLocation": checkpoint,
        }
    )
    if until == "once":
        writer.trigger(availableNow=True).start(path).awaitTermination()
        drawstring.open(path).services.wait()
        return
    threading.Thread(target=stop_when_told, args=(spark,), daemon=True).start()
    while True:
        query = writer.start(path)
        print("runs", flush=True)
        try:
            query.awaitTermination()
        except Exception as error:  # whatever a killed worker looks like
            print(str(error)[:2000], file=sys.stderr, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
