"""The suite of streams: the files of its micro-batches, and its table."""

from __future__ import annotations

import json
import os
import statistics
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.results import Measured, Results
from bench.tables import markdown

MICRO, KAFKA = "micro_batches", "kafka_"
BATCHES = int(os.environ.get("BENCH_STREAM_BATCHES", "40"))
ROWS_OF_A_BATCH = 1000
NEW_OF_A_BATCH = 500
PARTITIONS = 4
HEAD = ("Streams", "first s", "median s", "worst s", "upsert, rows/s", "bulk_insert, rows/s")


def make(folder: Path, kafka_rows: int) -> None:
    """Write what the suite of streams reads.

    stream/I.parquet   micro-batches: half of the rows change those of the batch before, half are new
    stream.json        how many there are, the rows of the table then, and how many records a topic gets
    """
    arriving = folder / "stream"
    arriving.mkdir(parents=True, exist_ok=True)
    for number in range(BATCHES):
        ids = number * NEW_OF_A_BATCH + np.arange(ROWS_OF_A_BATCH)
        file = arriving / f"{number:04}.parquet"
        if file.exists():
            continue
        columns = {
            "id": [f"id-{each:09}" for each in ids],
            "part": [f"p{each % PARTITIONS}" for each in ids],
            "ts": np.full(ROWS_OF_A_BATCH, number),
            "amount": np.random.default_rng(number).random(ROWS_OF_A_BATCH),
            "note": [f"note {each} of {number}" for each in ids],
        }
        pq.write_table(pa.table(columns), file)
        os.utime(file, (number + 1, number + 1))
    facts = {
        "batches": BATCHES,
        "rows": (BATCHES - 1) * NEW_OF_A_BATCH + ROWS_OF_A_BATCH,
        "kafka_rows": kafka_rows,
    }
    (folder / "stream.json").write_text(json.dumps(facts))


def table(results: Results) -> str:
    """Return seconds of micro-batches and rows per second from Kafka of each peer; empty without any."""
    told = [one for one in results.steps if one.step == MICRO]
    return markdown(HEAD, [_row(results, one) for one in told]) if told else ""


def _row(results: Results, micro: Measured) -> tuple[str, ...]:
    first, *others = micro.result
    times = (first, statistics.median(others), max(others))
    speeds = (_speed(results, micro.peer, operation) for operation in ("upsert", "bulk_insert"))
    return micro.peer, *(f"{seconds:.3f}" for seconds in times), *speeds


def _speed(results: Results, peer: str, operation: str) -> str:
    for one in results.steps:
        if (one.peer, one.step) == (peer, f"{KAFKA}{operation}"):
            return f"{one.result / one.seconds:,.0f}"
    return ""
