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
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

TOPIC = "records"
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
        shutil.rmtree(self.table, ignore_errors=True)
        Path(self.table).parent.mkdir(parents=True, exist_ok=True)

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


@contextmanager
def topic(data: str) -> Iterator[str]:
    """Run a broker with a topic of records; yield its address, nothing where none can run."""
    words = [os.environ["BENCH_PYTHON"], str(Path(__file__).with_name("streams_topic.py")), data]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        try:
            if not (line := process.stdout.readline()):
                raise RuntimeError("the topic was not made: see the messages above")
            yield line.strip()
        finally:
            process.stdin.close()
            process.wait()


def no_kafka(why: str) -> None:
    """Tell why there are no figures of Kafka."""
    print(f"Kafka is left out: {why}", file=sys.stderr)
