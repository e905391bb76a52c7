"""Streams on Spark. usage: streams_spark.py DATA TABLE [JARS] drawstring|hudi|delta"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, from_json
from ride import step
from sparks import session
from streams import KAFKA, OPERATIONS, OPTIONS, RECORDS_MAX, SCHEMA, TOPIC, Streams, micro_batches

MERGE = (
    "merge into delta.`{}` old using new_rows new on old.part = new.part and old.id = new.id"
    " when matched and new.ts >= old.ts then update set * when not matched then insert *"
)
Start = Callable[[Any], Any]
"""Takes the writer of a stream and starts it."""


def start_hudi(spark: SparkSession, streams: Streams, operation: str = "upsert") -> Start:
    """Return what starts a query into a table of Hudi's format: by drawstring, or by Hudi."""
    options = {
        **OPTIONS,
        "hoodie.datasource.write.operation": operation,
        "checkpointLocation": streams.checkpoint,
    }
    return lambda writer: writer.format("hudi").options(**options).outputMode("append").start(streams.table)


def start_delta(spark: SparkSession, streams: Streams, operation: str = "upsert") -> Start:
    """Return what starts a query into a table of Delta Lake's: it merges batches, or only adds them."""
    spark.sql(f"create table delta.`{streams.table}` ({SCHEMA}) using delta partitioned by (part)")

    def merge(rows: DataFrame, _: int) -> None:
        rows.createOrReplaceTempView("new_rows")
        rows.sparkSession.sql(MERGE.format(streams.table)).collect()

    def add(rows: DataFrame, _: int) -> None:
        rows.write.format("delta").mode("append").save(streams.table)

    write = merge if operation == "upsert" else add
    return lambda writer: writer.foreachBatch(write).option("checkpointLocation", streams.checkpoint).start()


def take_topic(spark: SparkSession, start: Start) -> int:
    """Let a query of Spark's take all records of the topic; return their number."""
    source = {
        "kafka.bootstrap.servers": os.environ[KAFKA],
        "subscribe": TOPIC,
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": RECORDS_MAX,
    }
    records = spark.readStream.format("kafka").options(**source).load()
    rows = records.select(from_json(col("value").cast("string"), SCHEMA).alias("row")).select("row.*")
    query = start(rows.writeStream.trigger(availableNow=True))
    query.awaitTermination()
    return sum(each["numInputRows"] for each in query.recentProgress)


def ingest_topic(spark: SparkSession, streams: Streams, operation: str) -> int:
    """Let drawstring's ingestion take all records of the topic, on this session."""
    from streams_drawstring import ingest

    import drawstring.spark

    return ingest(streams, operation, drawstring.spark.SparkEngine(spark))


def main(data: str, table: str, *rest: str) -> None:
    """Take the micro-batches, then the topic twice."""
    streams, (*jars, peer) = Streams(data, table), rest
    spark = session(jars[0] if jars else None, _conf(peer))
    if peer == "drawstring":
        import drawstring.spark

        drawstring.spark.register(spark)
    spark.range(1000).count()
    kind, started = ("delta", start_delta) if peer == "delta" else ("hudi", start_hudi)
    rows = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(streams.arriving)
    step("micro_batches", micro_batches, rows, started(spark, streams))
    streams.check(spark.read.format(kind).load(streams.table).count())
    for operation in OPERATIONS if KAFKA in os.environ else ():
        streams.fresh()
        if peer == "drawstring":
            step(f"kafka_{operation}", ingest_topic, spark, streams, operation)
        else:
            step(f"kafka_{operation}", take_topic, spark, started(spark, streams, operation))
        found = spark.read.format(kind).load(streams.table).count()
        streams.check(found, streams.facts["kafka_rows"])


def _conf(peer: str) -> dict[str, str]:
    if peer == "drawstring":
        return {}
    if peer == "hudi":
        import hudi_jvm

        return hudi_jvm.CONF
    import delta_jvm

    return delta_jvm.CONF


if __name__ == "__main__":
    main(*sys.argv[1:])
