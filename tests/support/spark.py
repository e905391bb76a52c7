"""The one small Spark session of a test process."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SMALL = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.ui.explainMode": "simple",  # the plan of every query is written down, which nobody reads
    "spark.driver.memory": "2g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.log.level": "ERROR",
    "spark.python.authenticate.socketTimeout": "300s",
}

JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m"
"""A JVM that is over before code which it optimizes at length could pay. What it has compiled it keeps: this
compiler alone gets 48 MB by default, and throws code away that it compiles again."""

INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""On some rows Spark interprets an expression sooner than it compiles it."""

WORKERS = {"spark.python.daemon.module": "tests.support.spark_daemon"}
"""Workers die of the errors that they tell: new ones need not import everything again."""

QUICK = {
    "spark.driver.extraJavaOptions": JVM,
    **INTERPRETED,
    **WORKERS,
}
"""Spends less on small queries, of which the tests ask thousands."""

SITE = str(Path(__file__).with_name("spark_site"))
"""Where the processes of Python that Spark starts look first."""


@cache
def _warehouse() -> str:
    """Make the folder of this process for tables of Spark's own catalog; it goes when the process ends."""
    folder = tempfile.mkdtemp(prefix="drawstring-warehouse-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def spark_session(master: str = "local[2]", settings: Mapping[str, str] = QUICK) -> SparkSession:
    """Return the session of this process, started when it is asked for first."""
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    # Workers have to find the package when it is not installed.
    first = [SITE] if settings is QUICK else []
    os.environ["PYTHONPATH"] = os.pathsep.join([*first, *(path for path in sys.path if path)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pyspark.sql import SparkSession

        _look_up_once()
        builder = SparkSession.builder.master(master).appName("drawstring-tests")
        for key, value in {**SMALL, "spark.sql.warehouse.dir": _warehouse(), **settings}.items():
            builder = builder.config(key, value)
        return builder.getOrCreate()


@cache
def _look_up_once() -> None:
    """Ask the JVM once what a name is: it looks for those of PySpark in several packages, jar by jar."""
    from py4j.java_gateway import JavaClass, JVMView

    look_up = JVMView.__getattr__

    def known(view: JVMView, name: str) -> object:
        found = look_up(view, name)
        if isinstance(found, JavaClass) or name == "py4j":
            view.__dict__[name] = found
        return found

    JVMView.__getattr__ = known


@contextmanager
def settings_kept(session: SparkSession) -> Iterator[None]:
    """Take back, at the end of a block of code, what it set in the session that all tests share."""
    before = {row.key: row.value for row in session.sql("SET").collect()}
    try:
        yield
    finally:
        for row in session.sql("SET").collect():
            if row.key not in before:
                session.conf.unset(row.key)
            elif row.value != before[row.key]:
                session.conf.set(row.key, before[row.key])


@contextmanager
def without_ansi(session: SparkSession) -> Iterator[None]:
    """Have Spark give null for what it cannot cast."""
    session.conf.set("spark.sql.ansi.enabled", "false")
    try:
        yield
    finally:
        session.conf.unset("spark.sql.ansi.enabled")
