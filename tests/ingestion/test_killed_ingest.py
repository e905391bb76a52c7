"""Ingestions that are killed at any moment: nothing is lost, nothing is doubled."""

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
from drawstring.storage import open_storage
from tests.support.faulty_storage import FaultyStorage
from tests.support.processes import ROOT

ROWS = 3
KILLS = int(os.environ.get("INGEST_KILLS", "100"))
SPARK_KILLS = int(os.environ.get("INGEST_SPARK_KILLS", "8"))


def put_files(folder: Path, first: int, count: int) -> None:
    """Put files into the folder, each complete when it appears, each a second younger than the last one."""
    for number in range(first, first + count):
        ids = list(range(number * ROWS, (number + 1) * ROWS))
        hidden, shown = folder / f".{number:05}", folder / f"{number:05}.parquet"
        pq.write_table(pa.table({"id": ids, "ts": [1] * ROWS}), hidden)
        os.utime(hidden, (1_000_000 + number, 1_000_000 + number))
        hidden.rename(shown)


def options_of(folder: Path) -> dict[str, str]:
    return {
        "hoodie.streamer.source.dfs.root": str(folder),
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.clean.commits.retained": "5",
        "hoodie.keep.min.commits": "8",
        "hoodie.keep.max.commits": "12",
    }


def job(folder: Path, *more: str) -> subprocess.Popen[bytes]:
    """Start a job in a process group of its own, which ingests file by file and waits for more."""
    options = [f"--option={key}={value}" for key, value in options_of(folder / "in").items()]
    command = [sys.executable, "-m", "drawstring", "ingest", str(folder / "t"), "--source", "parquet"]
    command += [
        "--op",
        "insert",
        "--continuous",
        "--interval",
        "0.05",
        "--source-limit",
        "1",
        *options,
        *more,
    ]
    return subprocess.Popen(
        command,
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a job, and the JVM that it may have started."""
    assert process.poll() is None
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def commits(folder: Path) -> str | None:
    """Return the newest commit of the table, None while there is none."""
    if not (folder / "t/.hoodie/hoodie.properties").exists():
        return None
    newest = drawstring.open(folder / "t").timeline.latest_write()
    return newest.requested if newest is not None else None


def assert_complete(folder: Path, files: int) -> None:
    table = drawstring.open(folder / "t")
    assert sorted(table.scan(columns=["id"]).to_arrow()["id"].to_pylist()) == list(range(files * ROWS))
    assert not table.services.validate().findings


@pytest.mark.parametrize("kills", [2, pytest.param(KILLS, marks=pytest.mark.long)])
def test_a_job_that_is_killed_again_and_again(tmp_path: Path, kills: int) -> None:
    drawn = random.Random(int(os.environ.get("INGEST_SEED", "7")))
    (tmp_path / "in").mkdir()
    files = 0
    for _ in range(kills):
        put_files(tmp_path / "in", files, 20)
        files += 20
        with job(tmp_path) as process:
            time.sleep(drawn.uniform(0.5, 3))
            kill(process)
    drawstring.ingest(
        tmp_path / "t", "parquet", options=options_of(tmp_path / "in"), operation="insert", source_limit=1
    )
    assert_complete(tmp_path, files)


@pytest.mark.spark
@pytest.mark.long
def test_a_job_that_goes_on_with_the_other_engine_whenever_it_is_killed(tmp_path: Path) -> None:
    drawn = random.Random(int(os.environ.get("INGEST_SEED", "7")))
    (tmp_path / "in").mkdir()
    on_spark = ("--engine", "spark", "--spark-conf", "spark.master=local[1]")
    files = 0
    for number in range(SPARK_KILLS):
        put_files(tmp_path / "in", files, 20)
        files += 20
        process = job(tmp_path, *(() if number % 2 else on_spark))
        before = commits(tmp_path)
        while process.poll() is None and commits(tmp_path) == before:
            time.sleep(0.1)
        time.sleep(drawn.uniform(0, 3))
        kill(process)
    drawstring.ingest(
        tmp_path / "t", "parquet", options=options_of(tmp_path / "in"), operation="insert", source_limit=1
    )
    assert_complete(tmp_path, files)


@pytest.mark.scaled
def test_a_job_that_dies_at_any_step(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    put_files(tmp_path / "in", 0, 4)
    options = options_of(tmp_path / "in")

    def ingest(uri: str) -> int:
        return drawstring.ingest(
            uri, "parquet", options=options, operation="insert", source_limit=1, retries=0
        ).batches

    ingest_first = drawstring.ingest(
        tmp_path / "t", "parquet", options=options, operation="insert", source_limit=1, max_batches=1
    )
    assert ingest_first.batches == 1
    for step in (1, 2, 3, 5, 8, 11, 13, 17, 21):
        dying = FaultyStorage(open_storage(str(tmp_path / "t")), step)
        with pytest.raises(Exception):  # noqa: B017 - the storage is gone, whatever it says
            ingest(dying.spec.uri)
    assert ingest(str(tmp_path / "t")) < 3, "no batch had been committed before"
    assert_complete(tmp_path, 4)
