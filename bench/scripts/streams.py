"""What the peers of the suite of streams share; standard library only.

    micro_batches      batches of 1,000 rows, each a file; the result is the seconds of each of them
    kafka_upsert, kafka_bulk_insert
                       all records of a topic, from a broker on this machine; the result is their number

The facts are in `stream.json`: see `bench/streams.py`.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

TOPIC = "records"
KAFKA = "BENCH_KAFKA"
"""Environment variable with the address of the broker; it is not set where none can run."""
OPERATIONS = ("upsert", "bulk_insert")
RECORDS_MAX = 5_000_000
"""Records in a batch of a topic: what HoodieStreamer takes, and `drawstring.ingest`."""
SCHEMA = "id string, part string, ts long, amount double, note string"
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
OPTIONS = {
    "hoodie.table.name": "stream",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
    **BUCKETS,
}


class Streams:
    """The files and facts, and the folders of a peer's tables."""

    def __init__(self, data: str, table: str) -> None:
        self.data = os.path.abspath(data)
        self.arriving = f"{self.data}/stream"
        self.facts: dict[str, Any] = json.loads(Path(self.data, "stream.json").read_text())
        self.table = os.path.abspath(table)
        self.checkpoint = f"{self.table}-checkpoint"
        Path(self.table).parent.mkdir(parents=True, exist_ok=True)
        self.fresh()

    def fresh(self) -> None:
        """Forget the table, and how far a stream into it came."""
        for folder in (self.table, self.checkpoint):
            shutil.rmtree(folder, ignore_errors=True)

    def check(self, rows: int, expected: int | None = None) -> None:
        """Fail unless the table has the rows it must have."""
        wanted = self.facts["rows"] if expected is None else expected
        assert rows == wanted, f"{rows} rows instead of {wanted}"


def micro_batches(rows: Any, start: Any) -> list[float]:
    """Let a query of Spark's take all files, one at a time; return the seconds of each micro-batch.

    Args:
        rows: the streaming rows.
        start: takes a writer and starts it.
    """
    query = start(rows.writeStream.trigger(availableNow=True))
    query.awaitTermination()
    done = [each for each in query.recentProgress if each["numInputRows"]]
    return [each["durationMs"]["triggerExecution"] / 1000 for each in done]
