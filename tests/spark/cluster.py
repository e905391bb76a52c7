"""A standalone Spark cluster of real processes on this machine: a master, and a worker for two executors."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

from tests.support.spark import JVM

ROOT = Path(__file__).parents[2]
SPARK_HOME = Path(pyspark.__file__).parent
START_SECONDS = 90
DEPLOY = "org.apache.spark.deploy"


def environment(**more: str) -> dict[str, str]:
    """Return the variables that all processes of the cluster and its drivers see."""
    path = os.pathsep.join([*more.pop("PYTHONPATH", "").split(os.pathsep), str(ROOT / "src"), str(ROOT)])
    return {
        **os.environ,
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": JVM,
        "SPARK_LAUNCHER_OPTS": JVM,
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": path.strip(os.pathsep),
        **more,
    }


@contextmanager
def cluster(folder: Path, variables: dict[str, str]) -> Iterator[str]:
    """Start master and worker, yield the master's address, and stop them."""
    processes: list[subprocess.Popen[bytes]] = []

    def start(name: str, *arguments: str) -> Path:
        log = folder / f"{name}.log"
        command = [str(SPARK_HOME / "bin" / "spark-class"), *arguments]
        with log.open("wb") as sink:
            processes.append(
                subprocess.Popen(command, stdout=sink, stderr=sink, env=variables, start_new_session=True)
            )
        return log

    try:
        here = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        log = start("master", f"{DEPLOY}.master.Master", *here)
        address = said(log, r"Starting Spark master at (spark://\S+)")
        size = ("--cores", "2", "--memory", "2g", "--work-dir", str(folder / "work"))
        worker = start("worker", f"{DEPLOY}.worker.Worker", *here, *size, address)
        said(worker, r"(Successfully registered with master)")
        yield address
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def said(log: Path, pattern: str) -> str:
    """Wait until a process says something, and return the first group of it."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if match := re.search(pattern, log.read_text()):
            return match[1]
        time.sleep(0.1)
    raise TimeoutError(f"waited for {pattern!r}:\n{log.read_text()[-2000:]}")
