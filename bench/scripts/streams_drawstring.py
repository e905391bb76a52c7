"""drawstring's streams without Spark. usage: streams_drawstring.py DATA TABLE"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from ride import step
from streams import BUCKETS, KAFKA, OPERATIONS, OPTIONS, TOPIC, Streams

import drawstring


def micro_batches(streams: Streams) -> list[float]:
    """Write each file as a batch of a stream, with the services that follow by default."""
    files = sorted(Path(streams.arriving).iterdir())
    table = drawstring.create(
        streams.table,
        pq.read_schema(files[0]),
        name="stream",
        table_type="MERGE_ON_READ",
        record_key=["id"],
        partition_by=["part"],
        ordering=["ts"],
        properties=BUCKETS,
    )
    stream, seconds = table.stream("files"), []
    for file in files:
        start = time.perf_counter()
        stream.write(pq.read_table(file), file.name)
        seconds.append(round(time.perf_counter() - start, 4))
    return seconds


def ingest(streams: Streams, operation: str, engine: Any = None) -> int:
    """Ingest the topic, up to five million records a batch; return the number of rows.

    Args:
        streams: the facts.
        operation: of the writes.
        engine: Spark's, without one the embedded one.
    """
    source = {
        "bootstrap.servers": os.environ[KAFKA],
        "auto.offset.reset": "earliest",
        "hoodie.streamer.source.kafka.topic": TOPIC,
    }
    total = 0
    while rows := drawstring.ingest(
        streams.table, "kafka-json", options={**OPTIONS, **source}, operation=operation, engine=engine
    ).rows:
        total += rows
    return total


def rows(streams: Streams) -> int:
    """Return the number of rows in the table."""
    scan = drawstring.open(streams.table).scan(columns=["id"])
    return sum(batch.num_rows for batch in scan.to_batches())


def main() -> None:
    """Take the micro-batches, then the topic twice."""
    streams = Streams(*sys.argv[1:3])
    step("micro_batches", micro_batches, streams)
    streams.check(rows(streams))
    for operation in OPERATIONS if KAFKA in os.environ else ():
        streams.fresh()
        step(f"kafka_{operation}", ingest, streams, operation)
        streams.check(rows(streams), streams.facts["kafka_rows"])


if __name__ == "__main__":
    drawstring.use_allocator()
    main()
