"""A driver whose tasks run in processes of their own, as Spark's do; run as a module.

    python -m tests.write.killed_driver TABLE OPTIONS FOLDER

Its tasks (`killed_drivers_task`) wait as it is told in the folder, and go on when the driver is killed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pyspark import cloudpickle

import drawstring
from drawstring.engine.local import LocalGroups
from drawstring.engine.protocol import TaskFunction
from drawstring.engine.spill import SpillingGroups
from drawstring.model.files import TaskContext
from tests.support.late_files import BEATS, LATE
from tests.support.processes import ROOT
from tests.support.rows import rides


def run_in_processes(folder: str) -> None:
    """Run the tasks that write files in processes of their own."""

    def run(groups: LocalGroups, task: TaskFunction[Any]) -> list[Any]:
        parts = SpillingGroups(groups.schema, 1 << 30)
        groups._gather(parts)
        tasks = [
            (task, list(parts.batches(key)), TaskContext(number, 0, 0))
            for number, key in enumerate(parts.groups())
        ]
        with ThreadPoolExecutor(2) as pool:
            results = pool.map(lambda each: started(each, folder), tasks)
            return [result for some in results for result in some]

    LocalGroups.run = run  # type: ignore[method-assign]


def started(task: Any, folder: str) -> list[Any]:
    command = [sys.executable, "-m", "tests.write.killed_drivers_task", folder]
    done = subprocess.run(command, cwd=ROOT, input=cloudpickle.dumps(task), capture_output=True, check=True)
    results: list[Any] = cloudpickle.loads(done.stdout)
    return results


def main(uri: str, options: str, folder: str) -> None:
    """Upsert rows into every file group of the table."""
    run_in_processes(folder)
    table = drawstring.open(uri, storage_options=json.loads(options))
    table.upsert(rides(*LATE), options=BEATS)


if __name__ == "__main__":
    main(*sys.argv[1:])
