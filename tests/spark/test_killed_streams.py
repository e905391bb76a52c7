"""Streams on Spark whose drivers, JVMs, workers and queries are killed: nothing is lost or doubled."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import drawstring
from bench.processes import below, command_line, processes
from tests.support.kafka import kafka
from tests.support.processes import ROOT

pytestmark = [pytest.mark.spark, pytest.mark.long]

FILES, ROWS = 2, 3
RECORDS = 40
KILLS = int(os.environ.get("STREAM_KILLS", "12"))
SEED = int(os.environ.get("STREAM_SEED", "7"))
VICTIMS = {"driver": 1, "jvm": 1, "worker": 6, "query": 6}
"""What is killed, and how often: a driver takes many seconds to come back."""


class Job:
    """A driver in a process group of its own with its JVM and workers, started again when it is gone.

    Args:
        words: command line.
        log: takes what it prints as errors.
    """

    def __init__(self, words: list[str], log: Path) -> None:
        self._words = words
        self._log = log
        self.killed: Counter[str] = Counter()
        self.start()

    def start(self) -> None:
        with self._log.open("a") as log:
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": log}
            self._process = subprocess.Popen(
                self._words, cwd=ROOT, text=True, start_new_session=True, **pipes
            )  # type: ignore[call-overload]

    def says(self) -> str:
        return str(self._process.stdout.readline())

    def tell(self, line: str) -> None:
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def goes_on(self) -> bool:
        """Tell whether it still runs; if not, start it again."""
        if self._process.poll() is None:
            return True
        self.start()
        return False

    def kill(self) -> None:
        """Kill the driver, its JVM and all workers."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self.killed["driver"] += 1

    def kill_worker(self, drawn: random.Random) -> None:
        """Kill one of the Python processes below the JVM, the daemon among them, if there is any."""
        if python := self._below(lambda words: "java" not in words and "daemon" in words):
            os.kill(drawn.choice(python), signal.SIGKILL)
            self.killed["worker"] += 1

    def kill_jvm(self) -> None:
        """Kill the JVM, which ends the driver with an error."""
        for pid in self._below(lambda words: "java" in words and "SparkSubmit" in words):
            os.kill(pid, signal.SIGKILL)
            self.killed["jvm"] += 1
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self.end()

    def end(self) -> None:
        """Kill what is left of the job."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _below(self, is_meant: Callable[[str], bool]) -> list[int]:
        """Return the processes below the driver whose command lines are meant."""
        found = below({self._process.pid}, processes()) - {self._process.pid}
        return [pid for pid in sorted(found) if is_meant(command_line(pid))]


def put_files(folder: Path, first: int) -> int:
    """Put files into the folder, each complete when it appears; return the number of files."""
    for number in range(first, first + FILES):
        ids = list(range(number * ROWS, (number + 1) * ROWS))
        pq.write_table(pa.table({"id": ids, "ts": [1] * ROWS}), folder / f".{number:04}")
        (folder / f".{number:04}").rename(folder / f"{number:04}.parquet")
    return first + FILES


def until_new(found: Callable[[], object], seconds: float = 180) -> None:
    """Wait until something has changed, which shows that a job does what it should."""
    before, deadline = found(), time.monotonic() + seconds
    while found() == before:
        assert time.monotonic() < deadline, "the job does not go on"
        time.sleep(0.05)


def newest(folder: Path) -> str | None:
    """Return the newest completed write, None while there is no table."""
    if not (folder / "t/.hoodie/hoodie.properties").exists():
        return None
    write = drawstring.open(folder / "t").timeline.latest_write()
    return write.requested if write is not None else None


def assert_complete(folder: Path, count: int) -> None:
    table = drawstring.open(folder / "t")
    found = sorted(table.scan(columns=["id"]).to_arrow()["id"].to_pylist())
    assert found == list(range(count)), f"seed {SEED}"
    assert not table.services.validate().findings


def test_a_stream_whose_driver_workers_and_query_are_killed_again_and_again(tmp_path: Path) -> None:
    drawn = random.Random(SEED)
    (tmp_path / "in").mkdir()
    names = [str(tmp_path / each) for each in ("in", "checkpoint", "t")]
    words = [sys.executable, "-m", "tests.spark.stream_driver", *names, "a"]
    job, files = Job([*words, "forever"], tmp_path / "log"), 0
    try:
        assert job.says() == "runs\n"
        while job.killed.total() < KILLS:
            files = put_files(tmp_path / "in", files)
            time.sleep(drawn.uniform(0, 2.5))
            (victim,) = drawn.choices(list(VICTIMS), list(VICTIMS.values()))
            if victim == "query":
                job.tell("stop")
                job.killed[victim] += 1
                assert job.says() == "runs\n"
            elif victim == "worker":
                job.kill_worker(drawn)
            else:
                job.kill() if victim == "driver" else job.kill_jvm()
                job.start()
                assert job.says() == "runs\n"
                if drawn.random() < 0.5:
                    until_new(lambda: newest(tmp_path))
    finally:
        job.end()
    assert subprocess.run([*words, "once"], cwd=ROOT, check=False).returncode == 0
    print(f"killed: {dict(job.killed)}")
    assert_complete(tmp_path, files * ROWS)


def test_an_ingestion_of_a_topic_whose_driver_and_workers_are_killed_again_and_again(tmp_path: Path) -> None:
    drawn = random.Random(SEED)
    with kafka() as broker:
        broker.create("killed", 2)
        options = {
            "bootstrap.servers": broker.address,
            "auto.offset.reset": "earliest",
            "hoodie.streamer.source.kafka.topic": "killed",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        }
        words = [sys.executable, "-m", "drawstring", "ingest", str(tmp_path / "t"), "--source", "kafka-json"]
        words += ["--op", "insert", "--engine", "spark", "--spark-conf", "spark.master=local[1]"]
        words += ["--continuous", "--interval", "0.05", "--source-limit", "20"]
        job = Job([*words, *(f"--option={key}={value}" for key, value in options.items())], tmp_path / "log")
        sent = 0
        try:
            while job.killed.total() < KILLS:
                ids = range(sent, sent + RECORDS)
                broker.send("killed", [json.dumps({"id": each, "ts": 1}).encode() for each in ids], 2)
                sent += RECORDS
                if not job.goes_on() or not job.killed.total():
                    until_new(lambda: newest(tmp_path))
                time.sleep(drawn.uniform(0, 3))
                victim = drawn.random()
                if victim < 0.8:
                    job.kill_worker(drawn)
                elif victim < 0.9:
                    job.kill_jvm()
                else:
                    job.kill()
        finally:
            job.end()
        print(f"killed: {dict(job.killed)}")
        drawstring.ingest(tmp_path / "t", "kafka-json", options=options, operation="insert")
        assert_complete(tmp_path, sent)
