"""Drivers of streams that are killed at any moment: nothing is lost, nothing is doubled."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import drawstring
from tests.support.processes import ROOT

pytestmark = [pytest.mark.spark, pytest.mark.long]

FILES, ROWS = 24, 3
KILLS = int(os.environ.get("STREAM_KILLS", "4"))


def driver(folder: Path, name: str) -> subprocess.Popen[str]:
    """Start a driver in a process group of its own, with its JVM in it."""
    arguments = [str(folder / "in"), str(folder / f"c-{name}"), str(folder / "t"), name]
    return subprocess.Popen(
        [sys.executable, "-m", "tests.spark.stream_driver", *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )


def test_a_stream_whose_driver_is_killed_again_and_again(tmp_path: Path) -> None:
    seed = int(os.environ.get("STREAM_SEED", "7"))
    drawn = random.Random(seed)
    (tmp_path / "in").mkdir()
    for number in range(FILES):
        ids = list(range(number * ROWS, (number + 1) * ROWS))
        pq.write_table(pa.table({"id": ids, "ts": [1] * ROWS}), tmp_path / "in" / f"{number:04}.parquet")
    killed = 0
    for _ in range(KILLS):
        process = driver(tmp_path, "a")
        assert process.stdout is not None and process.stdout.readline() == "runs\n"
        time.sleep(drawn.uniform(0, 6))
        killed += process.poll() is None
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    process = driver(tmp_path, "a")
    assert process.wait(timeout=300) == 0
    table = drawstring.open(tmp_path / "t")
    found = sorted(table.scan().to_arrow()["id"].to_pylist())
    assert found == list(range(FILES * ROWS)), f"seed {seed}"
    assert killed, "no driver was killed: the stream was over too soon"
    assert not table.validate().findings
