"""A driver of a Spark cluster that writes rows into every partition of a table; run as a module.

    python -m tests.spark.lost_driver MASTER TABLE OPTIONS OPERATION

Its tasks wait where `tests.support.lingering` says, if the environment names the folder where it is told.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import drawstring.spark
from tests.spark.cluster_job import EXECUTORS
from tests.support.late_files import BEATS, LATE
from tests.support.lingering import install
from tests.support.rows import rides
from tests.support.spark import spark_session

FOLDER = "DRAWSTRING_TEST_LINGERING"


def linger() -> None:
    """Let tasks wait, in the workers of executors."""
    if folder := os.environ.get(FOLDER):
        from pyspark import TaskContext

        install(Path(folder), lambda: TaskContext.get() is not None)


def main(master: str, uri: str, options: str, operation: str) -> None:
    spark = spark_session(master, EXECUTORS)
    rows = spark.createDataFrame(rides(*LATE)).repartition(2)
    given = {"options": BEATS, "storage_options": json.loads(options)}
    drawstring.spark.write(rows, uri, operation=operation, **given)


if __name__ == "__main__":
    main(*sys.argv[1:])
