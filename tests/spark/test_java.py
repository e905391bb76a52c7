"""The Java source of the package compiles on this Spark, and is Java to other compilers."""

from __future__ import annotations

import os
import shutil
import subprocess
from importlib import resources
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

import drawstring
from drawstring.spark.jvm import java_sources, reading_class

pytestmark = pytest.mark.spark

SOURCES = Path(str(resources.files("drawstring.spark"))) / "java"


def test_every_java_source_compiles(spark: SparkSession, tmp_path: Path) -> None:
    files = {str(path.relative_to(SOURCES)) for path in SOURCES.rglob("*.java")}
    reading, sql = java_sources("reading"), java_sources("sql")
    assert files == {*reading, *sql}

    for path in reading:
        name = Path(path).stem
        assert reading_class(spark, name).getName() == f"drawstring.reading.{name}"
    drawstring.spark.register(spark.newSession())
    thread = spark.sparkContext._gateway.jvm.java.lang.Thread.currentThread()
    for path in sql:
        name = Path(path).stem
        assert thread.getContextClassLoader().loadClass(f"drawstring.sql.{name}").getSimpleName() == name

    # Janino checks less than javac, which editors use.
    home = os.environ.get("JAVA_HOME")
    javac = shutil.which("javac", path=f"{home}/bin" if home else None)
    if javac is not None:  # a JRE has none
        jars = str(Path(pyspark.__file__).parent / "jars/*")
        paths = [str(SOURCES / path) for path in files]
        done = subprocess.run(
            [javac, "-nowarn", "-cp", jars, "-d", tmp_path, *paths],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
