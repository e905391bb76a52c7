"""Spark's workers run the Python of the driver where nothing says which one they run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.spark import INTERPRETED, JVM

pytestmark = pytest.mark.spark

SETTINGS = {**INTERPRETED, "spark.driver.extraJavaOptions": JVM}

SCRIPT = """
import json
import sys
import drawstring
import drawstring.spark
from pyspark.sql import SparkSession

folder = sys.argv[1]
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
builder = builder.config("spark.sql.shuffle.partitions", "1").config(map=json.loads(sys.argv[2]))
spark = builder.getOrCreate()
drawstring.spark.register(spark)
options = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
rows = spark.createDataFrame([("a", 1)], "id string, ts long")
rows.write.format("hudi").options(**options).mode("append").save(f"{folder}/t")


def save(batch, number):
    batch.select("id", "ts").write.format("hudi").options(**options).mode("append").save(f"{folder}/copy")


stream = spark.readStream.format("hudi").load(f"{folder}/t").writeStream.foreachBatch(save)
query = stream.option("checkpointLocation", f"{folder}/checkpoint").start()
query.processAllAvailable()
query.stop()
spark.sql(f"create temporary view rides using hudi options (path '{folder}/copy')")
print(spark.sql("select count(*) as n from rides").collect()[0].n)
"""


def test_a_python_that_is_not_activated_writes_reads_and_streams(tmp_path: Path) -> None:
    other = tmp_path / "bin/python3"
    other.parent.mkdir()
    other.write_text("#!/bin/sh\necho a Python without drawstring >&2\nexit 1\n")
    other.chmod(0o755)
    environment = {key: value for key, value in os.environ.items() if key != "PYSPARK_PYTHON"}
    environment |= {
        "PATH": f"{other.parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path), json.dumps(SETTINGS)],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stdout.strip()) == (0, "1"), done.stderr[-3000:]
