"""Drivers that are killed in the middle of a write while their executors, cut off from them, go on.

Executors end as soon as they notice that their driver is gone. Here they cannot: while the driver is killed
they stand still, as on a machine that lost its network, and only their Python workers go on.
`write/test_killed_drivers.py` does the same without Spark.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from bench.processes import below, command_line, processes
from drawstring.table import Table
from tests.spark.cluster import ROOT, cluster, environment
from tests.spark.lost_driver import FOLDER
from tests.support.late_files import (
    FIRST,
    LATE,
    dead_write,
    judge,
    table_options,
    write_until_rolled_back,
)
from tests.support.lingering import Lingering
from tests.support.rows import held, rides
from tests.support.s3_server import S3Server
from tests.support.tables import COW, MOR, create

pytestmark = [pytest.mark.spark, pytest.mark.long]

EXECUTOR, WORKER = "executor.CoarseGrainedExecutorBackend", "deploy.worker.Worker"


@contextmanager
def driver(arguments: Sequence[str], variables: dict[str, str]) -> Iterator[int]:
    """Run a driver; it is killed with its JVM, if it still runs, at the end."""
    words = [sys.executable, "-m", "tests.spark.lost_driver", *arguments]
    with subprocess.Popen(words, cwd=ROOT, env=variables, start_new_session=True) as process:
        try:
            yield process.pid
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def running(*names: str) -> list[int]:
    """Return the processes below this one whose command lines have one of some names."""
    found = below({os.getpid()}, processes())
    return [pid for pid in sorted(found) if any(name in command_line(pid) for name in names)]


def until_gone(pids: list[int]) -> None:
    deadline = time.monotonic() + 60
    while any(command_line(pid) for pid in pids):
        assert time.monotonic() < deadline, "the executors stay"
        time.sleep(0.1)


def outlive(
    table: Table, options: dict[str, str], folder: Path, kinds: tuple[str, str], operation: str = "upsert"
) -> None:
    table.upsert(rides(*FIRST))
    (folder / "told").mkdir()
    tasks = Lingering(folder / "told", kinds)
    (folder / "site").mkdir()
    (folder / "site" / "sitecustomize.py").write_text(
        "from tests.spark.lost_driver import linger\nlinger()\n"
    )
    variables = environment(PYTHONPATH=str(folder / "site"), **{FOLDER: str(tasks.folder)})
    with cluster(folder, variables) as master:
        with driver((master, table.uri, json.dumps(options), operation), variables):
            tasks.until_they_wait()
            frozen = running(EXECUTOR, WORKER)
            assert len(frozen) == 3
            for pid in frozen:
                os.kill(pid, signal.SIGSTOP)
        try:
            dead = dead_write(table)
            assert held(table) == FIRST
            rows = write_until_rolled_back(table, dead)
            judge(table, dead, rows, tasks.let_go())
        finally:
            for pid in frozen:
                os.kill(pid, signal.SIGCONT)
        until_gone([pid for pid in frozen if EXECUTOR in command_line(pid)])
        assert held(table) == [row for row in held(table) if row not in LATE]


@pytest.mark.parametrize(
    ("table_type", "operation", "kinds"),
    [
        (COW, "upsert", ("before", "dies")),
        (MOR, "upsert", ("marked", "dies")),
        (COW, "bulk_insert", ("before", "dies")),
    ],
)
def test_files_of_executors_that_outlive_their_driver_never_count(
    table_type: str, operation: str, kinds: tuple[str, str], tmp_path: Path
) -> None:
    table = create(path=tmp_path / "t", **table_options(table_type))
    outlive(table, {}, tmp_path, kinds, operation)


def test_nor_in_an_object_store_when_the_heartbeat_has_expired(s3: S3Server, tmp_path: Path) -> None:
    path = s3.address(f"killed/{tmp_path.name}")
    table = create(path=path, storage_options=s3.options, **table_options(MOR))
    outlive(table, s3.options, tmp_path, ("before", "dies"))
