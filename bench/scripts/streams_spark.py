"""Streams on Spark. usage: streams_spark.py DATA TABLE [JARS] drawstring|hudi|delta"""

from __future__ import annotations

import sys
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from ride import step
from sparks import session
from streams import OPTIONS, SCHEMA, Streams, micro_batches

MERGE = (
    "merge into delta.`{}` old using new_rows new on old.part = new.part and old.id = new.id"
    " when matched and new.ts >= old.ts then update set * when not matched then insert *"
)


def start_hudi(streams: Streams) -> Any:
    """Return what starts a query into a table of Hudi's format: by drawstring, or by Hudi."""
    options = {**OPTIONS, "checkpointLocation": f"{streams.table}-checkpoint"}
    return lambda writer: writer.format("hudi").options(**options).outputMode("append").start(streams.table)


def start_delta(spark: SparkSession, streams: Streams) -> Any:
    """Return what starts a query that merges each micro-batch into a table of Delta Lake's."""
    spark.sql(f"create table delta.`{streams.table}` ({SCHEMA}) using delta partitioned by (part)")

    def merge(rows: DataFrame, _: int) -> None:
        rows.createOrReplaceTempView("new_rows")
        rows.sparkSession.sql(MERGE.format(streams.table)).collect()

    checkpoint = f"{streams.table}-checkpoint"
    return lambda writer: writer.foreachBatch(merge).option("checkpointLocation", checkpoint).start()


def main(data: str, table: str, *rest: str) -> None:
    """Take the micro-batches."""
    streams, (*jars, peer) = Streams(data, table), rest
    spark = session(jars[0] if jars else None, _conf(peer))
    if peer == "drawstring":
        import drawstring.spark

        drawstring.spark.register(spark)
    spark.range(1000).count()
    start = start_delta(spark, streams) if peer == "delta" else start_hudi(streams)
    rows = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(streams.arriving)
    step("micro_batches", micro_batches, rows, start)
    kind = "delta" if peer == "delta" else "hudi"
    streams.check(spark.read.format(kind).load(streams.table).count())


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
