"""A thousand small files become large ones: 1 MB each at first, 120 MB aimed at. Standard library and Arrow.

A peer is an object with `append(rows)`, which adds one file, `compact()`, and `rows()`, which counts. The
result of `compact_files` is how many files there are then.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
from ride import step

FILES = int(os.environ.get("BENCH_SMALL_FILES", "1000"))
ROWS = 250
PAYLOAD_BYTES = 4000
TARGET_BYTES = 120 << 20
SCHEMA = pa.schema([("id", "string"), ("ts", "int64"), ("payload", "binary")])


class Peer(Protocol):
    def append(self, rows: pa.Table) -> None: ...
    def compact(self) -> int: ...
    def rows(self) -> int: ...


def rows(number: int) -> pa.Table:
    """Return the rows of a file, which no codec shortens."""
    rng = np.random.default_rng(number)
    payload = [rng.bytes(PAYLOAD_BYTES) for _ in range(ROWS)]
    keys = [f"id-{number:06d}-{row:06d}" for row in range(ROWS)]
    return pa.table([keys, np.full(ROWS, number), payload], schema=SCHEMA)


def run(peer: Peer) -> None:
    """Write the files and put them together. usage of its script: SCRIPT DATA TABLE"""
    step("append_files", _append, peer)
    step("compact_files", peer.compact)
    count = peer.rows()
    assert count == FILES * ROWS, f"{count} rows instead of {FILES * ROWS}"
    shutil.rmtree(sys.argv[2])


def fresh() -> str:
    """Return the folder of the peer's table, which is not there."""
    shutil.rmtree(sys.argv[2], ignore_errors=True)
    Path(sys.argv[2]).parent.mkdir(parents=True, exist_ok=True)
    return sys.argv[2]


def _append(peer: Peer) -> float:
    """Append all files; return the seconds of one, without those that making its rows takes."""
    spent = 0.0
    for number in range(FILES):
        made = rows(number)
        began = time.perf_counter()
        peer.append(made)
        spent += time.perf_counter() - began
    return round(spent / FILES, 4)
