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
from bench.scripts.streams import OPERATIONS
from bench.tables import markdown

MICRO, KAFKA = "micro_batches", "kafka_"
BATCHES = int(os.environ.get("BENCH_STREAM_BATCHES", "40"))
ROWS_OF_A_BATCH = 1000
NEW_OF_A_BATCH = 500
PARTITIONS = 4
HEAD = (
    "Streams", "first s", "median s", "worst s", "all, s",
    *(head for operation in OPERATIONS for head in (f"{operation}, s", "rows/s")),
)  # fmt: skip


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
    """Return what micro-batches and a topic of Kafka's took of each peer; empty without any."""
    told = [one for one in results.steps if one.step == MICRO]
    return markdown(HEAD, [_row(results, one) for one in told]) if told else ""


def _row(results: Results, micro: Measured) -> tuple[str, ...]:
    first, *others = micro.result
    times = (f"{seconds:.2f}" for seconds in (first, statistics.median(others), max(others)))
    all_of_them = _with_processor(micro.seconds, micro.processor_seconds)
    kafka = (cell for operation in OPERATIONS for cell in _speed(results, micro.peer, operation))
    return micro.peer, *times, all_of_them, *kafka


def _speed(results: Results, peer: str, operation: str) -> tuple[str, str]:
    """Return the seconds of what a peer took from a topic, and rows a second; empty if it took nothing."""
    for one in results.steps:
        if (one.peer, one.step) == (peer, f"{KAFKA}{operation}"):
            return _with_processor(one.seconds, one.processor_seconds), f"{one.result / one.seconds:,.0f}"
    return "", ""


def _with_processor(seconds: float, processor_seconds: float | None) -> str:
    used = "" if processor_seconds is None else f" ({processor_seconds:.1f} cpu)"
    return f"{seconds:.1f}{used}"
